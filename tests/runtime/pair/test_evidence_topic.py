"""What an evidence topic says, whoever has written into it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.pair.evidence import TOPIC, Evidence
from runtime.pair.evidence_topic import SETTINGS, CarriedEvidence, EvidenceUnreadable, set_right
from tests.doubles.fake_cluster import FakeCluster, run_fake_cluster
from wire.headers import RequestHeader
from wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from wire.messages.table import APIS
from wire.net import open_cluster
from wire.net.topic_creation import TopicRefused

IDS = {"dc1": "id-1", "dc2": "id-2"}
EVIDENCE = Evidence(path="/dr", pair="p", clusters=IDS, active="dc1", epoch=3)
KEY = EVIDENCE.encode()[0]


class Settings:
    """The settings of the topic on a fake cluster, whose first broker tells and changes them."""

    def __init__(self, cluster: FakeCluster, error_code: int = 0, **own: str) -> None:
        self.own = {name.replace("_", "."): value for name, value in own.items()}
        self.changes = 0
        self._error_code = error_code
        for request, answer in (
            (DescribeConfigsRequest, self._tell),
            (IncrementalAlterConfigsRequest, self._change),
        ):
            cluster.versions[request.API_KEY] = APIS[request.API_KEY].VERSIONS
            cluster.brokers[0].scripts[request.API_KEY] = answer

    async def _tell(self, _: RequestHeader, __: object) -> DescribeConfigsResponse:
        configs = tuple(
            DescribeConfigsResourceResult(
                name=name, value=value, read_only=False, is_sensitive=False, synonyms=()
            )
            for name, value in self.own.items()
        )
        told = DescribeConfigsResult(
            error_code=0, resource_type=2, resource_name=TOPIC, configs=configs
        )
        return DescribeConfigsResponse(results=(told,))

    async def _change(
        self, _: RequestHeader, asked: IncrementalAlterConfigsRequest
    ) -> IncrementalAlterConfigsResponse:
        self.changes += 1
        if not self._error_code:
            self.own |= {one.name: str(one.value) for one in asked.resources[0].configs}
        done = IncrementalAlterConfigsResourceResponse(
            error_code=self._error_code,
            error_message=None,
            resource_type=2,
            resource_name=TOPIC,
        )
        return IncrementalAlterConfigsResponse(responses=(done,))


async def test_a_topic_that_would_not_keep_evidence_gets_its_settings() -> None:
    async with run_fake_cluster() as fake, open_cluster(fake.bootstrap, client_id="t") as cluster:
        settings = Settings(fake, cleanup_policy="delete", retention_ms="1000")
        await set_right(cluster)
        await set_right(cluster)
    assert settings.own == {**SETTINGS, "retention.ms": "1000"}
    assert settings.changes == 1


async def test_settings_that_may_not_be_set_right_are_named_with_the_command() -> None:
    async with run_fake_cluster() as fake, open_cluster(fake.bootstrap, client_id="t") as cluster:
        Settings(fake, error_code=29)
        with pytest.raises(TopicRefused, match=r"--add-config cleanup.policy=compact,unclean"):
            await set_right(cluster)


def said(*records: tuple[bytes, bytes]) -> list[Evidence]:
    carried = CarriedEvidence(KEY)
    for key, value in records:
        carried.replay(key, value)
    return carried.newest()


ages = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=6)


@given(ages)
def test_something_older_behind_the_newest_hides_nothing(ages: list[tuple[int, int]]) -> None:
    written = [replace(EVIDENCE, epoch=epoch, number=number) for epoch, number in ages]
    [newest] = said(*(one.encode() for one in written))
    assert newest.age == max(ages)


def test_of_the_same_number_the_last_counts() -> None:
    other = replace(EVIDENCE, active="dc2")
    assert said(EVIDENCE.encode(), other.encode()) == [other]


def test_garbage_at_the_end_is_told_and_what_is_written_behind_it_counts() -> None:
    with pytest.raises(EvidenceUnreadable, match=r"internal holds for b'/dr dc1 dc2'"):
        said(EVIDENCE.encode(), (KEY, b"x"))
    assert said((KEY, b"x"), EVIDENCE.encode()) == [EVIDENCE]
    assert said(EVIDENCE.encode(), (b"/other dc1 dc2", b"x")) == [EVIDENCE]

"""What `mirror check` makes of other machines' clocks and of what brokers speak."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror.commands.check import _plan, way_back
from mirror.commands.checks.clocks import (
    OFFSETS_TOPIC,
    TOLERATED_MS,
    ClockReading,
    cluster_clocks,
    told_clock,
    witness_clock,
)
from mirror.commands.checks.versions import (
    OF_SOURCE,
    OF_TARGET,
    Spoken,
    ask_versions,
    lacking_versions,
    told_versions,
)
from offset_translation.map_records import map_topic_name
from runtime.configuration.config import PatternSet
from runtime.coordination.zookeeper import ZNode, ZooKeeper
from runtime.process.clock import wall_ms
from tests.doubles.fake_cluster import FakeCluster, run_fake_cluster
from tests.mirror.building import CONFIG
from tests.mirror.topics.discovering import tell_settings
from tests.mirror.two_fakes import two_fakes
from wire.headers import RequestHeader
from wire.messages.api_versions import ApiVersion, ApiVersionsResponse, FinalizedFeatureKey
from wire.messages.describe_quorum import (
    DescribeQuorumResponse,
    QuorumPartition,
    QuorumReplica,
    QuorumTopic,
)
from wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from wire.messages.table import APIS
from wire.net import Cluster, open_cluster

LIST_OFFSETS, FETCH, METADATA, PRODUCE, API_VERSIONS, DESCRIBE_QUORUM = 2, 1, 3, 0, 18, 55
ALL = {key: request.VERSIONS for key, request in APIS.items()}


@given(st.integers(-5_000, 5_000), st.integers(0, 400))
def test_a_clock_that_is_surely_wrong_is_warned_of_and_no_other(off_ms: int, trip_ms: int) -> None:
    asked = 1_000_000
    for stamped_after_ms in (0, trip_ms // 2, trip_ms):
        line = told_clock(
            ClockReading(
                clock="x",
                shown_ms=asked + stamped_after_ms + off_ms,
                asked_ms=asked,
                answered_ms=asked + trip_ms,
            )
        )
        if abs(off_ms) <= TOLERATED_MS:
            assert line.startswith("clock of x: ")
        if abs(off_ms) > TOLERATED_MS + trip_ms + 2:
            assert line.startswith("warning: clock of x: ")
            assert ("ahead of" if off_ms > 0 else "behind") in line


def test_an_old_stamp_says_nothing_of_a_clock_but_that_it_is_not_ahead() -> None:
    old = ClockReading(
        clock="x", shown_ms=5_000, asked_ms=64_000, answered_ms=65_000, is_least=True
    )
    assert told_clock(old) == "clock of x: not ahead when last seen, 60.0 s ago; more is not shown"
    ahead = replace(old, shown_ms=68_500)
    assert told_clock(ahead).startswith("warning: clock of x: 3.5 s or more ahead of")


def test_what_a_broker_lacks_is_said_with_what_goes_without_it() -> None:
    old = Spoken(node=1, versions={**ALL, FETCH: range(7), METADATA: range(8)})
    new = Spoken(node=2, versions=ALL)
    fatal, warnings = lacking_versions("dc1", [old, new], OF_SOURCE, CONFIG)
    assert not fatal
    assert [line.split(": ")[2] for line in warnings] == [
        "brokers 1 lack Fetch version 7",
        "brokers 1 lack Fetch version 10",
        "brokers 1 lack Metadata version 8",
        "brokers 1 lack Metadata version 10",
    ]
    near = replace(CONFIG, client_rack="a")
    assert "client_rack" in str(lacking_versions("dc1", [old], OF_SOURCE, near)[1])
    assert lacking_versions("dc2", [new], OF_TARGET, near) == ([], [])


def test_without_what_everything_needs_a_flow_cannot_run() -> None:
    ancient = Spoken(node=7, versions={**ALL, PRODUCE: range(3)})
    fatal, _ = lacking_versions("dc2", [ancient], OF_TARGET, CONFIG)
    assert fatal == ["dc2: brokers 7 lack Produce version 3"]


@pytest.mark.parametrize(
    ("fetch", "level", "words"),
    [
        (12, None, "as Kafka 2.7"),
        (17, 21, "as Kafka 3.9; metadata.version 21, Kafka 3.9"),
        (17, 25, "metadata.version 25, Kafka 4.0"),
        (18, 29, "metadata.version 29, Kafka 4.0 or later"),
    ],
)
def test_a_release_is_known_by_what_it_speaks(fetch: int, level: int | None, words: str) -> None:
    spoken = Spoken(node=1, versions={FETCH: range(4, fetch + 1)}, level=level)
    assert str(spoken).endswith(words)


def test_brokers_that_speak_alike_share_a_line() -> None:
    one = Spoken(node=1, versions={FETCH: range(18)})
    lines = told_versions("dc1", [one, replace(one, node=2)])
    assert lines == ["dc1: brokers 1, 2: Fetch up to version 17, as Kafka 3.9"]
    mixed = told_versions("dc1", [one, Spoken(node=3, versions={FETCH: range(14)})])
    assert mixed[-1].startswith("warning: dc1: its brokers differ")


class Tree:
    """Of a ZooKeeper, what is there, and what is made and taken away again."""

    session_id = 7

    def __init__(self, *there: str) -> None:
        self.there = set(there)
        self.made: list[str] = []

    async def exists(self, path: str) -> bool:
        return path in self.there

    async def create(self, path: str, _: bytes, *, ephemeral: bool) -> None:
        assert ephemeral
        self.made.append(path)

    async def get(self, _: str) -> ZNode:
        return ZNode(data=b"", version=0, created_zxid=1, modified_zxid=1, ephemeral_owner=7)

    async def delete(self, path: str) -> None:
        assert path in self.made


@pytest.mark.parametrize(
    ("there", "made"),
    [
        (("/kafka", "/kafka/dr"), "/kafka/dr/kafka-dr-check-7"),
        (("/kafka",), "/kafka/kafka-dr-check-7"),
        ((), "/kafka-dr-check-7"),
    ],
)
async def test_the_witness_is_tried_where_the_mirror_will_write(
    there: tuple[str, ...], made: str
) -> None:
    """Where it may not, a run would stand still, and nobody has to let it write elsewhere."""
    tree = Tree(*there)
    await witness_clock(cast("ZooKeeper", tree), "/kafka/dr")
    assert tree.made == [made]


@asynccontextmanager
async def fake(**scripts: Any) -> AsyncIterator[tuple[FakeCluster, Cluster]]:
    async with run_fake_cluster() as kafka:
        kafka.create_topic(OFFSETS_TOPIC, 0, 0)
        for broker in kafka.brokers.values():
            broker.scripts |= {int(key.strip("_")): script for key, script in scripts.items()}
        async with open_cluster(kafka.bootstrap, client_id="test") as cluster:
            yield kafka, cluster


async def readings(cluster: Cluster) -> list[ClockReading]:
    view = await cluster.metadata(refresh=True)
    return await cluster_clocks("dc1", cluster, view, await ask_versions(cluster, [0]))


async def test_a_controllers_clock_is_read_off_its_quorum() -> None:
    async def quorum(_: RequestHeader, __: Any) -> DescribeQuorumResponse:
        voter = QuorumReplica(
            replica_id=5, log_end_offset=9, last_caught_up_timestamp=wall_ms() + 60_000
        )
        partition = QuorumPartition(
            partition_index=0,
            error_code=0,
            leader_id=5,
            leader_epoch=1,
            high_watermark=9,
            current_voters=(replace(voter, replica_id=4, last_caught_up_timestamp=1), voter),
            observers=(),
        )
        topic = QuorumTopic(topic_name="__cluster_metadata", partitions=(partition,))
        return DescribeQuorumResponse(error_code=0, topics=(topic,))

    async def versions(header: RequestHeader, request: Any) -> ApiVersionsResponse:
        # Apache Kafka answers INVALID_REQUEST to who does not name its software.
        assert header.api_version < 3 or request.client_software_name
        served = {**kafka.versions, DESCRIBE_QUORUM: range(2)}
        return ApiVersionsResponse(
            error_code=0,
            api_keys=tuple(
                ApiVersion(api_key=key, min_version=span.start, max_version=span.stop - 1)
                for key, span in served.items()
            ),
            finalized_features=(
                FinalizedFeatureKey(
                    name="metadata.version", max_version_level=21, min_version_level=21
                ),
            ),
        )

    async with fake(_55=quorum, _18=versions) as (kafka, cluster):
        [spoken] = await ask_versions(cluster, [0])
        assert spoken.level == 21
        [reading] = await readings(cluster)
    assert reading.clock == "dc1's controller 5"
    assert told_clock(reading).startswith("warning: clock of dc1's controller 5: ")


async def test_without_a_quorum_the_newest_stamp_bounds_a_brokers_clock() -> None:
    async def offsets(_: RequestHeader, request: Any) -> ListOffsetsResponse:
        assert {one.timestamp for one in request.topics[0].partitions} == {-3}
        found = [
            ListOffsetsPartitionResponse(partition_index=0, error_code=0, timestamp=-1),
            ListOffsetsPartitionResponse(partition_index=1, error_code=0, timestamp=7_000),
        ]
        topic = ListOffsetsTopicResponse(name=OFFSETS_TOPIC, partitions=tuple(found))
        return ListOffsetsResponse(topics=(topic,))

    async with fake(_2=offsets) as (_, cluster):
        [reading] = await readings(cluster)
    assert (reading.clock, reading.shown_ms, reading.is_least) == ("dc1's broker 0", 7_000, True)


async def test_an_old_broker_shows_no_clock() -> None:
    async with fake() as (kafka, cluster):
        kafka.versions[LIST_OFFSETS] = range(7)
        assert await readings(cluster) == []


@pytest.mark.parametrize(
    ("has_way_back", "is_prefixed", "is_there", "warned"),
    [
        (False, False, True, True),
        (False, False, False, False),
        (True, False, True, False),
        (False, True, True, False),
    ],
)
async def test_a_way_back_that_only_another_file_has_is_warned_of(
    *, has_way_back: bool, is_prefixed: bool, is_there: bool, warned: bool
) -> None:
    flow = replace(CONFIG, has_way_back=has_way_back, is_prefixed=is_prefixed)
    async with run_fake_cluster() as fake:
        if is_there:
            fake.create_topic("dc2.offset-map.internal", 0)
        async with open_cluster(fake.bootstrap, client_id="t") as cluster:
            lines = await way_back(flow, cluster)
    warning = (
        "warning: dc1 holds dc2.offset-map.internal, so a mirror runs dc2->dc1 or has run it, and"
        " this file has no such flow: what it brought would be sent back; have both flows in the"
        " file of each mirror"
    )
    assert lines == [warning] * int(warned)


async def test_a_copy_that_the_target_hides_is_a_missing_right_and_no_topic_to_make() -> None:
    flow = replace(CONFIG, topics=PatternSet(include=(re.compile(".*"),), exclude=()))
    async with two_fakes() as (dc1, dc2, links):
        for fake in (dc1, dc2):
            tell_settings(fake, {})
            fake.create_topic("orders", 0)
        dc2.hidden.add("orders")
        lines, wrong = await _plan(flow, links)
    told = "on dc2 the right DESCRIBE is missing for orders"
    assert told in lines
    assert wrong == [told]
    assert not [line for line in lines if line.startswith("would create")]


async def test_a_way_back_that_may_not_be_seen_is_none_that_is_warned_of() -> None:
    async with two_fakes() as (dc1, _, links):
        dc1.hidden.add(map_topic_name("dc2"))
        assert await way_back(replace(CONFIG, has_way_back=False), links.source_admin) == []

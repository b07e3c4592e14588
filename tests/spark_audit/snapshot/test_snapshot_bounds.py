"""A snapshot of what one may not see, of nothing at all, or of two times, is none."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from offset_translation import MapState
from runtime.configuration.config import Configuration, load
from spark_audit.snapshot.arrival_map import ReadMap
from spark_audit.snapshot.bounds import Promise
from spark_audit.snapshot.origins import Arrivals
from spark_audit.snapshot.seals import CannotTell
from spark_audit.snapshot.snapshot import TopicFilter, take_snapshot
from tests.dc_yaml import dc_yaml, flow
from tests.doubles.fake_answers import metadata
from tests.doubles.fake_cluster import FakeCluster, FakePartition, run_fake_cluster
from wire.errors import ErrorCode
from wire.headers import RequestHeader
from wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from wire.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseTopic
from wire.messages.table import APIS
from wire.topic_partition import TopicPartition

LIST_OFFSETS = 2
METADATA = 3
DESCRIBE_CONFIGS = 32


@pytest.fixture(autouse=True)
def _no_promotion(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in for the witness."""

    async def journals(_: Configuration) -> list[bytes]:
        return []

    async def same_settings(*_: object) -> None:
        return None

    async def no_promises(*_: object) -> dict[TopicPartition, Promise]:
        return {}

    async def no_map(*_: object) -> ReadMap:
        return ReadMap(Arrivals(), MapState(), None)

    monkeypatch.setattr("spark_audit.snapshot.snapshot._map", no_map)
    monkeypatch.setattr("spark_audit.snapshot.snapshot._journals", journals)
    monkeypatch.setattr("spark_audit.snapshot.snapshot._require_same_settings", same_settings)
    monkeypatch.setattr("spark_audit.snapshot.snapshot._promises", no_promises)


@asynccontextmanager
async def _sites(source: str, target: str) -> AsyncIterator[tuple[FakeCluster, FakeCluster]]:
    """Two clusters with these topics, a word each."""
    async with run_fake_cluster() as dc1, run_fake_cluster() as dc2:
        for cluster, names in ((dc1, source), (dc2, target)):
            cluster.versions[DESCRIBE_CONFIGS] = APIS[DESCRIBE_CONFIGS].VERSIONS
            cluster.brokers[0].scripts[DESCRIBE_CONFIGS] = _no_settings
            for name in names.split():
                cluster.create_topic(name, 0).partitions[0].end = 10
        yield dc1, dc2


async def _no_settings(_: RequestHeader, request: DescribeConfigsRequest) -> Any:
    return DescribeConfigsResponse(
        results=tuple(
            DescribeConfigsResult(
                error_code=0,
                error_message=None,
                resource_type=one.resource_type,
                resource_name=one.resource_name,
                configs=(),
            )
            for one in request.resources
        )
    )


def _hide(cluster: FakeCluster, hidden: str) -> None:
    """Let the client not see a topic, as Kafka does without the right to describe it."""
    broker = cluster.brokers[0]

    async def answer(header: RequestHeader, request: MetadataRequest) -> MetadataResponse:
        whole: MetadataResponse = metadata(broker, header.api_version, request)
        refused = MetadataResponseTopic(
            error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=hidden, partitions=()
        )
        seen = tuple(topic for topic in whole.topics or () if topic.name != hidden)
        is_asked = any(topic.name == hidden for topic in request.topics or ())
        return MetadataResponse(
            brokers=whole.brokers,
            cluster_id=whole.cluster_id,
            controller_id=whole.controller_id,
            topics=(*seen, refused) if is_asked else seen,
        )

    broker.scripts[METADATA] = answer


def _configuration(
    folder: Path, dc1: FakeCluster, dc2: FakeCluster, **settings: Any
) -> Configuration:
    file = folder / "dc.yaml"
    first, second = (f"127.0.0.1:{cluster.bootstrap[0][1]}" for cluster in (dc1, dc2))
    file.write_text(dc_yaml(flow(**settings), dc1=first, dc2=second))
    return load(file)


@pytest.mark.parametrize("site", ["dc1", "dc2"])
async def test_a_topic_that_may_not_be_seen_on_one_side_is_not_taken_for_absent(
    tmp_path: Path, site: str
) -> None:
    async with _sites("orders payments", "orders payments") as (dc1, dc2):
        _hide({"dc1": dc1, "dc2": dc2}[site], "payments")
        configuration = _configuration(tmp_path, dc1, dc2)
        wants = TopicFilter(flow=configuration.flows[0])
        with pytest.raises(CannotTell, match=rf"cluster {site} .*payments: TOPIC_AUTHORIZATION"):
            await take_snapshot(configuration, wants, now_ms=5)


async def test_a_topic_that_the_file_names_and_neither_site_shows_is_not_taken_for_absent(
    tmp_path: Path,
) -> None:
    async with _sites("orders payments", "orders payments") as (dc1, dc2):
        for cluster in (dc1, dc2):
            _hide(cluster, "payments")
        configuration = _configuration(tmp_path, dc1, dc2, topics=["orders", "payments", "other"])
        wants = TopicFilter(flow=configuration.flows[0])
        assert wants.named == {"orders", "payments", "other"}
        with pytest.raises(CannotTell, match=r"payments: TOPIC_AUTHORIZATION"):
            await take_snapshot(configuration, wants, now_ms=5)


@pytest.mark.parametrize("site", ["dc1", "dc2"])
async def test_a_topic_that_is_shown_in_part_or_without_partitions_is_named(
    tmp_path: Path, site: str
) -> None:
    async with _sites("orders payments", "orders payments") as (dc1, dc2):
        cluster = {"dc1": dc1, "dc2": dc2}[site]
        cluster.topics["orders"].partitions[2] = FakePartition(0)
        configuration = _configuration(tmp_path, dc1, dc2)
        wants = TopicFilter(flow=configuration.flows[0])
        snapshot = await take_snapshot(configuration, wants, now_ms=5)
        (why,) = snapshot.untold.values()
        assert why.endswith("orders-1 is not shown")
        cluster.topics["orders"].partitions.clear()
        with pytest.raises(CannotTell, match=rf"cluster {site} .*orders is shown without a part"):
            await take_snapshot(configuration, wants, now_ms=5)


async def test_a_copy_that_the_mirror_made_of_a_topic_that_vanished_is_untold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def promises(*_: object) -> dict[TopicPartition, Promise]:
        return {TopicPartition("payments", 0): Promise(source_end=10, at_ms=1)}

    monkeypatch.setattr("spark_audit.snapshot.snapshot._promises", promises)
    async with _sites("orders", "orders payments theirs") as (dc1, dc2):
        configuration = _configuration(tmp_path, dc1, dc2)
        wants = TopicFilter(flow=configuration.flows[0])
        snapshot = await take_snapshot(configuration, wants, now_ms=5)
    assert [one.topic for one in snapshot.partitions] == ["orders"]
    assert snapshot.untold == {
        TopicPartition("payments", 0): "payments-0: dc1 has no such topic any more, and dc2 has "
        "the copy: make it again from the copy, or delete the copy"
    }


@pytest.mark.parametrize("target", ["", "orders"])
async def test_a_flow_without_topics_on_its_source_is_not_judged(
    tmp_path: Path, target: str
) -> None:
    async with _sites("", target) as (dc1, dc2):
        configuration = _configuration(tmp_path, dc1, dc2)
        wants = TopicFilter(flow=configuration.flows[0])
        with pytest.raises(CannotTell, match=r"flow dc1->dc2: no topic that is on dc1"):
            await take_snapshot(configuration, wants, now_ms=5)


@pytest.mark.parametrize("site", ["dc1", "dc2"])
async def test_a_partition_without_a_leader_is_named_and_the_others_are_audited(
    tmp_path: Path, site: str
) -> None:
    async with _sites("orders payments", "orders payments") as (dc1, dc2):
        cluster = {"dc1": dc1, "dc2": dc2}[site]
        cluster.topics["orders"].partitions[1] = FakePartition(-1)
        configuration = _configuration(tmp_path, dc1, dc2)
        wants = TopicFilter(flow=configuration.flows[0])
        snapshot = await take_snapshot(configuration, wants, now_ms=5)
        places = [(one.topic, one.partition) for one in snapshot.partitions]
        assert places == [("orders", 0), ("payments", 0)]
        (why,) = snapshot.untold.values()
        assert snapshot.untold.keys() == {("orders", 1)}
        assert why.startswith(f"cluster {site} (")
        assert why.endswith("orders-1 has no leader")
        del cluster.topics["payments"]
        cluster.topics["orders"].partitions[0].leader = -1
        other = dc2 if cluster is dc1 else dc1
        del other.topics["payments"]
        with pytest.raises(CannotTell, match="orders-0 has no leader"):
            await take_snapshot(configuration, wants, now_ms=5)


async def test_what_no_mirror_takes_is_not_audited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Patterns of one's own take the place of those that leave internal topics out by default."""
    async with _sites("orders dc2.offset-map.internal .hidden", "orders") as (dc1, dc2):

        async def journals(_: Configuration) -> list[bytes]:
            return []

        monkeypatch.setattr("spark_audit.snapshot.snapshot._journals", journals)
        own = {"exclude": [".*-scratch"]}
        configuration = _configuration(tmp_path, dc1, dc2, topics=own)
        wants = TopicFilter(flow=configuration.flows[0])
        snapshot = await take_snapshot(configuration, wants, now_ms=5)
    assert {one.topic for one in snapshot.partitions} == {"orders"}


async def test_copies_under_prefixed_names_are_audited_as_the_topics_that_they_copy(
    tmp_path: Path,
) -> None:
    async with _sites("orders dc2.theirs", "dc1.orders dc1.stray theirs") as (dc1, dc2):
        configuration = _configuration(tmp_path, dc1, dc2, names="prefixed")
        wants = TopicFilter(flow=configuration.flows[0])
        dc2.topics["dc1.orders"].partitions[0].end = 7
        snapshot = await take_snapshot(configuration, wants, now_ms=5)
    [orders] = snapshot.partitions
    assert (orders.topic, orders.target_topic) == ("orders", "dc1.orders")
    assert (orders.source.stop, orders.target.stop) == (10, 7)
    assert (snapshot.only_on_target, snapshot.prefix) == (("dc1.stray",), "dc1.")


async def test_a_promotion_in_the_midst_of_a_snapshot_begins_it_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else what was drained since the target was asked counts as lost with the promotion."""
    async with _sites("orders", "orders") as (dc1, dc2):
        dc1.topics["orders"].partitions[0].end = 12

        async def journals(_: Configuration) -> list[bytes]:
            asked = {header.api_key for header, _ in dc1.brokers[0].asked}
            if LIST_OFFSETS not in asked:
                return []
            dc2.topics["orders"].partitions[0].end = 12
            return [_journal("orders", 12)]

        monkeypatch.setattr("spark_audit.snapshot.snapshot._journals", journals)
        configuration = _configuration(tmp_path, dc1, dc2)
        wants = TopicFilter(flow=configuration.flows[0])
        snapshot = await take_snapshot(configuration, wants, now_ms=5)
    assert snapshot.promotion == 1
    (orders,) = snapshot.partitions
    assert (orders.source.stop, orders.mirrored_stop) == (12, 12)


def _journal(topic: str, end: int) -> bytes:
    ends = {"topic": topic, "partition": 0, "mirrored_source_end": end, "target_end": end}
    journal = {"epoch": 1, "site": "dc2", "source": "dc1", "state": "done", "partitions": [ends]}
    return json.dumps(journal).encode()


async def test_behind_a_promotion_a_topic_is_told_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is missing in one partition applications may have written again to another one."""
    async with _sites("orders payments", "orders payments") as (dc1, dc2):
        dc2.topics["orders"].partitions[1] = FakePartition(-1)

        async def journals(_: Configuration) -> list[bytes]:
            return [_journal("orders", 10)]

        monkeypatch.setattr("spark_audit.snapshot.snapshot._journals", journals)
        configuration = _configuration(tmp_path, dc1, dc2)
        wants = TopicFilter(flow=configuration.flows[0])
        snapshot = await take_snapshot(configuration, wants, now_ms=5)
    assert {one.topic for one in snapshot.partitions} == {"payments"}
    assert snapshot.untold.keys() == {("orders", 0), ("orders", 1)}

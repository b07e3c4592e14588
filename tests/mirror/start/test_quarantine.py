"""What only a returned site has is set aside once, whenever the mirror is killed meanwhile."""

import json
from base64 import b64decode
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from mirror.clusters.admin import DYNAMIC_TOPIC_CONFIG
from mirror.flow.flow_state import FlowState
from mirror.map.map_log import MapLog
from mirror.start.aside_log import SETTINGS, lacking
from mirror.start.log_readings import Tried
from mirror.start.positioning import Positioning
from mirror.start.quarantine import Quarantine, file_name
from mirror.start.start_position import OwnPart, Stop
from mirror.state.measurements import FlowMeasurements
from mirror.state.partition import MirroredPartition
from mirror.state.partition_state import PartitionState
from offset_translation.map_records import MirrorProducer, mirror_producer, piece_start, seal
from offset_translation.map_state import MapState
from offset_translation.offset_map import OffsetMap
from offset_translation.runs import Place
from runtime.configuration.flow_section import Policy
from runtime.diverged import Origin, origin_of
from tests.doubles.fake_answers import ANSWERS
from tests.doubles.fake_cluster import FakeCluster, FakePartition, Raw
from tests.doubles.map_writers import MemoryWriters
from tests.mirror.building import CONFIG
from tests.mirror.two_fakes import two_fakes
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
from wire.messages.produce import ProduceRequest
from wire.net import NetworkFault
from wire.record_batch import Record, build_batch, iterate_records, parse_header
from wire.topic_partition import TopicPartition

WHERE = TopicPartition("orders", 0)
OWN = OwnPart(20, 25)
FORWARD, BACK, OTHER = (MirrorProducer(producer_id=one, producer_epoch=0) for one in (7, 8, 9))
DIVERGED, MAP_BACK = "orders.diverged", "dc2.offset-map.internal"
STOP = Stop(state=PartitionState.TARGET_DIVERGED, reason="dc2 alone has 20 to 24", own=OWN)


def write(log: FakePartition, values: str, producer: MirrorProducer, key: bytes = b"k") -> None:
    log.batches.append(
        build_batch(
            [Record(n, 1_000 + n, key, value.encode()) for n, value in enumerate(values)],
            base_offset=log.end,
            partition_leader_epoch=3,
            producer_id=producer.producer_id,
            producer_epoch=0,
            base_sequence=0,
        )
    )
    log.end += len(values)


@dataclass(frozen=True, slots=True)
class Stage:
    """dc2 was lost with 20 to 24, of which 22 and 23 are one batch; now the flow from dc1 runs."""

    dc1: FakeCluster
    dc2: FakeCluster
    positioning: Positioning
    partition: MirroredPartition

    @property
    def quarantine(self) -> Quarantine:
        return self.positioning._quarantine

    async def set_aside(self) -> None:
        self.partition.move(PartitionState.POSITIONING, 0)
        await self.quarantine.set_aside_or_stop(self.partition, STOP)

    def kept(self, cluster: FakeCluster) -> list[tuple[bytes | None, Origin]]:
        found = []
        for batch in cluster.topics[DIVERGED].partitions[0].batches:
            for record in iterate_records(batch):
                origin = origin_of(record)
                assert origin is not None
                found.append((record.value, origin))
        return found

    def lines(self) -> list[dict[str, Any]]:
        folder = self.quarantine.config.current.diverged_folder
        [file] = folder.iterdir()
        assert file.suffix == ".jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()]

    def map_back(self) -> MapState:
        """What dc1's map of what came from dc2 says."""
        state = MapState()
        state.replay(*piece_start(*WHERE, source_start=0, place=Place(0)))
        state.replay(*seal(*WHERE, source_end=20, target_end=20))
        registry = self.quarantine.backward
        assert isinstance(registry, MemoryWriters)
        for batch in self.dc1.topics[MAP_BACK].partitions[0].batches:
            assert parse_header(batch).producer_id in registry.known.registered
            for record in iterate_records(batch):
                state.replay(record.key, record.value)
        state.advance({WHERE: 30})
        return state


async def kept_for_ever(_: object, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    """Topics keep their records until somebody deletes them."""
    return described(request, SETTINGS)


def described(
    request: DescribeConfigsRequest, settings: Mapping[str, str]
) -> DescribeConfigsResponse:
    [asked] = request.resources
    result = DescribeConfigsResult(
        error_code=0,
        resource_type=asked.resource_type,
        resource_name=asked.resource_name,
        configs=tuple(
            DescribeConfigsResourceResult(
                name=name,
                value=value,
                read_only=False,
                config_source=DYNAMIC_TOPIC_CONFIG,
                is_sensitive=False,
            )
            for name, value in settings.items()
        ),
    )
    return DescribeConfigsResponse(results=(result,))


@asynccontextmanager
async def staged(folder: Path) -> AsyncIterator[Stage]:
    async with two_fakes() as (dc1, dc2, links):
        for cluster in (dc1, dc2):
            cluster.versions[DescribeConfigsRequest.API_KEY] = DescribeConfigsRequest.VERSIONS
            cluster.brokers[0].scripts[DescribeConfigsRequest.API_KEY] = kept_for_ever
            cluster.create_topic(DIVERGED, 0)
        dc1.create_topic(MAP_BACK, 0)
        source, target = (one.create_topic("orders", 0).partitions[0] for one in (dc1, dc2))
        write(source, "m" * 20, BACK)
        write(source, "n" * 10, OTHER)
        write(target, "m" * 20, OTHER)
        for values in ("a", "b", "cd", "e"):
            write(target, values, OTHER)
        config = replace(CONFIG, diverged_folder=folder / "diverged")
        config = replace(config, policies={"target_diverged": Policy.QUARANTINE})
        flow = FlowState(config=config, measurements=FlowMeasurements("dc1->dc2"))
        map_log = MapLog(links.target_admin, "dc1", 1, MemoryWriters())
        map_log.state.replay(*mirror_producer(FORWARD))
        for record in (
            mirror_producer(BACK),
            piece_start(*WHERE, source_start=0, place=Place(0)),
            seal(*WHERE, source_end=20, target_end=20),
        ):
            flow.reverse.arrived.replay(*record)
        flow.reverse.arrived.advance({WHERE: 30})
        partition = MirroredPartition(
            *WHERE, topic_id=UUID(int=1), offset_map=OffsetMap(), now_ms=0
        )
        partition.target.meet_topic(UUID(int=5))
        positioning = Positioning(flow.for_positioning, links, map_log, MemoryWriters())
        yield Stage(dc1, dc2, positioning, partition)


def is_all_set_aside(there: Stage) -> bool:
    expected = [
        (
            value.encode(),
            Origin(
                site="dc2",
                topic_id=UUID(int=5),
                partition=0,
                offset=offset,
                leader_epoch=3,
                timestamp_ms=timestamp_ms,
                range_start=20,
            ),
        )
        for value, offset, timestamp_ms in zip(
            "abcde", range(20, 25), [1_000, 1_000, 1_000, 1_001, 1_000], strict=True
        )
    ]
    assert there.kept(there.dc1) == there.kept(there.dc2) == expected
    assert [(b64decode(one["value"]), one["offset"]) for one in there.lines()] == [
        (value, origin.offset) for value, origin in expected
    ]
    state = there.map_back()
    assert state.set_aside == {WHERE: {20: 25}}
    return state.maps[WHERE].mirrored_source_end == 25


async def test_what_only_the_target_has_is_on_both_sites_in_a_file_and_left_out(
    tmp_path: Path,
) -> None:
    async with staged(tmp_path) as there:
        await there.set_aside()
        assert is_all_set_aside(there)
        assert there.partition.state is PartitionState.WAITING
        arrived = there.quarantine.reverse.map_of(WHERE, 30)
        assert arrived is not None
        assert arrived.mirrored_source_end == 25, "positioning finds nothing to stop for any more"


@pytest.mark.parametrize("is_appended", [False, True], ids=["before", "behind"])
@pytest.mark.parametrize("nth", range(3))
async def test_who_is_killed_at_any_write_saves_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nth: int, *, is_appended: bool
) -> None:
    """The third write is the map's; records go one to a request here."""
    monkeypatch.setattr("mirror.start.quarantine.TOGETHER_BYTES", 1)
    async with staged(tmp_path) as there:
        for cluster in (there.dc1, there.dc2):
            cut_at(cluster, nth, is_appended=is_appended)
        for _ in range(2 * nth + 3):
            try:
                await there.set_aside()
            except NetworkFault as fault:
                there.partition.postpone(str(fault), 0)
        assert is_all_set_aside(there)


def cut_at(cluster: FakeCluster, nth: int, *, is_appended: bool) -> None:
    """Cut the connection at this write, before or behind what it does."""
    broker, seen = cluster.brokers[0], 0

    async def produce(header: Any, request: Any) -> Any:
        nonlocal seen
        seen += 1
        is_cut = seen == nth + 1
        if is_cut and not is_appended:
            return Raw(b"", cut=True)
        answer = ANSWERS[0](broker, header.api_version, request)
        return Raw(b"", cut=True) if is_cut else answer

    broker.scripts[ProduceRequest.API_KEY] = produce


async def test_an_earlier_range_does_not_pass_for_this_one(tmp_path: Path) -> None:
    """The topic was made again on dc2 since, and the same offsets hold other records."""
    async with staged(tmp_path) as there:
        await there.set_aside()
        there.partition.target.meet_topic(UUID(int=6))
        there.quarantine.reverse.arrived.replay(*seal(*WHERE, source_end=20, target_end=20))
        await there.set_aside()
        assert [origin.topic_id.int for _, origin in there.kept(there.dc1)] == [5] * 5 + [6] * 5


async def test_what_somebody_else_writes_there_doubles_nothing(tmp_path: Path) -> None:
    async with staged(tmp_path) as there:
        await there.set_aside()
        for cluster in (there.dc1, there.dc2):
            log = cluster.topics[DIVERGED].partitions[0]
            write(log, "x", OTHER)
            log.start = 1  # and its first record was deleted
        there.quarantine.reverse.arrived.replay(*seal(*WHERE, source_end=20, target_end=20))
        await there.set_aside()
        assert there.dc1.topics[DIVERGED].partitions[0].end == 6
        assert there.dc2.topics[DIVERGED].partitions[0].end == 6


async def test_a_file_that_cannot_be_written_stops_the_partition_and_says_so(
    tmp_path: Path,
) -> None:
    async with staged(tmp_path) as there:
        (tmp_path / "diverged").write_text("in the way")
        await there.set_aside()
        assert there.partition.state is PartitionState.TARGET_DIVERGED
        reason = there.partition.status.reason
        assert f"could not be set aside: {tmp_path / 'diverged'}" in reason
        assert "make room there, or set `diverged_folder` of the flow, and order it again" in reason
        assert there.map_back().set_aside == {}


async def test_a_topic_that_takes_nothing_aside_does_not_hold_up_the_others(tmp_path: Path) -> None:
    """The name with `.diverged` behind it may be too long, or a policy forbids the topic."""
    async with staged(tmp_path) as there:
        other = MirroredPartition(
            "refused", 0, topic_id=UUID(int=2), offset_map=OffsetMap(), now_ms=0
        )
        for record in (
            piece_start("refused", 0, source_start=0, place=Place(0)),
            seal("refused", 0, source_end=20, target_end=20),
        ):
            there.quarantine.reverse.arrived.replay(*record)
        there.quarantine.reverse.arrived.advance({other.topic_partition: 30})
        for cluster in (there.dc1, there.dc2):
            cluster.create_topic("refused", 0)
        for one in (other, there.partition):
            one.move(PartitionState.POSITIONING, 0)
        for one in (other, there.partition):
            await there.positioning._set_aside(Tried(one, one.attempt), STOP)
        assert is_all_set_aside(there)
        assert other.state is PartitionState.WAITING
        assert "API 19: we speak" in other.status.reason  # CreateTopics


async def test_a_topic_that_a_consumer_has_made_is_given_what_keeps_its_records(
    tmp_path: Path,
) -> None:
    """By the brokers' defaults records are deleted by their age, which is that of the originals."""
    async with staged(tmp_path) as there:
        asked: dict[str, str | None] = {}

        async def defaults(_: object, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
            return described(request, {"segment.bytes": "1048576"})

        async def alter(
            _: object, request: IncrementalAlterConfigsRequest
        ) -> IncrementalAlterConfigsResponse:
            [resource] = request.resources
            assert resource.resource_name == DIVERGED
            asked.update({one.name: one.value for one in resource.configs})
            answer = IncrementalAlterConfigsResourceResponse(
                error_code=0, error_message=None, resource_type=2, resource_name=DIVERGED
            )
            return IncrementalAlterConfigsResponse(responses=(answer,))

        there.dc1.versions[IncrementalAlterConfigsRequest.API_KEY] = (
            IncrementalAlterConfigsRequest.VERSIONS
        )
        there.dc1.brokers[0].scripts |= {
            DescribeConfigsRequest.API_KEY: defaults,
            IncrementalAlterConfigsRequest.API_KEY: alter,
        }
        await there.set_aside()
        assert asked == lacking({})
        assert asked["retention.ms"] == "-1"
        assert is_all_set_aside(there)


def test_what_a_person_has_set_stays_except_compaction() -> None:
    own = {**SETTINGS, "retention.ms": "31536000000", "cleanup.policy": "compact,delete"}
    assert lacking(own) == {"cleanup.policy": "delete"}


def test_a_file_has_a_name_that_a_file_system_takes_whatever_the_topic() -> None:
    names = {
        file_name("dc2", TopicPartition("t" * 239 + last, 2**31 - 1), 2**63 - 1, UUID(int=1))
        for last in "ab"
    }
    assert len(names) == 2
    assert max(map(len, names)) < 255
    short = file_name("dc2", WHERE, 20, UUID(int=5))
    assert short == "dc2-orders-0-from-20-000000000005.jsonl"


async def test_keys_that_would_end_differently_are_counted(tmp_path: Path) -> None:
    async with staged(tmp_path) as there:
        source = there.dc1.topics["orders"].partitions[0]
        write(source, "z", OTHER, key=b"another")
        keys = await there.quarantine.count_keys(there.partition, OWN, 20)
        assert str(keys) == "1 of 1 keys end with different values"

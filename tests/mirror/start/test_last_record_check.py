"""Whether a source still holds the last record that was mirrored."""

from collections.abc import Callable, Mapping
from uuid import UUID

import pytest

from mirror.clusters.log_ends import Ends, LogEnds
from mirror.flow.flow_state import FlowState
from mirror.map.map_log import MapLog
from mirror.start.last_record_check import Anchor, WriterRegistries, anchor_of, find_rewritten
from mirror.start.log_readings import LogReadings, Tried
from mirror.start.positioning import Positioning
from mirror.start.start_position import Stop
from mirror.state.measurements import FlowMeasurements
from mirror.state.partition import MirroredPartition
from mirror.state.partition_state import PartitionState
from mirror.state.reverse_flow import ReverseFlow
from offset_translation.map_records import MirrorProducer, mirror_producer, piece_start, seal
from offset_translation.offset_map import OffsetMap
from offset_translation.runs import Place
from tests.doubles.fake_cluster import FakeCluster
from tests.doubles.map_writers import MemoryWriters
from tests.mirror.building import CONFIG
from tests.mirror.two_fakes import two_fakes
from wire.compression import Compression
from wire.errors import ErrorCode
from wire.headers import RequestHeader
from wire.messages.fetch import (
    FetchableTopicResponse,
    FetchPartitionData,
    FetchRequest,
    FetchResponse,
)
from wire.net import NetworkFault, RequestRefused
from wire.record_batch import Record, build_batch, stamp_append_time
from wire.topic_partition import TopicPartition

OURS = 7
SOURCE_STARTS = [(0, 0), (10, 4)]
"""Four records, a hole of six offsets, and then those from 10 on."""
ENDS = LogEnds(start=0, end=12), LogEnds(start=0, end=6)


def a_map() -> OffsetMap:
    return OffsetMap.from_starts(SOURCE_STARTS, target_end=6)


def a_record(offset: int, value: bytes = b"mirrored", at_ms: int = 5) -> Record:
    return Record(offset, at_ms, b"k", value, (("h", b"1"),))


def put(fake: FakeCluster, batch: bytes, end: int) -> None:
    partition = fake.create_topic("orders", 0).partitions[0]
    partition.batches.append(bytes(batch))
    partition.end = end


async def found(
    source: bytes,
    *,
    target: bytes | None = None,
    change: Callable[[FakeCluster, FakeCluster], None] = lambda _, __: None,
    reverse: ReverseFlow | None = None,
) -> Mapping[TopicPartition, Stop | RequestRefused] | NetworkFault:
    """Compare offset 11 of the source with 5 of the target, both in the middle of a batch."""
    async with two_fakes() as (dc1, dc2, links):
        put(dc1, source, 12)
        put(dc2, of_target() if target is None else target, 6)
        change(dc1, dc2)
        partition = MirroredPartition(
            "orders", 0, topic_id=UUID(int=1), offset_map=a_map(), now_ms=0
        )
        here, there = ENDS
        producer = MirrorProducer(producer_id=OURS, producer_epoch=0)
        source_ends: Ends = {TopicPartition("orders", 0): here}
        target_ends: Ends = {TopicPartition("orders", 0): there}
        try:
            return await find_rewritten(
                links,
                [partition],
                source_ends,
                target_ends,
                WriterRegistries(producer, reverse or ReverseFlow()),
            )
        except NetworkFault as fault:
            return fault  # raised, the clusters' nurseries would wrap it


def of_target(*, producer_id: int = OURS, sequence: int = 3) -> bytes:
    records = [a_record(n) for n in range(3, 6)]
    return build_batch(records, base_offset=3, producer_id=producer_id, base_sequence=sequence)


def of_source(**changed: object) -> bytes:
    records = [a_record(10, b"other"), a_record(11, **changed)]  # type: ignore[arg-type]
    return build_batch(records, base_offset=10, compression=Compression.ZSTD, producer_id=3)


@pytest.mark.parametrize(
    ("source", "target", "anchor"),
    [
        (LogEnds(start=0, end=12), LogEnds(start=0, end=6), Anchor(11, 5)),
        (LogEnds(start=0, end=10), LogEnds(start=0, end=4), Anchor(3, 3)),
        (LogEnds(start=11, end=30), LogEnds(start=5, end=6), Anchor(11, 5)),
        (LogEnds(start=12, end=30), LogEnds(start=0, end=6), None),
        (LogEnds(start=0, end=11), LogEnds(start=0, end=6), None),
        (LogEnds(start=0, end=30), LogEnds(start=6, end=6), None),
        (LogEnds(start=0, end=30), LogEnds(start=0, end=0), None),
    ],
)
def test_the_last_mirrored_record_that_both_logs_hold_is_looked_at(
    source: LogEnds, target: LogEnds, anchor: Anchor | None
) -> None:
    offset_map = a_map()
    offset_map.advance(target.end)
    assert anchor_of(offset_map, source, target) == anchor


def test_before_anything_was_mirrored_there_is_nothing_to_look_at() -> None:
    assert anchor_of(OffsetMap(), *ENDS) is None


def test_behind_a_seal_the_last_record_before_it_is_looked_at() -> None:
    sealed = a_map()
    sealed.seal(12, 6)
    sealed.advance(9)
    assert anchor_of(sealed, LogEnds(start=0, end=30), LogEnds(start=0, end=9)) == Anchor(11, 5)


async def test_the_same_record_in_another_batch_is_the_same() -> None:
    assert await found(of_source()) == {}


@pytest.mark.parametrize(
    "changed", [{"value": b"written since"}, {"at_ms": 6}], ids=["value", "time"]
)
async def test_another_record_at_its_offset_is_found(changed: dict[str, object]) -> None:
    told = await found(of_source(**changed))
    assert isinstance(told, Mapping)
    assert told.keys() == {("orders", 0)}
    stop = told[TopicPartition("orders", 0)]
    assert isinstance(stop, Stop)
    assert stop.state is PartitionState.SOURCE_WENT_BACK
    assert stop.reason.startswith("source offset 11 holds another record than was mirrored")


async def test_where_others_have_written_before_it_the_target_is_at_fault() -> None:
    told = await found(of_source(value=b"written since"), target=of_target(sequence=2))
    assert isinstance(told, Mapping)
    stop = told[TopicPartition("orders", 0)]
    assert isinstance(stop, Stop)
    assert stop.state is PartitionState.TARGET_DIVERGED
    assert "batch at target offset 3 has sequence 2: somebody else has written" in stop.reason


async def test_the_last_record_of_another_producer_must_be_the_sources() -> None:
    somebody = of_target(producer_id=OURS + 1)
    assert await found(of_source(), target=somebody) == {}
    told = await found(of_source(value=b"other"), target=somebody)
    assert isinstance(told, Mapping)
    stop = told[TopicPartition("orders", 0)]
    assert isinstance(stop, Stop)
    assert stop.state is PartitionState.TARGET_DIVERGED
    assert (
        "target offset 5 holds another record than source offset 11, by producer 8" in stop.reason
    )


BACKWARD = 9
"""The producer id of the mirror of the way back."""


def came_back(source: int, target: int) -> ReverseFlow:
    """The way back has brought the record at a source offset from this target offset."""
    reverse = ReverseFlow()
    for key, value in (
        mirror_producer(MirrorProducer(producer_id=BACKWARD, producer_epoch=0)),
        piece_start("orders", 0, place=Place(source), source_start=target),
        seal("orders", 0, source_end=target + 1, target_end=source + 1),
    ):
        reverse.replay(key, value)
    reverse.know_mirrors()
    return reverse


async def test_behind_a_failback_a_source_that_went_back_is_found_as_well() -> None:
    """Nothing would say that what lies behind is not on the target."""
    told = await found(of_source(value=b"written since"), reverse=came_back(10, 4))
    assert isinstance(told, Mapping)
    stop = told[TopicPartition("orders", 0)]
    assert isinstance(stop, Stop)
    assert stop.state is PartitionState.SOURCE_WENT_BACK


@pytest.mark.parametrize(
    ("writer", "state"),
    [
        (3, PartitionState.SOURCE_WENT_BACK),
        (BACKWARD, PartitionState.TARGET_DIVERGED),
    ],
)
async def test_what_lies_where_a_record_came_back_must_be_that_record(
    writer: int, state: PartitionState
) -> None:
    """The partition goes on behind it, and whatever else lies there would be passed over."""
    records = [a_record(10), a_record(11)]
    source = build_batch(records, base_offset=10, producer_id=writer)
    assert await found(source, reverse=came_back(10, 4)) == {}
    records = [a_record(10, b"written since"), a_record(11)]
    source = build_batch(records, base_offset=10, producer_id=writer)
    told = await found(source, reverse=came_back(10, 4))
    assert isinstance(told, Mapping)
    stop = told[TopicPartition("orders", 0)]
    assert isinstance(stop, Stop)
    assert stop.state is state


async def test_a_marker_in_the_place_of_a_record_is_found() -> None:
    marker = build_batch([a_record(11)], base_offset=11, is_control=True, is_transactional=True)
    assert await found(marker) != {}


async def test_times_that_a_broker_has_stamped_say_nothing() -> None:
    stamped = bytearray(of_source(at_ms=6))
    stamp_append_time(stamped, 99)
    assert await found(bytes(stamped)) == {}


async def test_what_cannot_be_compared_is_not_wrong() -> None:
    compacted = build_batch([a_record(12, b"behind")], base_offset=12)
    assert await found(compacted) == {}
    damaged = bytearray(of_source(value=b"written since"))
    damaged[-1] ^= 9
    assert await found(bytes(damaged)) == {}


def refusing(code: ErrorCode) -> Callable[[FakeCluster, FakeCluster], None]:
    """Let the target refuse to be read."""

    async def refuse(_: RequestHeader, request: FetchRequest) -> FetchResponse:
        [topic] = request.topics
        refused = FetchPartitionData(
            partition_index=0, error_code=code, high_watermark=-1, records=b""
        )
        answer = FetchableTopicResponse(
            topic=topic.topic, topic_id=topic.topic_id, partitions=(refused,)
        )
        return FetchResponse(responses=(answer,))

    def change(_: FakeCluster, dc2: FakeCluster) -> None:
        dc2.brokers[0].scripts[FetchRequest.API_KEY] = refuse

    return change


async def test_a_mirror_without_the_right_to_read_its_copy_goes_on() -> None:
    may_not = refusing(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert await found(of_source(value=b"written since"), change=may_not) == {}


async def test_a_log_that_is_refused_for_now_does_not_count_as_looked_at() -> None:
    told = await found(
        of_source(value=b"written since"), change=refusing(ErrorCode.UNKNOWN_SERVER_ERROR)
    )
    assert isinstance(told, Mapping)
    refused = told[TopicPartition("orders", 0)]
    assert isinstance(refused, RequestRefused)
    assert refused.code is ErrorCode.UNKNOWN_SERVER_ERROR


async def test_a_refused_partition_waits_to_be_looked_at_and_the_others_go_on() -> None:
    producer = MirrorProducer(producer_id=OURS, producer_epoch=0)
    partitions = [
        MirroredPartition("orders", index, topic_id=UUID(int=1), offset_map=a_map(), now_ms=0)
        for index in range(2)
    ]
    places = [TopicPartition("orders", 0), TopicPartition("orders", 1)]
    refused = RequestRefused("fetch of orders-0 at 5", ErrorCode.UNKNOWN_SERVER_ERROR)
    async with two_fakes() as (_, dc2, links):
        dc2.create_topic("dc1.offset-map.internal", 0)
        map_log = MapLog(links.target_admin, "dc1", 1, MemoryWriters())
        map_log._writer = producer
        flow = FlowState(config=CONFIG, measurements=FlowMeasurements("dc1->dc2"))
        for partition in partitions:
            partition.move(PartitionState.POSITIONING, 0)
        here, there = ENDS
        await Positioning(flow.for_positioning, links, map_log, MemoryWriters())._begin(
            [Tried(partition, partition.attempt) for partition in partitions],
            LogReadings(
                source=dict.fromkeys(places, here),
                target=dict.fromkeys(places, there),
                tails={},
                rewritten={places[0]: refused},
            ),
        )
    waiting, flowing = partitions
    assert waiting.state is PartitionState.WAITING
    assert "UNKNOWN_SERVER_ERROR" in waiting.status.reason
    assert not waiting.target.is_anchored
    assert flowing.state is PartitionState.STREAMING
    assert flowing.target.is_anchored


async def test_a_site_out_of_reach_is_a_fault_of_the_network() -> None:
    told = await found(of_source(), change=lambda dc1, _: dc1.brokers[0].stop())
    assert isinstance(told, NetworkFault)

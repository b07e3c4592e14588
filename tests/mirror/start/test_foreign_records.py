"""Foreign records on a target of the mirror's own: never counted, named, passed by decision."""

from collections.abc import Awaitable, Callable
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror.clusters.log_ends import LogEnds
from mirror.map.map_log import MapLog
from mirror.start.positioning import UNPLACED
from mirror.start.start_position import OwnPart, Situation, Start, Stop, decide_start
from mirror.start.start_records import map_records_of
from mirror.state.partition import MirroredPartition
from mirror.state.partition_state import PartitionState
from offset_translation.map_records import piece_start, run_start
from offset_translation.map_state import MapState
from offset_translation.offset_map import OffsetMap
from offset_translation.runs import Place
from offset_translation.tail import Tail, sure_place
from offset_translation.target_scan import Mixed, TargetScan
from runtime.configuration.flow_section import Policy
from tests.doubles.fake_cluster import FakeCluster
from tests.mirror.whole_flow import batch_at, until, values, whole_flow
from wire.record_batch import Record, build_batch, parse_header
from wire.topic_partition import TopicPartition

WHERE = TopicPartition("t", 0)
MIRROR, PLAIN, IDEMPOTENT = 7, -1, 55
SOURCE = [b"s%d" % offset for offset in range(8)]
Wrote = list[tuple[int, int]]
"""Batches in a target's order: who has written each, and how many records."""


def batches_of(wrote: Wrote) -> list[bytes]:
    """Return a target's log; the mirror brings the source's records one after the other."""
    batches, offset, place = [], 0, 0
    for writer, count in wrote:
        numbers = range(place, place + count)
        mirrored = [b"s%d" % n if writer == MIRROR else b"foreign" for n in numbers]
        records = [Record(number, 0, b"k", value) for number, value in enumerate(mirrored)]
        sequence = place if writer == MIRROR else -1 if writer == PLAIN else offset
        batches.append(
            build_batch(records, base_offset=offset, producer_id=writer, base_sequence=sequence)
        )
        offset += count
        place += count if writer == MIRROR else 0
    return batches


def left(wrote: Wrote) -> Callable[[FakeCluster, MapLog], Awaitable[None]]:
    """Leave this on the target, and the map of a flow that began at the first record."""

    async def prepare(dc2: FakeCluster, map_log: MapLog) -> None:
        target = dc2.topics["t"].partitions[0]
        target.batches, target.end = batches_of(wrote), sum(count for _, count in wrote)
        await map_log.write(lambda: [piece_start("t", 0, source_start=0, place=Place(0))])

    return prepare


SHAPES = {
    "behind": ([(MIRROR, 3), (PLAIN, 2)], "3 to 4"),
    "behind, idempotent": ([(MIRROR, 3), (IDEMPOTENT, 2)], "3 to 4"),
    "more than the source has": ([(MIRROR, 3), (PLAIN, 9)], "3 to 11"),
    "before": ([(PLAIN, 2), (MIRROR, 3)], "0 to 1"),
    "alone": ([(PLAIN, 2)], "0 to 1"),
    "alone, more than the source has": ([(IDEMPOTENT, 9)], "0 to 8"),
    "between": ([(MIRROR, 3), (PLAIN, 2), (MIRROR, 2)], "3 to 4"),
    "between, all mirrored": ([(MIRROR, 3), (PLAIN, 2), (MIRROR, 5)], "3 to 4"),
    "between and behind": (
        [(MIRROR, 3), (PLAIN, 2), (MIRROR, 2), (IDEMPOTENT, 1), (PLAIN, 1)],
        "3 to 4, 7 to 8",
    ),
}


@pytest.mark.parametrize(("wrote", "offsets"), SHAPES.values(), ids=SHAPES)
async def test_foreign_records_stop_a_partition_by_name_and_it_goes_on_by_decision(
    wrote: Wrote, offsets: str
) -> None:
    log = [batch_at(offset, value) for offset, value in enumerate(SOURCE)]
    async with whole_flow(log, len(SOURCE), 100_000, prepare=left(wrote)) as whole:
        partition = whole.partition
        await until(lambda: partition.state is PartitionState.TARGET_DIVERGED)
        told = f"the target holds offsets {offsets} that no mirror has written"
        assert partition.status.reason == told
        mirrored = sum(count for writer, count in wrote if writer == MIRROR)
        assert partition.offset_map.mirrored_source_end == mirrored
        whole.dc1.create_topic("dc2.offset-map.internal", 0)
        partition.skips.allow_once(Policy.MERGE)
        partition.retry("ordered", 0)
        whole.flow.wakeups.position_more.wake()
        await until(lambda: partition.lag_records(0) == 0)
        stayed = sum(count for _, count in wrote)
        assert values(whole.target)[stayed:] == SOURCE[mirrored:]
        partition.interrupt("another leader", 0, at_once=True)
        partition.target.lose_anchor()
        await until(lambda: partition.state is PartitionState.STREAMING)
        assert len(values(whole.target)) == stayed + len(SOURCE) - mirrored


@pytest.mark.parametrize(
    ("wrote", "cleaned"),
    [([(MIRROR, 3), (PLAIN, 2)], {4}), ([(PLAIN, 3)], {0, 2})],
    ids=["behind", "alone"],
)
async def test_no_record_is_skipped_where_a_cleaner_took_the_one_to_compare(
    wrote: Wrote, cleaned: set[int]
) -> None:
    log = [batch_at(at, value) for at, value in enumerate(SOURCE) if at not in cleaned]
    async with whole_flow(log, len(SOURCE), 100_000, prepare=left(wrote)) as whole:
        await until(lambda: whole.partition.status.state not in UNPLACED)
        assert whole.partition.state is PartitionState.TARGET_DIVERGED
        assert "that no mirror has written" in whole.partition.status.reason


def scanned(wrote: Wrote, offset_map: OffsetMap) -> Mixed:
    """Return what the batches behind the last sure place tell."""
    place, begin = sure_place(offset_map, offset_map.target_end)
    scan, tail = TargetScan(offset_map, MIRROR, {MIRROR}), Tail(offset_map, place)
    for batch in batches_of(wrote):
        header = parse_header(batch)
        if header.next_offset > begin:
            scan.take(tail, header)
    return Mixed(reached=tail.reached, runs=scan.new_runs(tail), foreign=scan.foreign)


def decided(
    state: MapState, wrote: Wrote, source_end: int, taken: OffsetMap | None
) -> Start | Stop:
    """Decide about a target's log, of which the map topic says this."""
    end = sum(count for _, count in wrote)
    offset_map = state.maps[WHERE]
    offset_map.advance(end)
    mixed = scanned(wrote, offset_map)
    seen = Situation(
        offset_map=mixed.applied_to(offset_map, end),
        source=LogEnds(start=0, end=source_end),
        target=LogEnds(start=0, end=end),
        arrived=taken,
        tail=mixed.reached,
        runs=mixed.runs,
        foreign=mixed.foreign,
        was_returned=taken is not None,
    )
    return decide_start(*WHERE, seen)


def set_aside_until(stop: int) -> OffsetMap:
    """Return the other direction's map of a flow that never ran, and passes over a part."""
    arrived = OffsetMap()
    arrived.seal(source_end=stop, target_end=0)
    arrived.advance(100)
    return arrived


BATCHES = st.tuples(st.sampled_from([MIRROR, PLAIN, IDEMPOTENT]), st.integers(1, 3))


@given(st.lists(BATCHES, min_size=1, max_size=8), st.booleans(), st.sampled_from([0, 5]))
def test_what_others_wrote_is_never_counted_and_is_decided_about_once(
    wrote: Wrote,
    is_set_aside: bool,
    announced: int,
) -> None:
    """Whether it is set aside or merged: the map alone then tells where each record lies."""
    state = MapState()
    state.replay(*piece_start(*WHERE, source_start=100, place=Place(0)))
    mirrored = sum(count for writer, count in wrote if writer == MIRROR)
    lies_at = [
        offset
        for offset, writer in enumerate(w for w, count in wrote for _ in range(count))
        if writer == MIRROR
    ]
    end = sum(count for _, count in wrote)
    decision = decided(state, wrote, 100 + mirrored + announced, None)
    if mirrored < end:
        assert isinstance(decision, Stop)
        assert decision.own is not None
        foreign = sorted(set(range(end)) - set(lies_at))
        assert decision.own == OwnPart(foreign[0], foreign[-1] + 1)
        if is_set_aside:
            taken = set_aside_until(decision.own.stop)
            decision = decided(state, wrote, 100 + mirrored + announced, taken)
        else:
            assert decision.skip_to is not None
            decision = decision.skip_to
    assert isinstance(decision, Start)
    assert (decision.source, decision.place) == (100 + mirrored, mirrored)
    partition = MirroredPartition(
        *WHERE, topic_id=UUID(int=1), offset_map=state.maps[WHERE], now_ms=0
    )
    for record in map_records_of(partition, decision):
        state.replay(*record)
    assert not state.contradictions
    offset_map = state.maps[WHERE]
    offset_map.advance(end)
    assert offset_map.mirrored_source_end == 100 + mirrored
    assert [offset_map.runs.start_of(Place(place)) for place in range(mirrored)] == lies_at
    assert offset_map.writing_end == end
    assert not scanned(wrote, offset_map).foreign, "nothing is asked a second time"


def test_a_run_that_was_announced_gives_way_to_where_the_batch_lies() -> None:
    """A returned site was written to between the announcement and the mirror's first batch."""
    wrote = [(PLAIN, 10), (PLAIN, 4), (MIRROR, 3)]
    state, taken = MapState(), OffsetMap()
    state.replay(*piece_start(*WHERE, source_start=50, place=Place(0)))
    state.replay(*run_start(*WHERE, place=Place(0), target_start=10))
    taken.seal(source_end=10, target_end=40)
    taken.advance(60)
    stop = decided(state, wrote, 60, taken)
    assert isinstance(stop, Stop)
    assert "offsets 10 to 13 that no mirror" in stop.reason
    assert stop.own == OwnPart(10, 14)
    taken.seal(source_end=14, target_end=40)
    start = decided(state, wrote, 60, taken)
    assert isinstance(start, Start)
    assert (start.source, start.place, start.runs) == (53, 3, ((Place(0), 14),))

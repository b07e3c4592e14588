"""A source leader moves while what the old one sent still waits for the map."""

from typing import Any
from uuid import UUID

import trio
from trio.testing import wait_all_tasks_blocked

from mirror.flow.flow_state import FlowState
from mirror.forward.routing import RECORDS_AT_ONCE
from mirror.forward.source import SourceFetcher
from mirror.state.batches import Cursor
from mirror.state.measurements import FlowMeasurements
from mirror.state.partition import MirroredPartition
from mirror.state.partition_state import PartitionState
from offset_translation.offset_map import OffsetMap
from offset_translation.runs import Place
from tests.mirror.building import CONFIG, Taken, way_of
from tests.mirror.forward.slow_map import SlowMap
from tests.mirror.whole_flow import batch_at
from wire.hot.fetch import Fetched, FetchedPartition
from wire.record_batch import Record, build_batch


def answer(*offsets: int) -> Fetched:
    records = memoryview(b"".join(batch_at(offset, b"v") for offset in offsets))
    end = offsets[-1] + 1
    return Fetched(0, 0, 0, [("t", [FetchedPartition(0, 0, end, end, 0, (), -1, records)])])


def flow_of_one() -> tuple[FlowState, MirroredPartition]:
    """Return a flow, and its one partition, which is read from broker 1 from the start."""
    flow = FlowState(config=CONFIG, measurements=FlowMeasurements("dc1->dc2"))
    partition = MirroredPartition(
        "t", 0, topic_id=UUID(int=1), offset_map=OffsetMap.from_starts([(0, 0)], 0), now_ms=0
    )
    flow.partitions.take(partition)
    partition.leaders.follow_source(1, -1)
    partition.move(PartitionState.POSITIONING, 0)
    partition.go_on(Cursor(0, Place(0), 0), 0)
    return flow, partition


async def test_what_another_leader_sends_does_not_overtake_what_waits_for_the_map() -> None:
    flow, partition = flow_of_one()
    taken = Taken()
    map_log: Any = SlowMap()
    links: Any = None
    before, after = (
        SourceFetcher(node, flow.for_fetching, links, way_of(map_log, taken)) for node in (1, 2)
    )
    before._plan.update()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(before._take, answer(0, 5))
        await wait_all_tasks_blocked()
        partition.leaders.follow_source(2, -1)
        after._plan.update()
        assert not after._plan.asked
        assert not after._plan.is_complete
        # What it was asked before, as if both had been asked at the same time.
        after._plan.asked = before._plan.asked
        after._plan._keys = before._plan._keys
        await after._take(answer(0, 5, 6))
        assert taken.places == []
        map_log.may_write.set()
    after._plan.update()
    assert [one.offset for one in after._plan.asked.values()] == [6]
    await after._take(answer(6))
    assert taken.places == [0, 1, 2]


async def test_a_damaged_chunk_with_holes_leaves_nothing_waiting() -> None:
    flow, partition = flow_of_one()
    flow.reverse.arrived.producer_ids.add(9)
    flow.reverse.know_mirrors()
    map_log: Any = SlowMap()
    map_log.may_write.set()
    links: Any = None
    fetcher = SourceFetcher(1, flow.for_fetching, links, way_of(map_log, Taken()))
    mirrored = bytearray(
        build_batch([Record(0, 0, None, b"v")], producer_id=9, producer_epoch=0, base_sequence=0)
    )
    damaged = batch_at(1, b"v")[:-1] + b"\xff"
    records = memoryview(bytes(mirrored) + damaged)
    fetcher._plan.update()
    await fetcher._take(
        Fetched(0, 0, 0, [("t", [FetchedPartition(0, 0, 2, 2, 0, (), -1, records)])])
    )
    assert partition.state is PartitionState.WAITING
    partition.move(PartitionState.POSITIONING, 0)
    partition.go_on(Cursor(0, Place(0), 0), 0)
    fetcher._plan.update()
    assert [one.offset for one in fetcher._plan.asked.values()] == [0]


async def test_a_chunk_that_takes_long_is_routed_beside_the_loop_and_nothing_overtakes_it() -> None:
    """Leases run out while the loop stands still, and the flow never gets further."""
    flow, _ = flow_of_one()
    taken = Taken()
    map_log: Any = SlowMap()
    map_log.may_write.set()
    links: Any = None
    fetcher = SourceFetcher(1, flow.for_fetching, links, way_of(map_log, taken))
    fetcher._plan.update()
    records = [Record(offset, 5, None, b"") for offset in range(0, 4 * RECORDS_AT_ONCE, 2)]
    chunk = memoryview(build_batch(records))
    end = records[-1].offset + 1
    fetched = Fetched(0, 0, 0, [("t", [FetchedPartition(0, 0, end, end, 0, (), -1, chunk)])])
    await fetcher._take(fetched)
    assert taken.places == [], "nothing was done in the loop"
    fetcher._plan.update()
    assert not fetcher._plan.asked, "what comes behind waits"
    async with trio.open_nursery() as nursery:
        nursery.start_soon(fetcher._route_beside)
        with trio.fail_after(30):
            await flow.wakeups.fetch_more.wait(30)
        nursery.cancel_scope.cancel()
    fetcher._plan.update()
    assert [one.offset for one in fetcher._plan.asked.values()] == [end]
    assert sum(one.record_count for _, routed in taken.all for one in routed.forwards) == len(
        records
    )


async def test_a_heavy_chunk_of_before_an_interruption_is_dropped() -> None:
    flow, partition = flow_of_one()
    taken = Taken()
    map_log: Any = SlowMap()
    links: Any = None
    fetcher = SourceFetcher(1, flow.for_fetching, links, way_of(map_log, taken))
    fetcher._plan.update()
    records = [Record(offset, 5, None, b"") for offset in range(0, 4 * RECORDS_AT_ONCE, 2)]
    chunk = memoryview(build_batch(records))
    end = records[-1].offset + 1
    fetched = Fetched(0, 0, 0, [("t", [FetchedPartition(0, 0, end, end, 0, (), -1, chunk)])])
    await fetcher._take(fetched)
    flow.interruptions.interrupt(partition, "a test", 1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(fetcher._route_beside)
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert taken.places == []

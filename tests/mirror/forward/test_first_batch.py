"""A target that has forgotten us takes any sequence: nothing is sent behind what it may refuse."""

from collections.abc import Iterable

import trio

from mirror.flow.flow_state import FlowState
from mirror.forward.target import TargetLane
from mirror.state.in_flight import REMEMBERED_MS
from mirror.state.partition import MirroredPartition
from mirror.state.partition_state import PartitionState
from tests.mirror.building import flow_with
from tests.mirror.forward.first_batches import answer_first_with, forward
from tests.mirror.two_fakes import two_fakes
from wire.errors import ErrorCode
from wire.record_batch import parse_header

COUNT = 5


async def sent(*codes: ErrorCode) -> tuple[MirroredPartition, list[bytes], list[int]]:
    """Send five batches, which are ready at once; return what the target holds of them."""
    async with two_fakes() as (_, dc2, links):
        log = dc2.create_topic("t", 0).partitions[0]
        seen = answer_first_with(dc2, *codes)
        flow, partition = flow_with()
        line = TargetLane(0, 0, flow.for_producing, links)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(line.run)
            await _send(flow, partition, line, range(COUNT))
            nursery.cancel_scope.cancel()
        assert flow.budget.total == partition.in_flight.bytes == 0
        return partition, log.batches, seen


async def test_behind_a_first_batch_that_is_refused_nothing_is_sent() -> None:
    partition, batches, seen = await sent(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert batches == []
    assert seen == [1]
    assert partition.state is PartitionState.WAITING


async def test_behind_a_first_batch_that_is_taken_all_the_others_follow_in_order() -> None:
    partition, batches, seen = await sent()
    assert [parse_header(batch).base_sequence for batch in batches] == list(range(COUNT))
    assert seen == [1] * COUNT
    assert partition.offset_map.mirrored_target_end == COUNT


async def test_each_attempt_begins_with_a_batch_alone() -> None:
    partition, _, _ = await sent()
    assert partition.in_flight.is_taken
    partition.interrupt("the target was away", 0)
    assert not partition.in_flight.is_taken


async def test_over_each_new_connection_the_first_batch_goes_alone_also_of_who_was_idle() -> None:
    async with two_fakes() as (_, dc2, links):
        log = dc2.create_topic("t", 0).partitions[0]
        flow, partition = flow_with()
        partition.leaders.follow_target(0)
        line = TargetLane(0, 0, flow.for_producing, links)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(line.run)
            await _send(flow, partition, line, range(COUNT))
            restarted = await links.target_data.connection(0)
            restarted.close("the broker restarts")
            assert partition.is_flowing, "nothing was under way, so nothing was interrupted"
            seen = answer_first_with(dc2, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            await _send(flow, partition, line, range(COUNT, 2 * COUNT))
            nursery.cancel_scope.cancel()
    assert len(log.batches) == COUNT, "what was taken behind the refused one lies behind a gap"
    assert seen == [1]
    assert partition.state is PartitionState.WAITING


async def test_behind_a_long_rest_the_first_batch_goes_alone_over_the_same_connection() -> None:
    async with two_fakes() as (_, dc2, links):
        log = dc2.create_topic("t", 0).partitions[0]
        flow, partition = flow_with()
        line = TargetLane(0, 0, flow.for_producing, links)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(line.run)
            await _send(flow, partition, line, range(COUNT))
            partition.in_flight.begin(partition.in_flight.progress_ms - REMEMBERED_MS)
            seen = answer_first_with(dc2, ErrorCode.MESSAGE_TOO_LARGE)
            await _send(flow, partition, line, range(COUNT, 2 * COUNT))
            nursery.cancel_scope.cancel()
    assert len(log.batches) == COUNT, "what was taken behind the refused one lies behind a gap"
    assert seen == [1]
    assert partition.state is PartitionState.RECORD_TOO_LARGE


async def _send(
    flow: FlowState, partition: MirroredPartition, line: TargetLane, places: Iterable[int]
) -> None:
    """Send batches that are ready at once, and return when all are answered."""
    partition.in_flight.enqueue([forward(place) for place in places])
    line.put(partition)
    with trio.fail_after(10):
        while not partition.in_flight.is_settled:
            await flow.wakeups.settled.wait(0.05)

"""Of joined batches one may be refused: the others are not to share what becomes of it."""

import pytest
import trio

from mirror.forward.target import TargetLane
from mirror.state.partition_state import PartitionState
from mirror.state.retries import FIRST_ALONE_MS, MOST_ALONE_MS, Joins
from runtime.process.clock import now_ms
from tests.mirror.building import flow_with
from tests.mirror.forward.first_batches import answer_first_with, forward
from tests.mirror.two_fakes import two_fakes
from wire.errors import ErrorCode

REFUSALS = [
    (ErrorCode.MESSAGE_TOO_LARGE, PartitionState.RECORD_TOO_LARGE),
    (ErrorCode.INVALID_TIMESTAMP, PartitionState.TARGET_REFUSED),
    (ErrorCode.INVALID_RECORD, PartitionState.TARGET_REFUSED),
]


@pytest.mark.parametrize(("code", "state"), REFUSALS)
@pytest.mark.parametrize("joined", [1, 4])
async def test_what_is_refused_of_joined_batches_is_sent_again_each_by_itself(
    code: ErrorCode, state: PartitionState, joined: int
) -> None:
    async with two_fakes() as (_, dc2, links):
        dc2.create_topic("t", 0)
        answer_first_with(dc2, code)
        flow, partition = flow_with()
        line = TargetLane(0, 0, flow.for_producing, links)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(line.run)
            partition.in_flight.enqueue([forward(0)._replace(joined=joined)])
            line.put(partition)
            with trio.fail_after(10):
                while not partition.in_flight.is_settled:
                    await flow.wakeups.settled.wait(0.05)
            nursery.cancel_scope.cancel()
    assert partition.retries.joins.are_allowed(now_ms()) is (joined == 1)
    assert partition.state is (state if joined == 1 else PartitionState.WAITING)


def test_batches_are_joined_again_after_a_while_and_ever_later_where_they_are_refused_again() -> (
    None
):
    joins, at, waits = Joins(), 0, []
    assert joins.are_allowed(at)
    for _ in range(10):
        joins.refuse(at)
        refused_at = at
        while not joins.are_allowed(at):
            at += FIRST_ALONE_MS
        waits.append(at - refused_at)
    assert waits[:3] == [FIRST_ALONE_MS, 2 * FIRST_ALONE_MS, 4 * FIRST_ALONE_MS]
    assert waits[-2:] == [MOST_ALONE_MS, MOST_ALONE_MS]

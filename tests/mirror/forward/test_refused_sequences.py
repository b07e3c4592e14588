"""A sequence that is refused try after try stops a partition; one refused now and then does not."""

import pytest

from mirror.forward.produce_answers import DIVERGED_AFTER_MS, ProduceAnswers
from mirror.forward.ready_line import ReadyLine
from mirror.state.batches import Cursor, Forward
from mirror.state.partition_state import PartitionState
from offset_translation.runs import Place
from tests.mirror.building import flow_with
from wire.errors import ErrorCode
from wire.hot.produce import Appended

HOUR_MS = 3_600_000
REFUSED = Appended(0, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)


@pytest.mark.parametrize(
    ("times_ms", "state"),
    [
        ((0,), PartitionState.WAITING),
        # An answer that was lost, an hour without records, and again one.
        ((0, HOUR_MS), PartitionState.WAITING),
        # In between the target was away.
        ((0, 2_000, 50_000), PartitionState.WAITING),
        (tuple(range(0, DIVERGED_AFTER_MS + 5_001, 5_000)), PartitionState.TARGET_DIVERGED),
    ],
)
def test_only_refusals_in_a_row_tell_that_others_write_there(
    times_ms: tuple[int, ...], state: PartitionState
) -> None:
    flow, partition = flow_with()
    answers = ProduceAnswers(0, flow.for_producing, ReadyLine(0))
    forward = Forward(Place(0), 1, 1, 0, 1, (b"",))
    for now_ms in times_ms:
        if not partition.is_flowing:
            partition.move(PartitionState.POSITIONING, now_ms)
            partition.go_on(Cursor(0, Place(0), 0), now_ms)
        answers._refuse(partition, forward, REFUSED, now_ms)
    assert partition.state is state
    assert partition.retries.sequence_refused_since_ms is not None

"""What a partition says of the batch that the target has refused, and stopped it for."""

import pytest

from mirror.forward.produce_answers import ProduceAnswers
from mirror.forward.ready_line import ReadyLine
from mirror.state.batches import Cursor, Forward
from mirror.state.partition_state import PartitionState
from offset_translation.runs import Place
from tests.mirror.building import flow_with
from wire.errors import ErrorCode
from wire.hot.produce import Appended

PLACE = 7
TOO_LARGE = Appended(0, ErrorCode.MESSAGE_TOO_LARGE, -1)


@pytest.mark.parametrize("others", [0, 5])
def test_the_target_offset_that_is_named_counts_the_records_of_others_before_it(
    others: int,
) -> None:
    flow, partition = flow_with()
    if others:
        partition.offset_map.begin_run(Place(PLACE), PLACE + others)
    partition.interrupt("to go on behind others", 0)
    partition.move(PartitionState.POSITIONING, 0)
    partition.go_on(Cursor(PLACE, Place(PLACE), 0), 0)
    assert partition.target.shift == others
    forward = Forward(Place(PLACE), 1, PLACE + 1, 0, 40, (b"",))
    ProduceAnswers(0, flow.for_producing, ReadyLine(0))._refuse(partition, forward, TOO_LARGE, 0)
    assert partition.status.reason == (
        f"target offset {PLACE + others}, 40 bytes: target: MESSAGE_TOO_LARGE"
    )

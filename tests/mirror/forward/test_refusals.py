"""What a partition says of the batch that the target has refused, and stopped it for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror.forward.produce_answers import ProduceAnswers
from mirror.forward.ready_line import ReadyLine
from mirror.forward.refusals import MESSAGE_LENGTH, NAMED, describe_records
from mirror.state.batches import Cursor, Forward
from mirror.state.partition_state import PartitionState
from offset_translation.runs import Place
from tests.mirror.building import flow_with
from wire.errors import ErrorCode
from wire.hot.produce import Appended
from wire.messages.produce import BatchIndexAndErrorMessage

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


def named(*indexes: int, message: str | None = "no key") -> tuple[BatchIndexAndErrorMessage, ...]:
    return tuple(
        BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=message)
        for index in indexes
    )


def test_the_records_that_a_broker_names_are_told_by_source_offset() -> None:
    text = describe_records(named(1, 3), 4, 100)
    assert text == "source offset 101: no key; source offset 103: no key"
    assert describe_records(named(2, message=None), 4, None) == "record 2 of the batch"
    assert describe_records((), 4, 100) == ""


@given(st.lists(st.integers(-(2**31), 2**31 - 1), max_size=20), st.text(max_size=500))
def test_whatever_a_broker_names_the_text_is_short_and_names_records_of_the_batch(
    indexes: list[int], message: str
) -> None:
    own = [index for index in indexes if 0 <= index < 10]
    text = describe_records(named(*indexes, message=message), 10, 100)
    assert len(text) < (NAMED + 1) * (MESSAGE_LENGTH + 40)
    assert all(f"source offset {100 + index}" in text for index in own[:NAMED])
    assert bool(text) == bool(own)

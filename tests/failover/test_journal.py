"""The journal's JSON: what is written is what is read, by us and by whoever reads the witness."""

import json

import pytest
from hypothesis import given

from failover.journal import (
    Facts,
    Journal,
    JournalUnreadable,
    PartitionEnds,
    begin_step,
    decode_journal,
    encode_journal,
    end_step,
    taken_on,
    turn_back,
)
from failover.steps import Direction, PromotionKind, StepName, StepState
from tests.failover.strategies import journals

EMPTY = Journal(epoch=3, site="dc2", source="dc1", kind=PromotionKind.PLANNED, started_ms=1_000)


@given(journals())
def test_a_journal_survives_its_json(journal: Journal) -> None:
    assert decode_journal(encode_journal(journal)) == journal


def test_the_document_is_what_the_audit_reads() -> None:
    ends = PartitionEnds(
        topic="orders", partition=0, mirrored_source_end=1042, target_end=1040, source_end=None
    )
    journal = Journal(
        epoch=3,
        site="dc2",
        source="dc1",
        kind=PromotionKind.SOURCE_LOST,
        started_ms=1_000,
        switched_ms=3_500,
        partitions=(ends,),
    )
    assert journal.rto_ms == 2_500
    assert json.loads(encode_journal(journal)) == {
        "epoch": 3,
        "site": "dc2",
        "source": "dc1",
        "kind": "source-lost",
        "state": "running",
        "direction": "forward",
        "reason": None,
        "started_ms": 1_000,
        "switched_ms": 3_500,
        "partitions": [
            {
                "topic": "orders",
                "partition": 0,
                "mirrored_source_end": 1042,
                "target_end": 1040,
                "source_end": None,
            }
        ],
        "steps": [],
    }


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{}", b"\xff", encode_journal(EMPTY).replace(b"planned", b"lunched")]
)
def test_what_is_no_journal_is_refused(data: bytes) -> None:
    with pytest.raises(JournalUnreadable):
        decode_journal(data)


def test_a_step_begun_again_keeps_its_first_start_and_its_facts() -> None:
    journal = begin_step(EMPTY, StepName.DRAIN, 10)
    again = begin_step(journal, StepName.DRAIN, 99)
    ended = end_step(again, StepName.DRAIN, state=StepState.DONE, facts={"records": 5}, now_ms=100)
    record = ended.record(StepName.DRAIN)
    assert record is not None
    assert (record.started_ms, record.ended_ms, record.facts) == (10, 100, {"records": 5})


def test_the_first_reason_for_going_back_stays() -> None:
    journal = turn_back(turn_back(EMPTY, "drain: too slow"), "another")
    assert (journal.direction, journal.reason) == (Direction.BACK, "drain: too slow")


def test_a_promotion_takes_on_what_another_has_begun_and_what_the_target_was_before() -> None:
    journal = EMPTY
    facts: Facts = {"topics": {"orders": 1}, "fence": ["orders"]}
    for step in (StepName.PREFLIGHT, StepName.ANNOUNCE, StepName.FENCE, StepName.DRAIN):
        journal = begin_step(journal, step, 7)
        journal = end_step(journal, step, state=StepState.DONE, facts=facts, now_ms=8)
    journal = begin_step(journal, StepName.STOP_FLOW, 9)
    steps = taken_on(journal, PromotionKind.SOURCE_LOST)
    assert [(one.name, one.state, one.facts) for one in steps] == [
        (StepName.PREFLIGHT, StepState.STARTED, facts),
        (StepName.STOP_FLOW, StepState.STARTED, {}),
        (StepName.FENCE, StepState.STARTED, {}),
    ]
    journal = end_step(journal, StepName.FENCE, state=StepState.UNDONE, facts={}, now_ms=9)
    assert StepName.FENCE not in [one.name for one in taken_on(journal, PromotionKind.SOURCE_LOST)]


def test_the_step_begun_last_is_the_last_one() -> None:
    journal = begin_step(begin_step(EMPTY, StepName.PREFLIGHT, 1), StepName.FENCE, 2)
    journal = begin_step(journal, StepName.PREFLIGHT, 3)
    assert [(one.name, one.started_ms) for one in journal.steps] == [
        (StepName.FENCE, 2),
        (StepName.PREFLIGHT, 1),
    ]

"""The journal's JSON: what is written is what is read, by us and by whoever reads the witness."""

import json
from dataclasses import replace

import pytest
from hypothesis import given

from failover.journal.facts import Facts
from failover.journal.journal import (
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
from failover.journal.steps import Direction, PromotionKind, StepName, StepState
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
        "given": [],
    }


def test_a_journal_of_an_earlier_version_names_nobody() -> None:
    document = json.loads(encode_journal(EMPTY))
    del document["given"]
    assert decode_journal(json.dumps(document).encode()) == EMPTY


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


def test_a_journal_of_an_earlier_version_says_what_moves() -> None:
    """These bytes were written before the facts of a step were typed."""
    journal = decode_journal(
        b'{"epoch":3,"site":"dc2","source":"dc1","kind":"planned","state":"running",'
        b'"direction":"forward","reason":null,"started_ms":1000,"switched_ms":null,'
        b'"partitions":[],"steps":['
        b'{"name":"preflight","state":"done","started_ms":1,"ended_ms":2,'
        b'"facts":{"topics":{"orders":2},"fence":["orders"]}},'
        b'{"name":"fence","state":"done","started_ms":3,"ended_ms":4,'
        b'"facts":{"fenced":true,"partitions":3,"topics":{"new":1,"orders":2}}},'
        b'{"name":"drain","state":"done","started_ms":5,"ended_ms":6,'
        b'"facts":{"records":7,"starts":{"orders":{"0":0,"1":2}},"ends":{"orders":{"0":7,"1":2}}}}'
        b"]}"
    )
    assert list(map(str, journal.moving)) == ["new-0", "orders-0", "orders-1"]
    assert journal.preflight.target_fence == ("orders",)
    assert journal.drain.starts == {("orders", 0): 0, ("orders", 1): 2}
    assert journal.drain.ends == {("orders", 0): 7, ("orders", 1): 2}


def test_of_a_lost_source_only_what_the_target_has_moves() -> None:
    journal = EMPTY
    for step, topics in ((StepName.PREFLIGHT, {"orders": 1}), (StepName.FENCE, {"new": 1})):
        journal = begin_step(journal, step, 0)
        facts: Facts = {"topics": topics}
        journal = end_step(journal, step, state=StepState.DONE, facts=facts, now_ms=0)
    assert journal.moving == (("new", 0),)
    assert replace(journal, kind=PromotionKind.SOURCE_LOST).moving == (("orders", 0),)


def test_a_journal_without_a_preflight_does_not_say_what_moves() -> None:
    with pytest.raises(JournalUnreadable, match="preflight does not say which topics move"):
        EMPTY.moving  # noqa: B018 - reading it is what fails


@pytest.mark.parametrize(
    ("step", "facts", "why"),
    [
        (StepName.PREFLIGHT, {"topics": ["orders"]}, "step preflight: topics is not an object"),
        (StepName.PREFLIGHT, {"topics": {"orders": "2"}}, "topics.orders is not a whole number"),
        (StepName.PREFLIGHT, {"topics": {"orders": True}}, "topics.orders is not a whole number"),
        (StepName.PREFLIGHT, {"topics": {"orders": -1}}, "topics.orders is not a whole number"),
        (StepName.PREFLIGHT, {"fence": "orders"}, "step preflight: fence is not a list"),
        (StepName.PREFLIGHT, {"fence": [7]}, "step preflight: fence holds more than names"),
        (StepName.FENCE, {"topics": None}, "step fence: topics is not an object"),
        (StepName.DRAIN, {"ends": {"orders": 7}}, "step drain: ends.orders is not an object"),
        (StepName.DRAIN, {"ends": {"orders": {"x": 7}}}, "ends.orders names no partition"),
        (StepName.DRAIN, {"starts": {"orders": {"0": 1.5}}}, "starts.orders.0 is not a whole"),
    ],
)
def test_a_fact_that_decides_and_makes_no_sense_is_refused_by_name(
    step: StepName, facts: Facts, why: str
) -> None:
    journal = begin_step(EMPTY, step, 0)
    journal = end_step(journal, step, state=StepState.DONE, facts=facts, now_ms=0)
    with pytest.raises(JournalUnreadable, match=why):
        decode_journal(encode_journal(journal))

"""What somebody agreed to is what is done: anything worse by then is refused."""

from dataclasses import replace

from failover.journal.journal import turn_back
from failover.journal.steps import PromotionKind
from failover.planning.agreed import question, why_not_agreed
from failover.planning.loss import Loss, PartitionLoss
from failover.planning.plan import Plan, Resume, decide
from tests.failover.journals import begun
from tests.failover.plans import ALL_WELL, PLANNED
from wire.topic_partition import TopicPartition

FOUND = decide(ALL_WELL, PLANNED)
assert isinstance(FOUND, Plan)
PLAN: Plan = FOUND


def losing(records: int | None, *, age_s: float | None = 1.0) -> Plan:
    """A plan that gives up so many records of a partition; None: nobody knows how many."""
    one = PartitionLoss(
        partition=TopicPartition("orders", 0),
        known_end=100,
        mirrored=None if records is None else 100 - records,
        seconds=1.0,
        may_have_gone_on=False,
    )
    loss = Loss(partitions=(one,), age_s=age_s)
    return replace(PLAN, kind=PromotionKind.SOURCE_LOST, loss=loss)


def test_the_question_names_what_is_closed_and_what_is_given_up() -> None:
    assert question(PLAN) == "Close 1 topics of dc1 for writes, and make dc2 the active site?"
    assert question(losing(7)) == "Give up 7 records of dc1, and make dc2 the active site?"
    assert question(losing(None)) == (
        "Give up at least 0 records of dc1 (of 1 partitions it is not known how many), and make"
        " dc2 the active site?"
    )
    assert question(losing(None, age_s=None)) == (
        "Give up what dc2 lacks of dc1, which is not known, and make dc2 the active site?"
    )
    going_on = Resume(journal=begun())
    assert question(going_on) == "Go on with the planned promotion of dc2, epoch 1?"
    back = Resume(journal=turn_back(begun(), "by hand"))
    assert question(back) == "Take back the planned promotion of dc2?"


def test_what_is_no_worse_than_what_was_agreed_to_is_done() -> None:
    assert why_not_agreed(PLAN, replace(PLAN, lag=10**6, epoch=9)) is None
    assert why_not_agreed(losing(7), losing(7)) is None
    assert why_not_agreed(losing(7), losing(5)) is None
    assert why_not_agreed(losing(None), losing(None)) is None


def test_what_is_worse_than_what_was_agreed_to_is_not_done() -> None:
    assert why_not_agreed(losing(7), losing(9)) == "2 records more would be lost than were shown"
    assert why_not_agreed(losing(0), losing(None)) == (
        "it is not known of 1 partitions how much would be lost"
    )
    warned = replace(PLAN, warnings=("group a has 1 members on dc2",))
    assert why_not_agreed(PLAN, warned) == "there is a new warning: group a has 1 members on dc2"
    assert why_not_agreed(warned, PLAN) is None
    assert why_not_agreed(PLAN, replace(PLAN, source="dc3")) == "dc3 is the active site now"
    going_on = Resume(journal=begun())
    assert why_not_agreed(PLAN, going_on) == "another promotion is under way"
    assert why_not_agreed(going_on, Resume(journal=turn_back(begun(), "by hand"))) == (
        "another promotion is under way"
    )
    assert why_not_agreed(going_on, going_on) is None

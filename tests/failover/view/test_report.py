"""The lines a promotion prints."""

from dataclasses import asdict, replace

import pytest

from failover.commands.promotion import exit_status
from failover.hooks.called import Called
from failover.journal.execute import StepReport
from failover.journal.facts import Facts, JsonValue
from failover.journal.journal import Journal, begin_step, end_step, turn_back
from failover.journal.steps import UNDOABLE, PromotionKind, PromotionState, StepName, StepState
from failover.view.report import (
    LEFT,
    has_slipped,
    hooks_left,
    left_steps,
    step_line,
    summary,
)
from tests.failover.journals import begun, ended_promotion


def test_a_step_has_one_line_with_its_seconds() -> None:
    facts: Facts = {"fenced": True, "partitions": 12}
    report = StepReport(step=StepName.FENCE, state=StepState.DONE, duration_ms=210, facts=facts)
    assert step_line(report) == "fence         done       0.21 s   12 partitions refuse writes"


def test_a_failed_step_says_why() -> None:
    report = StepReport(
        step=StepName.DRAIN, state=StepState.FAILED, duration_ms=60_000, facts={}, reason="slow"
    )
    assert step_line(report) == "drain         failed    60.00 s   slow"


def test_a_planned_promotion_ends_with_its_rto_and_every_groups_positions() -> None:
    journal = ended_promotion(
        PromotionKind.PLANNED,
        {
            StepName.DRAIN: {"records": 120},
            StepName.GROUPS_MOVE: {
                "positions": {"billing": {"orders": {"0": 40, "1": 7}}},
                "left": {"other": "orders-0: busy (1 partitions)"},
                "cut": {"billing": "orders-0 begins at 40 (1 partitions)"},
                "unstable": ["billing"],
            },
        },
    )
    assert list(summary(journal, None)) == [
        "dc2 is active (epoch 1), RTO 2.25 s",
        "  drained  120 records behind the fence",
        "  group    billing: orders-0@40 orders-1@7",
        "  group    other was left as it is: orders-0: busy (1 partitions)",
        (
            "  group    billing goes on behind records that dc2 has lost to retention: orders-0"
            " begins at 40 (1 partitions)"
        ),
        (
            "  group    billing goes on before what a transaction on dc1 that is still open may"
            " commit"
        ),
    ]


def test_where_groups_stand_is_told_by_the_last_look_before_the_switch() -> None:
    last: Facts = {
        "partitions": 1,
        "positions": {"billing": {"orders": {"0": 12}}},
        "left": {},
        "cut": {"billing": "orders-0 begins at 12 (1 partitions)"},
    }
    facts: dict[StepName, Facts] = {
        StepName.DRAIN: {"records": 0},
        StepName.GROUPS_MOVE: {"positions": {"billing": {"orders": {"0": 5}}}, "left": {}},
        StepName.VERIFY_FENCE: last,
    }
    assert list(summary(ended_promotion(PromotionKind.PLANNED, facts), None))[2:] == [
        "  group    billing: orders-0@12",
        (
            "  group    billing goes on behind records that dc2 has lost to retention: orders-0"
            " begins at 12 (1 partitions)"
        ),
    ]


@pytest.mark.parametrize(("ahead", "status"), [({"billing": 1}, 1), ({}, 0)])
def test_a_group_that_may_pass_over_records_makes_the_exit_status_one(
    ahead: dict[str, JsonValue], status: int
) -> None:
    """It may have been rewound on the old site, just before it moved."""
    facts: dict[StepName, Facts] = {
        StepName.DRAIN: {"records": 0},
        StepName.VERIFY_FENCE: {"positions": {}, "left": {}, "ahead": ahead},
    }
    assert exit_status(ended_promotion(PromotionKind.PLANNED, facts)) == status


def test_a_log_of_the_old_site_that_became_shorter_is_named_and_is_not_well() -> None:
    shrunk: Facts = {"topic": "orders", "partition": 0, "drained": 20, "end": 3}
    facts: dict[StepName, Facts] = {
        StepName.DRAIN: {"records": 0},
        StepName.GROUPS_MOVE: {"positions": {}, "left": {}},
        StepName.CONFIRM: {"appended": [], "shrunk": [shrunk]},
    }
    ended = ended_promotion(PromotionKind.PLANNED, facts)
    assert has_slipped(ended)
    assert list(summary(ended, None))[2:] == [
        (
            "  warning  dc1 orders-0 ends at 3, and 20 was drained: dc1 has lost records since; dc2"
            " has them"
        )
    ]


def test_groups_that_stood_behind_the_end_of_a_log_are_named_behind_a_disaster() -> None:
    facts: dict[StepName, Facts] = {
        StepName.FENCE: {"fenced": True},
        StepName.SEAL: {"stray": {"g": "it stood at 18 in orders-0"}, "stray_unknown": "no answer"},
    }
    said = list(summary(ended_promotion(PromotionKind.SOURCE_LOST, facts), None))
    assert "  group    g: it stood at 18 in orders-0" in said
    assert any("whether groups stand behind the ends of dc2's logs is not known" in o for o in said)


def test_what_plain_consumers_commit_late_is_named_with_what_to_do() -> None:
    facts: dict[StepName, Facts] = {
        StepName.DRAIN: {"records": 0},
        StepName.GROUPS_MOVE: {"positions": {}, "left": {}},
        StepName.CONFIRM: {"not_carried": {"billing": 3}, "still_members": {"billing": 1}},
    }
    assert list(summary(ended_promotion(PromotionKind.PLANNED, facts), None))[2:] == [
        (
            "  group    billing has committed on dc1 late, and has members on dc2: 3 positions were"
            " not carried over, and what lies between is read again"
        ),
        (
            "  group    billing still has 1 member on dc1: what they commit there counts no more;"
            " stop them and start them on dc2"
        ),
    ]


def test_a_lost_source_ends_with_what_is_known_to_be_there_and_a_warning() -> None:
    facts: dict[StepName, Facts] = {
        StepName.PREFLIGHT: {"topics": {"orders": 1}, "unmirrored": {"new": 3}},
        StepName.FENCE: {"fenced": False, "why": "no answer"},
    }
    assert list(summary(ended_promotion(PromotionKind.SOURCE_LOST, facts), None)) == [
        "dc2 is active (epoch 1), RTO 2.25 s",
        "  orders-0: mirrored up to dc1 offset 42 (dc2 40)",
        "  new: 3 partitions of dc1 are not on dc2 at all",
        "  warning  dc1 could not be fenced: no answer",
        (
            "  warning  keep dc1 down, or `failover serve` up, which closes it for writes when it"
            " is back"
        ),
        (
            "  warning  what dc1 acknowledged beyond these offsets is missing on dc2; once dc1 is"
            " back, `spark-audit run` lists each record"
        ),
    ]


def taken_back(*attempts: Facts) -> Journal:
    """A promotion whose fence was lifted in several attempts."""
    journal = begin_step(begun(), StepName.FENCE, 0)
    for facts in attempts:
        journal = end_step(journal, StepName.FENCE, state=StepState.UNDONE, facts=facts, now_ms=1)
        if facts is not attempts[-1]:
            journal = begin_step(journal, StepName.FENCE, 2)
    return replace(turn_back(journal, "by the operator"), state=PromotionState.ROLLED_BACK)


def test_what_could_not_be_taken_back_is_named_with_who_sets_it_right() -> None:
    journal = taken_back({"left": "dc1 does not answer"})
    assert left_steps(journal) == {StepName.FENCE: "dc1 does not answer"}
    assert list(summary(journal, None)) == [
        "rolled back, dc1 stays active: by the operator",
        (
            "  warning  dc1 may still be closed for writes; `failover serve` opens it when it"
            " answers (dc1 does not answer)"
        ),
    ]
    for step in UNDOABLE - {StepName.ANNOUNCE, StepName.STOP_FLOW}:
        assert step in LEFT


def test_what_a_later_attempt_took_back_is_not_left() -> None:
    assert left_steps(taken_back({"left": "dc1 does not answer"}, {"fenced": False})) == {}


def called(failure: str | None) -> Facts:
    one = Called(hook="dns", point="after switch", attempts=2, duration_ms=1_500, failure=failure)
    return asdict(one)


def test_hooks_are_told_with_their_time_and_how_they_ended() -> None:
    journal = ended_promotion(
        PromotionKind.PLANNED,
        {
            StepName.DRAIN: {"records": 0},
            StepName.GROUPS_MOVE: {"positions": {}, "left": {}},
            StepName.CONFIRM: {"hooks": [called("status 1")]},
            StepName.START_REVERSE: {"configured": True, "hooks": [called(None)]},
        },
    )
    lines = [line for line in summary(journal, None) if "hook" in line]
    assert lines == [
        "  hook     dns (after switch) failed (1.50 s, 2 attempts): status 1",
        "  hook     dns (after switch) done (1.50 s, 2 attempts)",
    ]
    assert hooks_left(journal) == ()


def test_a_hook_that_has_not_taken_back_what_it_did_is_warned_of() -> None:
    journal = begin_step(begun(), StepName.ANNOUNCE, 0)
    facts: Facts = {"hooks_taken_back": [called("status 1"), called(None)]}
    journal = end_step(
        turn_back(journal, "drain: slow"),
        StepName.ANNOUNCE,
        state=StepState.UNDONE,
        facts=facts,
        now_ms=0,
    )
    journal = replace(journal, state=PromotionState.ROLLED_BACK)
    assert len(hooks_left(journal)) == 1
    lines = [line for line in summary(journal, None) if "hook" in line]
    assert lines == [
        "  warning  hook dns (after switch) failed (1.50 s, 2 attempts): status 1",
        "  hook     dns (after switch) done (1.50 s, 2 attempts)",
    ]

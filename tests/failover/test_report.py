"""The lines a promotion prints."""

from failover.execute import StepReport
from failover.facts import Facts
from failover.report import step_line, summary
from failover.steps import PromotionKind, StepName, StepState
from tests.failover.journals import ended_promotion


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
    assert list(summary(journal)) == [
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


def test_what_plain_consumers_commit_late_is_named_with_what_to_do() -> None:
    facts: dict[StepName, Facts] = {
        StepName.DRAIN: {"records": 0},
        StepName.GROUPS_MOVE: {"positions": {}, "left": {}},
        StepName.CONFIRM: {"not_carried": {"billing": 3}, "still_members": {"billing": 1}},
    }
    assert list(summary(ended_promotion(PromotionKind.PLANNED, facts)))[2:] == [
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
    assert list(summary(ended_promotion(PromotionKind.SOURCE_LOST, facts))) == [
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

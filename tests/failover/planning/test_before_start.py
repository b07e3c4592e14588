"""What a flow leaves on its source on purpose is named wherever a promotion says what it costs."""

from dataclasses import replace

from failover.journal.facts import Facts
from failover.journal.journal import Journal
from failover.journal.steps import PromotionKind, StepName
from failover.planning.agreed import question
from failover.planning.before_start import KeptOnSource
from failover.planning.loss import estimate, loss_document, loss_summary
from failover.planning.plan import Plan, decide
from failover.planning.plan_description import describe, plan_document
from failover.serve.console.overview import _loss, _lost_says
from failover.view.promotion_report import lost, lost_line
from tests.failover.journals import ended_promotion
from tests.failover.plans import ALL_WELL, PLANNED
from wire.topic_partition import TopicPartition

STAYS = {
    TopicPartition("orders", 0): KeptOnSource(begin=400, log_start=100, start="latest"),
    TopicPartition("orders", 1): KeptOnSource(begin=20, log_start=None, start="latest"),
    TopicPartition("orders", 2): KeptOnSource(begin=7, log_start=9, start="latest"),
}
WORDS = "up to 320 records before the flow's start are not carried"


def found_before(preflight: Facts, *, is_asked: bool) -> Journal:
    """Return a promotion whose first step found this, and whose source took nothing since."""
    confirm: Facts = {"appended": []} if is_asked else {}
    facts = {StepName.PREFLIGHT: preflight, StepName.CONFIRM: confirm}
    kind = PromotionKind.PLANNED if is_asked else PromotionKind.SOURCE_LOST
    return ended_promotion(kind, facts)


def test_a_plan_names_what_stays_on_the_source() -> None:
    plan = decide(replace(ALL_WELL, left_behind=STAYS), PLANNED)
    assert isinstance(plan, Plan)
    lines = [line for line in describe(plan) if "stays" in line or "offsets" in line]
    assert lines == [
        (
            "  stays    up to 320 records of dc1 before the flow's start (`start: latest`) are not"
            " carried, in 2 partitions"
        ),
        "           orders-0: offsets 100 to 399",
        "           orders-1: offsets 0 to 19",
    ]
    document = plan_document(plan)["before_start"]
    assert isinstance(document, list)
    assert [one["records_at_most"] for one in document] == [300, 20, 0]
    assert WORDS in question(plan)


def test_no_loss_is_told_as_nothing_where_records_stay_on_purpose() -> None:
    nothing = replace(estimate(None, {}, {}, 0), age_s=1.0, before_start=320)
    assert loss_document(nothing)["before_start_at_most"] == 320
    assert _lost_says(nothing)[0] == "unsure"
    assert WORDS in _loss(nothing)
    summary: Facts = {"loss": dict(loss_summary(nothing, 10))}
    assert lost_line(lost(found_before(summary, is_asked=False))) == f"no record; {WORDS}"


def test_what_a_look_before_the_fence_found_is_in_the_report() -> None:
    assert lost_line(lost(found_before({}, is_asked=True))) == "no record"
    found = found_before({"before_start": 320}, is_asked=True)
    assert lost_line(lost(found)) == f"no record; {WORDS}"

"""What is given up with a lost source: by its last known ends, and never nothing where unknown."""

from dataclasses import replace

import pytest

from failover.journal.steps import PromotionKind
from failover.planning.loss import Loss, beyond_budget, estimate, loss_document, loss_lines
from failover.planning.plan import Plan, PromotionRequest, SitesView, decide
from failover.planning.plan_description import describe, plan_document
from failover.planning.refusal import Cause, Refusal
from runtime.configuration.failover_section import NO_LIMIT, LossBudget
from runtime.coordination.known_ends import KnownEnd, KnownEnds
from tests.failover.plans import ALL_WELL, DC1
from wire.topic_partition import TopicPartition

NOW_MS = 100_000
A, B, C = (TopicPartition("orders", number) for number in range(3))
MIRRORED = {A: 90, B: 50}
TARGET = {A: 90, B: 50}
LAST = KnownEnd(end=100, heard_ms=88_000, level_ms=85_500, is_last_word=True)
LEVEL = KnownEnd(end=50, heard_ms=88_000, level_ms=88_000, is_last_word=True)
KNOWN = KnownEnds(at_ms=99_000, ends={A: LAST, B: LEVEL})


def loss(*, known: KnownEnds | None = KNOWN, **of: KnownEnd) -> Loss:
    """The loss by these news, with other ones of the partitions `a`, `b` and `c`."""
    names = {"a": A, "b": B, "c": C}
    if known is not None:
        known = replace(known, ends={**known.ends, **{names[one]: of[one] for one in of}})
    return estimate(known, MIRRORED, TARGET, NOW_MS)


def test_what_the_mirror_heard_last_before_the_silence_is_what_is_lost() -> None:
    found = loss()
    assert [(one.records, one.seconds) for one in found.partitions] == [(10, 6.5), (0, 4.0)]
    assert (found.at_least, found.seconds, found.unknown) == (10, 6.5, ())
    assert [*loss_lines(found, "dc1")] == [
        "loss     at least 10 records in 1 partitions, up to 6.5 s; by news of 1.0 s ago",
        (
            "         orders-0: at least 10 records, up to 6.5 s (mirrored up to 90, last known end"
            " 100)"
        ),
    ]


def test_a_source_that_may_have_gone_on_loses_an_unknown_number_of_records() -> None:
    found = loss(b=replace(LEVEL, is_last_word=False))
    [_, b] = found.partitions
    assert (b.at_least, b.records, b.seconds) == (0, None, 12.0)
    assert found.unknown == (b,)
    lines = "\n".join(loss_lines(found, "dc1"))
    assert "loss     at least 10 records in 1 partitions, up to 12.0 s" in lines
    assert "of 1 of 2 partitions it is not known for sure" in lines
    assert "orders-1: at least 0 records, up to 12.0 s" in lines
    assert "the mirror's news end 1.0 s ago, and the source may have taken records" in lines


def test_the_last_word_counts_only_while_a_mirror_looks_on() -> None:
    """A mirror that ended behind a short silence does not know whether the source came back."""
    assert KNOWN.is_followed(NOW_MS)
    ended = replace(KNOWN, at_ms=NOW_MS - 3_600_000)
    ends = {A: LAST, B: LEVEL}
    back = {
        where: replace(one, heard_ms=ended.at_ms - 5_000, level_ms=ended.at_ms - 6_000)
        for where, one in ends.items()
    }
    found = estimate(replace(ended, ends=back), MIRRORED, TARGET, NOW_MS)
    assert [(one.at_least, one.records) for one in found.partitions] == [(10, None), (0, None)]
    assert found.seconds == 3_606.0
    assert beyond_budget(found, LossBudget(records=10**9), "dc1") is not None


def test_a_partition_was_not_silent_while_others_were_heard_of() -> None:
    """One that stands still is asked every `discovery_interval_ms`, which may be a minute."""
    found = loss(b=replace(LEVEL, heard_ms=LAST.heard_ms - 4_001, level_ms=LAST.heard_ms - 4_001))
    assert [(one.records, one.seconds) for one in found.partitions] == [(10, 6.5), (None, 16.001)]
    found = loss(b=replace(LEVEL, heard_ms=LAST.heard_ms - 4_000, level_ms=LAST.heard_ms - 4_000))
    assert [(one.records, one.seconds) for one in found.partitions] == [(10, 6.5), (0, 4.0)]


def test_a_clock_behind_the_mirrors_makes_no_loss_shorter() -> None:
    """An hour behind, an hour of lost records would count as no time at all."""
    ahead = replace(KNOWN, at_ms=KNOWN.at_ms + 3_600_000)
    ends = {
        where: replace(one, heard_ms=one.heard_ms + 3_600_000, level_ms=one.heard_ms + 3_600_000)
        for where, one in {A: LAST, B: LEVEL}.items()
    }
    found = estimate(replace(ahead, ends=ends), {A: 100, B: 50}, {A: 100, B: 50}, NOW_MS)
    assert [(one.records, one.seconds) for one in found.partitions] == [(None, None)] * 2
    assert "by news of 3599.0 s ahead of this machine's clock" in next(loss_lines(found, "dc1"))
    assert beyond_budget(found, LossBudget(seconds=10**9), "dc1") is not None


@pytest.mark.parametrize(
    ("found", "partition", "why"),
    [
        (loss(known=None), A, "no mirror has written down where it ended"),
        (loss(known=replace(KNOWN, ends={A: LAST})), B, "the mirror has never heard where"),
        (estimate(KNOWN, {A: 90}, TARGET, NOW_MS), B, "the map does not tell how far it is"),
        (loss(b=replace(LEVEL, level_ms=None)), B, "the mirror was never level with it"),
        (loss(b=replace(LEVEL, end=60)), B, "the target has lost what it had"),
    ],
)
def test_unknown_is_never_nothing(found: Loss, partition: TopicPartition, why: str) -> None:
    assert partition in {one.partition for one in found.unknown}
    assert found.seconds is None
    assert "at least" in next(loss_lines(found, "dc1")) or found.age_s is None
    assert loss_document(found)["records"] is None
    for budget in (LossBudget(seconds=10**9), LossBudget(records=10**9, seconds=10**9)):
        refused = beyond_budget(found, budget, "dc1")
        assert refused is not None
        assert why in refused
        assert str(partition) in refused


def test_a_source_may_have_gone_on_behind_its_last_word_but_not_into_the_future() -> None:
    """Between two answers, or while the mirror slept for too short a time to notice."""
    heard = replace(LEVEL, heard_ms=NOW_MS - 1_000, level_ms=NOW_MS - 1_000)
    [_, level] = loss(b=heard).partitions
    assert (level.records, level.seconds) == (0, 1.0)


def test_a_partition_that_was_never_mirrored_loses_all_that_it_held() -> None:
    found = loss(c=replace(LAST, end=7))
    assert [one.records for one in found.partitions] == [10, 0, 7]


def test_a_mirror_that_has_come_further_than_its_news_loses_nothing_less() -> None:
    found = loss(a=replace(LAST, end=80))
    assert found.at_least == 0


@pytest.mark.parametrize(
    ("budget", "reason"),
    [
        (LossBudget(), None),
        (LossBudget(records=10, seconds=7), None),
        (
            LossBudget(records=9),
            (
                "10 records of dc1 at least would be lost, and failover.loss_budget.records allows"
                " 9 (most in orders-0: 10)"
            ),
        ),
        (
            LossBudget(seconds=2),
            (
                "records of up to 6.5 s of dc1 would be lost, and failover.loss_budget.seconds"
                " allows 2"
            ),
        ),
        (LossBudget(records=0), "10 records of dc1"),
    ],
)
def test_a_loss_beyond_the_budget_is_named(budget: LossBudget, reason: str | None) -> None:
    found = beyond_budget(loss(), budget, "dc1")
    if reason is None:
        assert found is None
    else:
        assert found is not None
        assert reason in found


LOST = PromotionRequest(site="dc2", kind=PromotionKind.SOURCE_LOST)
DISASTER = replace(
    ALL_WELL,
    source=replace(DC1, fault="no answer within 10 s", ends={}),
    loss=loss(),
    loss_budget=LossBudget(records=9),
)


def test_a_promotion_that_loses_too_much_wants_the_operators_word() -> None:
    refused = decide(DISASTER, LOST)
    assert isinstance(refused, Refusal)
    assert refused.reason.endswith(
        "`failover plan dc2 --source-lost --accept-loss` lists it, and --accept-loss promotes dc2"
        " all the same"
    )
    assert isinstance(decide(DISASTER, replace(LOST, force=True)), Refusal)
    plan = decide(DISASTER, replace(LOST, accepts_loss=True))
    assert isinstance(plan, Plan)
    assert plan.loss == DISASTER.loss
    assert "  loss     at least 10 records in 1 partitions" in "\n".join(describe(plan))
    document = plan_document(plan)
    assert document["loss"] == loss_document(loss())
    assert loss_document(loss())["partitions"][0] == {
        "topic": "orders",
        "partition": 0,
        "known_source_end": 100,
        "mirrored_source_end": 90,
        "records_at_least": 10,
        "records": 10,
        "seconds": 6.5,
    }


def test_a_planned_promotion_loses_nothing_and_has_no_budget() -> None:
    plan = decide(
        replace(ALL_WELL, loss_budget=LossBudget(records=0)),
        PromotionRequest(site="dc2", kind=PromotionKind.PLANNED),
    )
    assert isinstance(plan, Plan)
    assert plan.loss is None


def test_most_of_many_partitions_are_counted() -> None:
    ends = {TopicPartition("t", number): LAST for number in range(50)}
    lines = [*loss_lines(estimate(replace(KNOWN, ends=ends), {}, {}, NOW_MS), "dc1")]
    assert lines[-1] == "         and 40 partitions more"
    assert len(lines) == 12


def test_a_lost_source_whose_seal_hangs_on_what_is_not_believed_is_given_up_by_decision() -> None:
    unsure = replace(DISASTER, loss_budget=NO_LIMIT, unsure_seal="orders-0 would be sealed at 0")
    refused = decide(unsure, LOST)
    assert isinstance(refused, Refusal)
    assert refused.cause is Cause.MAP_WRITERS
    assert refused.reason == (
        "orders-0 would be sealed at 0; --accept-loss promotes dc2 by what is believed"
    )
    assert isinstance(decide(unsure, replace(LOST, accepts_loss=True)), Plan)


@pytest.mark.parametrize("seen", [ALL_WELL, replace(DISASTER, loss_budget=NO_LIMIT)])
def test_what_of_a_map_is_not_believed_is_a_warning_of_the_plan(seen: SitesView) -> None:
    kind = PromotionKind.PLANNED if seen is ALL_WELL else PromotionKind.SOURCE_LOST
    said = "dc2 dc1.offset-map.internal holds 3 records that are not believed"
    plan = decide(replace(seen, unbelieved=said), PromotionRequest(site="dc2", kind=kind))
    assert isinstance(plan, Plan)
    assert f"  warning  {said}" in describe(plan)

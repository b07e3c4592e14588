"""What a promotion may do is decided from one look, and every refusal says what is in the way."""

from dataclasses import replace

import pytest

from failover.journal.journal import Journal, begin_step, end_step, turn_back
from failover.journal.steps import ORDER, PromotionKind, StepName, StepState
from failover.planning.plan import Plan, PromotionRequest, Resume, SitesView, decide
from failover.planning.plan_description import describe, describe_resume, plan_document
from failover.planning.refusal import Cause, Refusal
from runtime.rights.outlook import Outlook
from runtime.rights.refused import RefusedPrincipal
from tests.failover.plans import ALL_WELL, DC1, DC2, PLANNED
from wire.acls import Operation, ResourceType
from wire.topic_partition import TopicPartition

LOST = PromotionRequest(site="dc2", kind=PromotionKind.SOURCE_LOST)
DC1_DOWN = replace(ALL_WELL, source=replace(DC1, fault="refused", ends={}, groups={}))


def unfinished(kind: PromotionKind, *done: StepName, site: str = "dc2") -> Journal:
    """A journal of a promotion that was left in the middle."""
    journal = Journal(epoch=4, site=site, source="dc1", kind=kind, started_ms=0)
    for step in done:
        journal = begin_step(journal, step, 0)
        journal = end_step(journal, step, state=StepState.DONE, facts={}, now_ms=0)
    return journal


def test_names_that_applications_do_not_find_are_told_before_a_promotion() -> None:
    plan = decide(replace(ALL_WELL, renamed={"orders": "orders-eu"}), PLANNED)
    assert isinstance(plan, Plan)
    told = "  names    on dc2 orders is orders-eu: applications have to ask for these"
    assert told in describe(plan)
    assert plan_document(plan)["renamed"] == {"orders": "orders-eu"}


def test_a_planned_promotion_moves_everything_and_knows_its_lag() -> None:
    plan = decide(ALL_WELL, PLANNED)
    assert isinstance(plan, Plan)
    assert (plan.source, plan.site, plan.epoch, plan.lag) == ("dc1", "dc2", 5, 10)
    assert plan.partitions == (("orders", 0), ("orders", 1))
    assert plan.supersedes is None


def test_a_lost_source_is_planned_from_the_target_and_its_lag_is_not_known() -> None:
    plan = decide(DC1_DOWN, LOST)
    assert isinstance(plan, Plan)
    assert (plan.kind, plan.lag) == (PromotionKind.SOURCE_LOST, None)
    assert plan.partitions == (("orders", 0), ("orders", 1))


@pytest.mark.parametrize(
    ("snapshot", "request_", "reason"),
    [
        (
            replace(ALL_WELL, unfenceable="no authorizer"),
            PLANNED,
            (
                "dc1 cannot be closed for writes: no authorizer;"
                " --source-lost --force goes without a fence"
            ),
        ),
        (
            ALL_WELL,
            replace(PLANNED, site="dc3"),
            "unknown site dc3 (the file has dc1, dc2)",
        ),
        (ALL_WELL, replace(PLANNED, site="dc1"), "dc1 is already the active site"),
        (
            replace(ALL_WELL, flow=None, source=None, target=None),
            PLANNED,
            "no flow from dc1 to dc2 is configured, so dc2 has nothing to go on with",
        ),
        (
            DC1_DOWN,
            PLANNED,
            "dc1 does not answer (refused); if it is lost, promote with --source-lost",
        ),
        (
            replace(ALL_WELL, worker=None),
            PLANNED,
            (
                "no mirror daemon runs the flow dc1->dc2, so dc1 cannot be drained; start"
                " `mirror run`, or give up what is not mirrored with --source-lost"
            ),
        ),
        (
            replace(ALL_WELL, target=replace(DC2, fault="refused")),
            LOST,
            "dc2 cannot take over: refused",
        ),
        (
            ALL_WELL,
            LOST,
            (
                "dc1 answers, and a planned promotion loses nothing: leave out --source-lost,"
                " or insist with --force"
            ),
        ),
        (
            replace(ALL_WELL, source=replace(DC1, fault="wrong password", is_unsure=True)),
            LOST,
            (
                "dc1 may be at work, and take writes (wrong password): mend what it has against us,"
                " or insist with --force"
            ),
        ),
        (
            replace(ALL_WELL, unfinished=unfinished(PromotionKind.PLANNED)),
            replace(PLANNED, site="dc1"),
            (
                "the planned promotion of dc2 (epoch 4) is unfinished: finish it with"
                " `failover promote dc2` or take it back with `failover abort`"
            ),
        ),
        (
            replace(ALL_WELL, unfinished=unfinished(PromotionKind.SOURCE_LOST)),
            PLANNED,
            (
                "the source-lost promotion of dc2 (epoch 4) is unfinished: finish it with"
                " `failover promote dc2 --source-lost`"
            ),
        ),
    ],
)
def test_a_refusal_is_one_line_that_says_why(
    snapshot: SitesView, request_: PromotionRequest, reason: str
) -> None:
    assert decide(snapshot, request_) == Refusal(reason=reason)


def test_a_source_that_cannot_be_closed_can_be_given_up() -> None:
    snapshot = replace(ALL_WELL, unfenceable="no authorizer")
    assert isinstance(decide(snapshot, replace(LOST, force=True)), Plan)


@pytest.mark.parametrize(
    ("snapshot", "told"),
    [
        (
            replace(
                ALL_WELL, target=replace(DC2, ends={**DC2.ends, TopicPartition("orders", 2): 0})
            ),
            "orders has 3 partitions on dc2 and 2 on dc1, so keys go to other partitions there",
        ),
        (
            replace(ALL_WELL, target=replace(DC2, groups={"billing": 2, "idle": 0})),
            (
                "group billing has 2 members on dc2: its positions cannot be moved until they are"
                " stopped"
            ),
        ),
        (
            replace(ALL_WELL, one_way=None),
            "whether dc2 is closed for topics that dc1->dc2 leaves out is not known",
        ),
        (
            replace(ALL_WELL, one_way=("clicks",)),
            (
                "dc2 is closed for clicks, and the flow dc1->dc2 does not bring what dc1 has of it:"
                " add it to that flow's topics, and restart `mirror run`"
            ),
        ),
    ],
)
def test_what_applications_do_not_expect_is_named_and_wants_force(
    snapshot: SitesView, told: str
) -> None:
    assert decide(snapshot, PLANNED) == Refusal(reason=f"{told}; --force promotes dc2 all the same")
    plan = decide(snapshot, replace(PLANNED, force=True))
    assert isinstance(plan, Plan)
    assert f"  warning  {told}" in describe(plan)


def test_a_file_that_differs_from_the_mirrors_is_refused_and_only_a_disaster_may_insist() -> None:
    differing = replace(ALL_WELL, differing="topics.include: a, not b")
    for request in (PLANNED, replace(PLANNED, force=True)):
        assert decide(differing, request) == Refusal(reason="topics.include: a, not b")
    lost = replace(DC1_DOWN, differing="topics.include: a, not b")
    assert decide(lost, LOST) == Refusal(reason="topics.include: a, not b")
    assert isinstance(decide(lost, replace(LOST, force=True)), Plan)


def test_force_gives_up_a_source_that_answers() -> None:
    assert isinstance(decide(ALL_WELL, replace(LOST, force=True)), Plan)


def test_a_source_that_went_back_can_be_given_up_for_a_target_that_has_all() -> None:
    """It is what the mirror advises where the copy is not deleted for a new one."""
    went_back = replace(ALL_WELL, other_log="dc1 lost some", standing="source went back")
    assert isinstance(decide(went_back, PLANNED), Refusal)
    assert isinstance(decide(went_back, replace(LOST, force=True)), Plan)


def test_an_unfinished_promotion_is_gone_on_with_whatever_the_sites_say() -> None:
    journal = unfinished(PromotionKind.PLANNED, StepName.PREFLIGHT)
    assert decide(replace(DC1_DOWN, unfinished=journal), PLANNED) == Resume(journal=journal)


@pytest.mark.parametrize("steps", [(StepName.PREFLIGHT,), (StepName.SWITCH,)])
def test_nobody_goes_on_with_a_promotion_by_another_file(steps: tuple[StepName, ...]) -> None:
    journal = unfinished(PromotionKind.PLANNED, *steps)
    told = decide(replace(ALL_WELL, unfinished=journal, differing="topics.include: a"), PLANNED)
    assert told == Refusal(
        reason="the planned promotion of dc2 (epoch 4) is unfinished, and topics.include: a"
    )


def test_a_partition_that_stands_still_is_refused_by_name() -> None:
    told = decide(replace(ALL_WELL, standing="orders-0 stands still: why; do this"), PLANNED)
    assert told == Refusal(reason="dc1->dc2 cannot be drained: orders-0 stands still: why; do this")


def test_a_source_lost_in_the_middle_of_a_planned_promotion_supersedes_it() -> None:
    journal = unfinished(PromotionKind.PLANNED, StepName.PREFLIGHT, StepName.ANNOUNCE)
    plan = decide(replace(DC1_DOWN, unfinished=journal), LOST)
    assert isinstance(plan, Plan)
    assert plan.supersedes == journal


def test_behind_the_switch_there_is_only_forward() -> None:
    journal = unfinished(PromotionKind.PLANNED, *ORDER[PromotionKind.PLANNED])
    assert decide(replace(DC1_DOWN, unfinished=journal), LOST) == Resume(journal=journal)


def test_the_plan_is_the_text_that_promote_begins_with() -> None:
    plan = decide(ALL_WELL, PLANNED)
    assert isinstance(plan, Plan)
    lines = describe(plan)
    assert lines[:5] == (
        "promote dc2: planned, from dc1, epoch 5",
        "  flow     dc1->dc2, run by process 7 on host",
        "  moves    1 topics, 2 partitions; not mirrored yet: 10 records",
        "           orders: 10 records",
        "  groups   billing (2), idle (0) (members)",
    )
    assert len(lines) == 5 + len(ORDER[PromotionKind.PLANNED])
    assert "close dc1 for writes" in lines[7]


def test_an_unfinished_promotion_that_is_going_back_is_said_to_be_taken_back() -> None:
    journal = unfinished(PromotionKind.PLANNED, StepName.PREFLIGHT)
    forward = "goes on with the planned promotion of dc2, epoch 4"
    assert describe_resume(Resume(journal=journal)) == forward
    back = turn_back(journal, "drain: too slow")
    assert describe_resume(Resume(journal=back)) == (
        "takes back the planned promotion of dc2, epoch 4: drain: too slow"
    )


def test_the_plan_names_the_promotion_that_it_replaces() -> None:
    begun = unfinished(PromotionKind.PLANNED, StepName.FENCE)
    plan = decide(replace(DC1_DOWN, unfinished=begun), LOST)
    assert isinstance(plan, Plan)
    assert "  replaces the unfinished planned promotion, epoch 4" in describe(plan)


@pytest.mark.parametrize(
    ("snapshot", "request_", "site"),
    [
        (replace(ALL_WELL, source=replace(DC1, ends={})), PLANNED, "dc1"),
        (replace(DC1_DOWN, target=replace(DC2, ends={})), LOST, "dc2"),
    ],
)
def test_where_nothing_would_move_nothing_is_begun(
    snapshot: SitesView, request_: PromotionRequest, site: str
) -> None:
    reason = (
        f"no topic of the flow dc1->dc2 is on {site}, so nothing moves; `mirror topics` says why"
    )
    assert decide(snapshot, request_) == Refusal(reason=reason)


def test_a_set_without_topics_moves_so_that_all_sets_can() -> None:
    """Its topics are made later, where it is active."""
    for snapshot, request in (
        (replace(ALL_WELL, source=replace(DC1, ends={})), PLANNED),
        (replace(DC1_DOWN, target=replace(DC2, ends={})), LOST),
    ):
        plan = decide(replace(snapshot, topic_set="default"), request)
        assert isinstance(plan, Plan)
        assert plan.partitions == ()
        assert "no topic of the set default is on" in plan.warnings[-1]


def test_a_plan_names_the_applications_that_the_target_would_refuse() -> None:
    outlook = Outlook(
        source="dc1",
        target="dc2",
        refused=(
            RefusedPrincipal(
                principal="User:shop",
                kind=ResourceType.TOPIC,
                operation=Operation.WRITE,
                names=("orders",),
            ),
        ),
    )
    plan = decide(replace(ALL_WELL, outlook=outlook), PLANNED)
    assert isinstance(plan, Plan)
    [line] = [line for line in describe(plan) if "User:shop" in line]
    assert line == "  rights   User:shop would be refused on dc2: WRITE of topic orders"
    assert plan_document(plan)["applications"] == outlook.document


@pytest.mark.parametrize("kind", PromotionKind)
def test_a_group_that_would_be_cut_in_two_is_refused_whoever_insists(kind: PromotionKind) -> None:
    assert ALL_WELL.source is not None
    assert ALL_WELL.target is not None
    cut = "group g reads a (set default) and b (set pay)"
    seen = replace(
        ALL_WELL,
        source=replace(ALL_WELL.source, cut=cut, fault=None),
        target=replace(ALL_WELL.target, cut=cut),
    )
    if kind is PromotionKind.SOURCE_LOST:
        seen = replace(seen, source=replace(ALL_WELL.source, fault="refused"))
    refusal = decide(seen, PromotionRequest(site="dc2", kind=kind, force=True, accepts_loss=True))
    assert isinstance(refusal, Refusal)
    assert refusal.cause is Cause.CUT_GROUP
    assert refusal.reason.endswith(cut)


def test_topics_that_lag_are_named_those_that_lag_most_first() -> None:
    ends = {TopicPartition(f"t-{topic:02}", one): topic for topic in range(15) for one in (0, 1)}
    plan = decide(replace(ALL_WELL, source=replace(DC1, ends=ends), mirrored={}), PLANNED)
    assert isinstance(plan, Plan)
    shown = [line.strip() for line in describe(plan) if line.startswith(" " * 11)]
    assert shown[:2] == ["t-14: 28 records", "t-13: 26 records"]
    assert shown[10:] == ["and 4 topics more; --lag-over 0 lists them"]
    chosen = [line.strip() for line in describe(plan, 20) if line.startswith(" " * 11)]
    assert chosen == [f"t-{topic}: {2 * topic} records" for topic in (14, 13, 12, 11)]
    assert plan_document(plan)["backlog"] == {f"t-{one:02}": 2 * one for one in range(1, 15)}

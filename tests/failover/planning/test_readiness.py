"""Whether a promotion could begin now: everything that would refuse it or have it wait is named."""

from dataclasses import replace

import pytest

from failover.journal.journal import Journal
from failover.journal.steps import PromotionKind
from failover.planning.plan import PromotionRequest, SitesView, decide
from failover.planning.readiness import Readiness, judge_readiness
from failover.planning.refusal import Cause, Refusal
from runtime.configuration.failover_section import NO_LIMIT, FailoverConfig
from tests.failover.plans import ALL_WELL, DC1, DC2, PLANNED

LIMITS = FailoverConfig(
    initial_active="dc1",
    drain_timeout_ms=1,
    group_drain_timeout_ms=1,
    stop_timeout_ms=1,
    max_lag_before_fence=100,
    catch_up_timeout_ms=1,
    is_standby_closed=True,
    source_lost_after_ms=1,
    orphan_after_ms=1,
    loss_budget=NO_LIMIT,
)
LOST = PromotionRequest(site="dc2", kind=PromotionKind.SOURCE_LOST)


def judged(snapshot: SitesView, limits: FailoverConfig = LIMITS) -> Readiness:
    return judge_readiness("dc2", decide(snapshot, PLANNED), limits, hook_fault=None)


def test_a_pair_at_which_all_is_well_is_ready() -> None:
    found = judged(ALL_WELL)
    assert found.is_ready
    assert found.reason is None


@pytest.mark.parametrize(
    ("snapshot", "cause"),
    [
        (replace(ALL_WELL, source=replace(DC1, fault="refused")), Cause.SOURCE_SILENT),
        (replace(ALL_WELL, target=replace(DC2, fault="refused")), Cause.TARGET_SILENT),
        (replace(ALL_WELL, worker=None), Cause.NO_MIRROR),
        (replace(ALL_WELL, unfenceable="no authorizer"), Cause.UNFENCEABLE),
        (replace(ALL_WELL, other_log="orders-0 was made again"), Cause.OTHER_LOG),
        (replace(ALL_WELL, outdated="the witness is an old copy"), Cause.WITNESS_OUTDATED),
        (replace(ALL_WELL, map_refused="the map lost its head"), Cause.MAP_REFUSED),
        (replace(ALL_WELL, standing="orders-0 is stopped"), Cause.STANDSTILL),
        (replace(ALL_WELL, differing="topics.include: a, not b"), Cause.OTHER_FILE),
        (replace(ALL_WELL, target=replace(DC2, groups={"billing": 1})), Cause.TARGET_DIFFERS),
        (replace(ALL_WELL, source=replace(DC1, ends={})), Cause.NOTHING_MOVES),
        (replace(ALL_WELL, flow=None, source=None, target=None), Cause.NO_FLOW),
        (replace(ALL_WELL, is_prefixed=True), Cause.CONFIGURATION),
        (replace(ALL_WELL, active="dc2"), Cause.ACTIVE_ALREADY),
        (replace(ALL_WELL, plain={"billing": 2}), Cause.PLAIN_CONSUMERS),
        (replace(ALL_WELL, mirrored={}), Cause.BEHIND),
    ],
)
def test_what_is_in_the_way_is_named_in_a_word_and_in_a_line(
    snapshot: SitesView, cause: Cause
) -> None:
    found = judged(snapshot)
    assert (found.cause, found.is_ready) == (cause, False)
    assert found.reason


def test_a_promotion_that_is_under_way_is_in_the_way() -> None:
    left = Journal(epoch=4, site="dc2", source="dc1", kind=PromotionKind.PLANNED, started_ms=0)
    assert judged(replace(ALL_WELL, unfinished=left)).cause is Cause.UNFINISHED
    assert judged(replace(ALL_WELL, unfinished=replace(left, site="dc3"))).cause is Cause.UNFINISHED


def test_a_hook_that_cannot_be_called_is_in_the_way() -> None:
    decision = decide(ALL_WELL, PLANNED)
    found = judge_readiness("dc2", decision, LIMITS, hook_fault="hook dns: no command")
    assert (found.cause, found.reason) == (Cause.HOOK, "hook dns: no command")


def test_every_refusal_of_a_lost_source_has_a_cause_too() -> None:
    answers = decide(ALL_WELL, LOST)
    assert isinstance(answers, Refusal)
    assert answers.cause is Cause.SOURCE_ANSWERS
    stranger = decide(ALL_WELL, replace(PLANNED, site="dc9"))
    assert isinstance(stranger, Refusal)
    assert stranger.cause is Cause.UNKNOWN_SITE

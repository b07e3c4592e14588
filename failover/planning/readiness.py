"""Whether a planned promotion could begin now, and would close the active site at once. Pure."""

from dataclasses import replace

from failover.planning.loss import Loss, beyond_budget
from failover.planning.plan import Decision, Plan, Resume
from failover.planning.refusal import Cause, Refusal
from runtime.configuration.failover_section import FailoverConfig, LossBudget
from wire.values import frozen


@frozen
class Readiness:
    """What is in the way of promoting a site now; nothing where `cause` is None."""

    site: str
    cause: Cause | None = None
    reason: str | None = None
    source: str | None = None
    """The active site, out of which it would go."""
    lag: int | None = None
    """Records that a planned promotion would wait for; None where nobody could tell."""
    groups: int | None = None
    """Groups that would move."""
    if_lost: "IfLost | None" = None
    """What it would cost if the active site were gone; None where nobody could look."""

    @property
    def is_ready(self) -> bool:
        """Whether nothing is in the way."""
        return self.cause is None


@frozen
class IfLost:
    """What `promote --source-lost` would give up, or by what it would be refused."""

    loss: Loss
    refusal: str | None = None


def if_lost(loss: Loss, budget: LossBudget, source: str) -> IfLost:
    """Return what losing the active site now would cost, and whether the budget has room for it."""
    return IfLost(loss=loss, refusal=beyond_budget(loss, budget, source))


def judge_readiness(
    site: str, decision: Decision, limits: FailoverConfig, *, hook_fault: str | None
) -> Readiness:
    """Return what a planned promotion of this site would be refused by now, or have to wait for.

    `hook_fault` names a hook that cannot be called from this host.
    """
    match decision:
        case Refusal(reason=reason, cause=cause):
            return Readiness(site=site, cause=cause, reason=reason)
        case Resume(journal=journal):
            return Readiness(
                site=site,
                cause=Cause.UNFINISHED,
                reason=f"the {journal.kind} promotion of {journal.site} (epoch {journal.epoch})"
                " is unfinished",
            )
        case _:
            return replace(
                _judge_plan(site, decision, limits, hook_fault=hook_fault),
                source=decision.source,
                lag=decision.lag,
                groups=len(decision.groups),
            )


def _judge_plan(
    site: str, plan: Plan, limits: FailoverConfig, *, hook_fault: str | None
) -> Readiness:
    if hook_fault is not None:
        return Readiness(site=site, cause=Cause.HOOK, reason=hook_fault)
    if plan.lag is None or plan.lag > limits.max_lag_before_fence:
        lag = "not known" if plan.lag is None else f"{plan.lag} records"
        return Readiness(
            site=site,
            cause=Cause.BEHIND,
            reason=f"not mirrored yet: {lag}; the promotion would wait until it is at most"
            f" {limits.max_lag_before_fence}",
        )
    if plan.plain:
        group, count = min(plan.plain.items())
        return Readiness(
            site=site,
            cause=Cause.PLAIN_CONSUMERS,
            reason=f"{len(plan.plain)} groups have members that would stay on {plan.source}, as"
            f" {group} ({count}): the promotion would wait for them to be stopped",
        )
    return Readiness(site=site)

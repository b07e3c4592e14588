"""What somebody is asked before a promotion, and whether what they agreed to is still so. Pure."""

from collections import Counter

from failover.journal.steps import Direction, PromotionKind
from failover.planning.before_start import at_most, not_carried
from failover.planning.plan import Plan, Resume


def question(decision: Plan | Resume) -> str:
    """Return what is asked before a promotion begins or goes on: what it closes and costs."""
    if isinstance(decision, Resume):
        journal = decision.journal
        if journal.direction is Direction.BACK:
            return f"Take back the {journal.kind} promotion of {journal.site}?"
        return f"Go on with the {journal.kind} promotion of {journal.site}, epoch {journal.epoch}?"
    topics = len(Counter(topic for topic, _ in decision.partitions))
    closing = f"Close {topics} topics of {decision.source} for writes"
    stays = not_carried(at_most(decision.left_behind))
    then = f"and make {decision.site} the active site?{f' ({stays})' if stays else ''}"
    if decision.kind is PromotionKind.PLANNED:
        return f"{closing}, {then}"
    return f"Give up {_loss(decision)}, {then}"


def _loss(plan: Plan) -> str:
    loss = plan.loss
    if loss is None or loss.age_s is None:
        return f"what {plan.site} lacks of {plan.source}, which is not known"
    more = f" (of {len(loss.unknown)} partitions it is not known how many)" if loss.unknown else ""
    return f"{'at least ' if loss.unknown else ''}{loss.at_least} records of {plan.source}{more}"


def why_not_agreed(agreed: Plan | Resume, decision: Plan | Resume) -> str | None:
    """Return what a promotion would do now and nobody has agreed to; None where that is nothing.

    A look takes seconds, and somebody who reads a plan takes minutes.
    """
    if isinstance(agreed, Resume) or isinstance(decision, Resume):
        return None if question(agreed) == question(decision) else "another promotion is under way"
    if (agreed.source, agreed.flow) != (decision.source, decision.flow):
        return f"{decision.source} is the active site now"
    more = decision.loss and decision.loss.at_least - (agreed.loss.at_least if agreed.loss else 0)
    if more and more > 0:
        return f"{more} records more would be lost than were shown"
    unknown = decision.loss and len(decision.loss.unknown)
    if unknown and unknown > (len(agreed.loss.unknown) if agreed.loss else 0):
        return f"it is not known of {unknown} partitions how much would be lost"
    new = [one for one in decision.warnings if one not in agreed.warnings]
    return f"there is a new warning: {new[0]}" if new else None

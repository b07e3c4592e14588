"""How a member gets from what it owns to its target: it gives up first, then takes what is free.

    STABLE ─► UNREVOKED_PARTITIONS     it is told to give up what is no longer its own
       ▲          │ it owns none of that any more
       │          ▼
       ├─── next epoch ─► UNRELEASED_PARTITIONS     others have not given up all of its target yet
       └──────────────────────┘

A partition that a member has to give up stays its own until it says that it has; so nobody reads a
partition that somebody else still reads. Source of the rules: KIP-848; Kafka's
CurrentAssignmentBuilder.
"""

from collections.abc import Callable
from dataclasses import replace

from broker.groups.consumer.member import Member, MemberState, following
from broker.groups.consumer.partitions import NONE, Partitions, TopicIdPartition


def reconcile(
    member: Member,
    target_epoch: int,
    target: Partitions,
    *,
    is_free: Callable[[TopicIdPartition], bool],
    owned: Partitions | None,
) -> Member | None:
    """Return the member one step further, or as it is where it has to wait.

    None is for a member in a state that is not known here: it has to join anew with nothing.
    `owned` is what the member says that it owns, None where it did not say.
    """
    if member.is_reconciled_to(target_epoch):
        return member
    match member.state:
        case MemberState.STABLE | MemberState.UNRELEASED_PARTITIONS:
            from_epoch = member.epoch
        case MemberState.UNREVOKED_PARTITIONS:
            if _still_owns(owned, member.revoking):
                return member
            from_epoch = following(member.epoch)
        case MemberState.UNKNOWN:
            if owned is None or owned:
                return None
            from_epoch = target_epoch
    kept = member.assigned & target
    revoking = member.assigned - target
    if revoking and _still_owns(owned, revoking):
        waiting = replace(member, assigned=kept, revoking=revoking)
        return replace(waiting.at(from_epoch), state=MemberState.UNREVOKED_PARTITIONS)
    lacking = target - kept
    free = frozenset(filter(is_free, lacking))
    state = MemberState.STABLE if free == lacking else MemberState.UNRELEASED_PARTITIONS
    moved = replace(member, assigned=kept | free, revoking=NONE, state=state)
    return moved.at(target_epoch)


def _still_owns(owned: Partitions | None, partitions: Partitions) -> bool:
    return owned is None or bool(owned & partitions)

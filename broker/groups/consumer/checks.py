"""Who may commit and see offsets of a group of the new protocol (KIP-848)."""

from broker.groups.consumer.group import ConsumerGroup
from broker.groups.consumer.member import Member
from wire.errors import ErrorCode


def commit_error(
    group: ConsumerGroup, member_id: str, epoch: int, *, knows_epochs: bool
) -> ErrorCode:
    """Return whether offsets may be committed.

    Without an epoch only while it has no members; by a member in its epoch. `knows_epochs` says
    whether the request is one that members of the new protocol commit by.
    """
    if epoch < 0 and not group.members:
        return ErrorCode.NONE
    member = group.members.get(member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if member.classic is None and not knows_epochs:
        return ErrorCode.UNSUPPORTED_VERSION
    return epoch_error(member, epoch)


def fetch_error(group: ConsumerGroup | None, member_id: str | None, epoch: int) -> ErrorCode:
    """Return whether committed offsets may be told to a member; whoever names none may see them.

    Without such a group nothing is held against the epoch: members of classic groups name their
    generation there, and nobody checks it (ClassicGroup.validateOffsetFetch).
    """
    if group is None or member_id is None or epoch < 0:
        return ErrorCode.NONE
    member = group.members.get(member_id)
    return ErrorCode.UNKNOWN_MEMBER_ID if member is None else epoch_error(member, epoch)


def epoch_error(member: Member, epoch: int) -> ErrorCode:
    """Return NONE for the epoch that a member is in; a classic member calls it its generation."""
    if epoch == member.epoch:
        return ErrorCode.NONE
    is_classic = member.classic is not None
    return ErrorCode.ILLEGAL_GENERATION if is_classic else ErrorCode.STALE_MEMBER_EPOCH

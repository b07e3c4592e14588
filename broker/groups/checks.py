"""The checks that every request of a member goes through: is it one, and of this generation."""

from broker.groups.group import Group
from broker.groups.states import GroupState
from wire.errors import ErrorCode


def membership_error(group: Group, member_id: str, instance_id: str | None) -> ErrorCode:
    """Return NONE for a member; a static member under a former id is fenced, not unknown."""
    if instance_id is not None:
        current_id = group.static_members.get(instance_id)
        if current_id is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if current_id != member_id:
            return ErrorCode.FENCED_INSTANCE_ID
    return ErrorCode.NONE if member_id in group.members else ErrorCode.UNKNOWN_MEMBER_ID


def generation_error(
    group: Group, member_id: str, instance_id: str | None, generation: int
) -> ErrorCode:
    """Return NONE for a member of the running generation."""
    error = membership_error(group, member_id, instance_id)
    if error is ErrorCode.NONE and generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    return error


def commit_error(
    group: Group, member_id: str, instance_id: str | None, generation: int
) -> ErrorCode:
    """Return whether offsets may be committed.

    Without a generation (tools, consumers that assign partitions themselves): only while the group
    has no members. By a member: in its generation, and not between JoinGroup and SyncGroup.
    """
    if generation < 0 and group.state is GroupState.EMPTY:
        return ErrorCode.NONE
    if generation < 0 and not member_id and instance_id is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    error = generation_error(group, member_id, instance_id, generation)
    if error is ErrorCode.NONE and group.state is GroupState.COMPLETING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return error

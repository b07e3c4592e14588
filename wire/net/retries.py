"""The errors that are worth another try, and for how long."""

from typing import Final

from wire.errors import ErrorCode

PATIENCE_S: Final = 10.0
"""How long a composed operation tries again before it returns what it has."""

LEADER_MOVED: Final = frozenset(
    {
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)
"""Answers after which the partition's leader is looked up again."""

COORDINATOR_MOVED: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""Answers after which a group's coordinator is looked up again."""

GROUP_HAS_MEMBERS: Final = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.STALE_MEMBER_EPOCH,
    }
)
"""Answers to a commit from outside a group that has members. Those of KIP-848 show only so."""

_BY_NUMBER: Final = {code.value: code for code in ErrorCode}
"""Asked for every partition of every answer: a fifth of what a look-up by the class takes."""


def code_of(number: int) -> ErrorCode:
    """Return the error code; one that is not known here reads as UNKNOWN_SERVER_ERROR."""
    return _BY_NUMBER.get(number, ErrorCode.UNKNOWN_SERVER_ERROR)

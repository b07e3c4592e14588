"""The states of a classic group and the moves between them.

Empty ──► PreparingRebalance ──► CompletingRebalance ──► Stable
  ▲             │    ▲  ▲                 │                │
  └─────────────┘    │  └─────────────────┘                │
                     └─────────────────────────────────────┘
every state ──► Dead (deleted, or no longer coordinated here)
"""

from enum import Enum
from typing import Final


class GroupState(Enum):
    """A state by the name that clients and tools show."""

    EMPTY = "Empty"
    """No members; committed offsets may still be there."""
    PREPARING_REBALANCE = "PreparingRebalance"
    """Waiting for all members to send JoinGroup."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """A generation has begun; waiting for the leader's assignment in SyncGroup."""
    STABLE = "Stable"
    """Every member has its assignment."""
    DEAD = "Dead"
    """Gone from this coordinator; nothing may follow."""


ALLOWED: Final[dict[GroupState, frozenset[GroupState]]] = {
    GroupState.EMPTY: frozenset({GroupState.PREPARING_REBALANCE, GroupState.DEAD}),
    GroupState.PREPARING_REBALANCE: frozenset(
        {GroupState.COMPLETING_REBALANCE, GroupState.EMPTY, GroupState.DEAD}
    ),
    GroupState.COMPLETING_REBALANCE: frozenset(
        {GroupState.STABLE, GroupState.PREPARING_REBALANCE, GroupState.DEAD}
    ),
    GroupState.STABLE: frozenset({GroupState.PREPARING_REBALANCE, GroupState.DEAD}),
    GroupState.DEAD: frozenset(),
}

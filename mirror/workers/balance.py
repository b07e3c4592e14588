"""Decide when rates are worth moving a partition away from a worker at work. Pure.

Rates go up and down, and a move costs its partition a pause. So rates are smoothed, an imbalance
counts when it has lasted for PATIENCE looks, and a moved partition rests for REST looks. When a
worker joins or leaves, the shares are made even at once, and so are those of a topic that one
worker had whole while it was begun anew.
"""

from collections.abc import Collection, Mapping
from typing import Final

from mirror.workers.assignment import is_uneven
from wire.topic_partition import TopicPartition

NEWEST_COUNTS: Final = 0.5
"""The part of the newest rate in the smoothed one; the rest is what was known before."""
PATIENCE: Final = 2
REST: Final = 10


class Balance:
    """The rates of a flow as the leading worker has seen them."""

    def __init__(self) -> None:
        self.bytes_per_s: dict[TopicPartition, float] = {}
        """Smoothed; of partitions that have been told of."""
        self._members: frozenset[str] | None = None
        self._looks = 0
        self._uneven_looks = 0
        self._moved_at: dict[TopicPartition, int] = {}
        self._pinned: frozenset[str] = frozenset()

    def take_rates(
        self,
        told: Mapping[TopicPartition, float],
        owners: Mapping[TopicPartition, str],
        members: Collection[str],
    ) -> None:
        """Take over what the workers tell of the last while."""
        self._looks += 1
        for partition, rate in told.items():
            known = self.bytes_per_s.get(partition, rate)
            self.bytes_per_s[partition] = known + NEWEST_COUNTS * (rate - known)
        uneven = is_uneven(owners, members, self.bytes_per_s)
        self._uneven_looks = self._uneven_looks + 1 if uneven else 0
        looks = self._looks
        self._moved_at = {p: at for p, at in self._moved_at.items() if looks - at < REST}

    def at_rest(
        self,
        partitions: Collection[TopicPartition],
        members: Collection[str],
        pinned: Collection[str] = (),
    ) -> Collection[TopicPartition]:
        """Return the partitions that are not to be moved from a worker that is there.

        ``pinned`` are topics that one worker is to have whole.
        """
        if self._members != frozenset(members):
            return ()
        resting = self._moved_at.keys() if self._uneven_looks >= PATIENCE else partitions
        freed = self._pinned.difference(pinned)
        return (
            {partition for partition in resting if partition[0] not in freed} if freed else resting
        )

    def decided(
        self,
        members: Collection[str],
        moved: Collection[TopicPartition],
        pinned: Collection[str] = (),
    ) -> None:
        """Take note of the assignment that now holds, and of what it moves."""
        self._members, self._pinned = frozenset(members), frozenset(pinned)
        if moved:
            self._uneven_looks = 0
        self._moved_at |= dict.fromkeys(moved, self._looks)

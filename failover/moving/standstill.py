"""Refuse to wait for partitions that only somebody's decision lets go on.

A worker that was just told to go on tells so within a second. So a partition counts as standing
still once each look for TELL_WITHIN_S has shown it so.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Final, TypeAlias

import trio

from failover.journal.execute import StepFailed
from runtime.coordination.standstill import TELL_WITHIN_S, Standstill
from wire.topic_partition import TopicPartition

LOOK_EVERY_S: Final = 0.25

Look: TypeAlias = Callable[
    [Collection[TopicPartition]], Awaitable[Mapping[TopicPartition, Standstill]]
]
"""Returns those of these partitions that stand still."""


class StandstillWatch:
    """What stands still of a flow, and since when; in memory of one wait."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._since_s: dict[TopicPartition, float] = {}
        self._looked_s = -LOOK_EVERY_S

    @property
    def has_doubts(self) -> bool:
        """Whether the last look showed something that may only not have been told yet."""
        return bool(self._since_s)

    async def find(self, partitions: Collection[TopicPartition]) -> str | None:
        """Return the first of these that stands still, and how many there are; None if none does.

        May be called as often as one likes: it looks at intervals.
        """
        now_s = trio.current_time()
        if now_s - self._looked_s < LOOK_EVERY_S:
            return None
        self._looked_s = now_s
        found = await self._look(partitions)
        self._since_s = {where: self._since_s.get(where, now_s) for where in found}
        standing = sorted(
            found[where]
            for where, since_s in self._since_s.items()
            if now_s - since_s >= TELL_WITHIN_S
        )
        if not standing:
            return None
        return f"{standing[0]} ({len(standing)} of {len(partitions)} partitions)"

    async def require_none(self, partitions: Collection[TopicPartition]) -> None:
        """Raise StepFailed with what find() tells."""
        found = await self.find(partitions)
        if found is not None:
            raise StepFailed(found)


async def find_standstill(look: Look, partitions: Collection[TopicPartition]) -> str | None:
    """Return what StandstillWatch.find() tells, as soon as it can be told."""
    watch = StandstillWatch(look)
    while True:
        found = await watch.find(partitions)
        if found is not None or not watch.has_doubts:
            return found
        await trio.sleep(LOOK_EVERY_S)

"""For how long a group has not had everything that its source has: looked at every two seconds.

The source tells a group's position and the log's end, and no times. So the time at which the log
ended where a group is to come to is kept, and counts once the group is there. A group that is
always a record behind, as one at work is, then lags by seconds and not since the mirror began.
"""

from typing import Final

import trio

from mirror.groups.checkpoint_log import GroupPartition
from mirror.groups.source_groups import SourceGroups
from mirror.state.flow_partitions import FlowPartitions
from mirror.state.partition import MirroredPartition
from mirror.state.source_log import Level
from wire.topic_partition import TopicPartition

LOOK_S: Final = 2.0
AT_ONCE: Final = 1_000
"""Positions between two turns of all others: a millisecond or two."""


class GroupLags:
    """When each group last had everything, by partition."""

    def __init__(self, groups: SourceGroups, partitions: FlowPartitions) -> None:
        self._groups: Final = groups
        self._partitions: Final = partitions
        self._levels: dict[GroupPartition, Level] = {}

    async def run(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            await self.look()
            await trio.sleep(LOOK_S)

    async def look(self) -> None:
        """Compare all positions with the ends as they are known now."""
        positions = [
            (group, topic_partition)
            for group, known in self._groups.positions.items()
            for topic_partition in known
        ]
        seen: dict[GroupPartition, Level] = {}
        for number, (group, topic_partition) in enumerate(positions, 1):
            if number % AT_ONCE == 0:
                await trio.lowlevel.checkpoint()
            level = self._levels.get((group, *topic_partition)) or Level()
            if self._take(level, group, topic_partition):
                seen[group, *topic_partition] = level
        self._levels = seen

    def lag_ms(
        self,
        group_partition: GroupPartition,
        offset: int,
        partition: MirroredPartition,
        now_ms: int,
    ) -> int | None:
        """Return the time since the group had everything; None while unknown, which is not zero.

        A group at the end lags by 0. Of one that has not been there since the mirror began,
        nobody knows.
        """
        if partition.source.lag_records(offset, now_ms) == 0:
            return 0
        level = self._levels.get(group_partition)
        if level is None or level.level_ms is None:
            return None
        return max(0, now_ms - level.level_ms)

    def _take(self, level: Level, group: str, topic_partition: TopicPartition) -> bool:
        """Bring the level up to date; return whether the position is still known."""
        position = self._groups.positions.get(group, {}).get(topic_partition)
        if position is None:
            return False
        partition = self._partitions.known.get(topic_partition)
        if partition is not None and partition.source.end is not None:
            level.reach(position.offset)
            level.hear(partition.source.end, position.offset, partition.source.heard_ms)
        return True

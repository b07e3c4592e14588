"""What a look for partitions that stand still finds, in tests."""

from collections.abc import Collection, Mapping

from failover.moving.standstill import StandstillWatch
from runtime.coordination.standstill import Standstill
from wire.topic_partition import TopicPartition


def standing(*partitions: TopicPartition) -> dict[TopicPartition, Standstill]:
    """Return these as partitions that somebody has to decide about."""
    return {
        one: Standstill(partition=one, cause="target diverged: why", remedy="`mirror restart x`")
        for one in partitions
    }


def watch_of(*partitions: TopicPartition) -> StandstillWatch:
    """Return a watch that finds these standing still at each look."""

    async def look(_: Collection[TopicPartition]) -> Mapping[TopicPartition, Standstill]:
        return standing(*partitions)

    return StandstillWatch(look)

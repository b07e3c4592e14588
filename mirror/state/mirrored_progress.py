"""The partitions that have come further, or whose map has become trusted, for those who wait."""

from collections.abc import Iterable
from operator import attrgetter
from typing import Final

from mirror.state.partition import MirroredPartition
from wire.topic_partition import TopicPartition

_NAME_OF: Final = attrgetter("topic_partition")


class MirroredProgress:
    """Keeps the partitions that have moved on since positions were last held against them.

    A change of ``MirroredPartition.has_true_map`` to true, or of its map's mirrored end, is told
    here by the task that makes it: otherwise a group's position waits until its turn in the round.
    """

    __slots__ = ("_moved_on",)

    def __init__(self) -> None:
        self._moved_on: set[TopicPartition] = set()

    def tell(self, partitions: Iterable[MirroredPartition]) -> None:
        """Take note that these have moved on."""
        self._moved_on.update(map(_NAME_OF, partitions))

    def take(self) -> set[TopicPartition]:
        """Return the partitions told of since the last call."""
        moved_on, self._moved_on = self._moved_on, set()
        return moved_on

"""The agenda of looks at groups on the target. Pure: times are arguments.

A partition of a group is looked at when the group has committed on the source, when the data that
the position waits for has arrived, when the partition begins to be mirrored, and when a refusal or
a fault is long enough ago. It is looked at every now and then without any reason too: somebody may
have deleted the position on the target. Looks without news are spread, so that many groups cost no
more than a few looks a second.
"""

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from wire.topic_partition import TopicPartition

WAITING_LOOK_MS: Final = 500
"""A position that waits for data is committed again this often, and at once when it is exact."""
ACTIVE_LOOK_MS: Final = 3_000
"""A group that has members on the target is tried again this often."""
FAULT_LOOK_MS: Final = 1_000
LOOKS_A_SECOND: Final = 100
"""With more groups than this allows, the waits grow."""
ROUND_MS: Final = 60_000
"""Every group is looked at once in this time; of many groups LOOKS_A_SECOND."""

Due: TypeAlias = dict[str, set[TopicPartition]]


class Agenda:
    """Places by the reason for which they are to be looked at again."""

    def __init__(self, now_ms: int) -> None:
        self._later: dict[str, tuple[int, set[TopicPartition]]] = {}
        self._waiting: dict[TopicPartition, dict[str, int]] = {}
        self._unmirrored: dict[TopicPartition, set[str]] = {}
        self._round: list[str] = []
        self._round_due = 0.0
        self._round_ms = now_ms

    def later(
        self, group: str, topic_partitions: Iterable[TopicPartition], now_ms: int, pause_ms: int
    ) -> None:
        """Look at these again after the pause, or a longer one if many wait."""
        pause_ms = max(pause_ms, len(self._later) * 1_000 // LOOKS_A_SECOND)
        at_ms, known = self._later.get(group, (now_ms + pause_ms, set()))
        known.update(topic_partitions)
        self._later[group] = (at_ms, known)

    def wait_for_data(
        self, group: str, topic_partition: TopicPartition, source_offset: int
    ) -> None:
        """Look at it as soon as everything before this offset is mirrored."""
        self._waiting.setdefault(topic_partition, {})[group] = source_offset

    def wait_for_partition(self, group: str, topic_partition: TopicPartition) -> None:
        """Look at it as soon as its partition is mirrored."""
        self._unmirrored.setdefault(topic_partition, set()).add(group)

    def looked_at(self, group: str, topic_partitions: Iterable[TopicPartition]) -> None:
        """Drop the notes about these partitions."""
        _, later = self._later.get(group, (0, set()))
        for topic_partition in topic_partitions:
            later.discard(topic_partition)
            waiting = self._waiting.get(topic_partition)
            if waiting is not None and waiting.pop(group, None) is not None and not waiting:
                del self._waiting[topic_partition]
        if not later:
            self._later.pop(group, None)

    def forget(self, group: str, topic_partition: TopicPartition) -> None:
        """Drop a position that is gone on the source."""
        self.looked_at(group, (topic_partition,))
        groups = self._unmirrored.get(topic_partition, set())
        groups.discard(group)
        if not groups:
            self._unmirrored.pop(topic_partition, None)

    def due(
        self,
        now_ms: int,
        groups: Mapping[str, object],
        moved_on: Mapping[TopicPartition, int | None],
    ) -> tuple[Due, list[str]]:
        """Return the partitions to look at, and groups to look at whole; both are forgotten here.

        ``groups`` are those known. ``moved_on`` are the partitions whose extent is known and that
        have come further since the last call, each with the source offset before which all is
        mirrored; of the others nothing is due that waits for them.
        """
        due: Due = {}
        for group in [group for group, (at_ms, _) in self._later.items() if at_ms <= now_ms]:
            due.setdefault(group, set()).update(self._later.pop(group)[1])
        for topic_partition, end in moved_on.items():
            waiting = self._waiting.get(topic_partition, {})
            for group in [g for g, offset in waiting.items() if end is not None and offset <= end]:
                due.setdefault(group, set()).add(topic_partition)
            for group in self._unmirrored.pop(topic_partition, ()):
                due.setdefault(group, set()).add(topic_partition)
        return due, self._of_round(now_ms, groups)

    def everything(self) -> Due:
        """Return all partitions that wait, for whatever reason, for a last look."""
        due: Due = {}
        for group, (_, topic_partitions) in self._later.items():
            due.setdefault(group, set()).update(topic_partitions)
        for topic_partition, groups in (*self._waiting.items(), *self._unmirrored.items()):
            for group in groups:
                due.setdefault(group, set()).add(topic_partition)
        return due

    def _of_round(self, now_ms: int, groups: Mapping[str, object]) -> list[str]:
        """Return the groups whose turn it is, so that a round over all takes ROUND_MS."""
        passed_ms, self._round_ms = max(0, now_ms - self._round_ms), now_ms
        pace = min(len(groups) / ROUND_MS, LOOKS_A_SECOND / 1_000)
        self._round_due = min(self._round_due + passed_ms * pace, len(groups))
        turns = []
        while self._round_due >= 1 and groups:
            self._round_due -= 1
            if not self._round:
                self._round = list(groups)
            group = self._round.pop()
            if group in groups:
                turns.append(group)
        return turns

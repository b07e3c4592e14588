"""Where the target's logs begin: its retention or an administrator may have taken records there.

A position before that is out of the log's range, and a consumer that begins at the latest record
then skips all that is left.
"""

from collections.abc import Collection, Mapping
from typing import Final

import trio

from mirror.clusters.links import Links
from runtime.configuration.config import FlowConfig
from runtime.process.fault_note import FaultNote
from wire.errors import ErrorCode
from wire.net.errors import NetworkFault
from wire.net.operations import EARLIEST, list_offsets
from wire.topic_partition import TopicPartition

LOOK_S: Final = 5.0
"""So old a log's start may be."""


class TargetStarts:
    """Asks for the starts of logs of which they matter, each at most once in LOOK_S."""

    def __init__(self, config: FlowConfig, links: Links) -> None:
        self.known: Mapping[TopicPartition, int] = {}
        """By the source's names; a log that has not told begins at 0 as far as anybody knows."""
        self.fault: Final = FaultNote(f"{config.name}: log starts of the target")
        self._names: Final = config.names
        self._links = links
        self._looked_s: dict[TopicPartition, float] = {}

    async def refresh(self, topic_partitions: Collection[TopicPartition]) -> None:
        """Ask for those that were not asked for lately; without an answer the last one counts."""
        now_s = trio.current_time()
        due = [
            topic_partition
            for topic_partition in topic_partitions
            if now_s - self._looked_s.get(topic_partition, -LOOK_S) >= LOOK_S
        ]
        if not due:
            return
        on_target = {
            TopicPartition(
                self._names.on_target(topic_partition.topic), topic_partition.partition
            ): topic_partition
            for topic_partition in due
        }
        self._looked_s |= dict.fromkeys(due, now_s)
        try:
            answers = await list_offsets(self._links.target_admin, on_target, EARLIEST)
        except NetworkFault as fault:
            self.fault.note(str(fault))
            return
        self.fault.clear()
        starts = {
            on_target[topic_partition]: start
            for topic_partition, start in answers.items()
            if not isinstance(start, ErrorCode)
        }
        self.known = {**self.known, **starts}

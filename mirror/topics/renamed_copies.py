"""Copies that lie on the target under another name than the file gives them now. Pure.

The map remembers the id of the topic that holds each copy. Where the target has that topic under
another name, the flow's names were changed since: `rename`, `names` or `separator`. To go on would
mirror the source's topic anew, beside the copy that has all of it. So

1. its partitions stop as COPY_RENAMED, and no topic of the new name is made or changed;
2. somebody gives it the former name back, in the file; or has it mirrored anew under the new one
   (`mirror restart --from-earliest`), by which the map forgets the copy; or deletes the copy. It is
   not mirrored anew where the source has records that came from the copy: nothing that a mirror
   has brought is sent on, so the new copy would lack them.

Brokers before Kafka 2.8 tell no ids, and there nothing of this is seen.
"""

from collections.abc import Mapping
from typing import Final
from uuid import UUID

from mirror.state.interruptions import Interruptions
from mirror.state.partition import MirroredPartition
from mirror.state.partition_state import PartitionState
from offset_translation.topic_identity import NO_ID
from runtime.configuration.topic_names import TopicNames
from wire.net.metadata import ClusterView
from wire.topic_partition import TopicPartition

COPY_IS_GONE: Final = "the copy of the former name is known no more"


class RenamedCopies:
    """Knows by topic where copies lie that the file calls otherwise, as of the last look."""

    def __init__(self, names: TopicNames, interruptions: Interruptions) -> None:
        self._names = names
        self._interruptions = interruptions
        self._elsewhere: Mapping[str, str] = {}

    def look(self, target: ClusterView, copies: Mapping[TopicPartition, UUID]) -> None:
        """Compare; `copies` are the ids of the target's topics by the map."""
        names = {
            topic.topic_id: name for name, topic in target.topics.items() if topic.topic_id != NO_ID
        }
        self._elsewhere = {
            partition.topic: name
            for partition, topic_id in copies.items()
            if (name := names.get(topic_id)) is not None
            and name != self._names.on_target(partition.topic)
        }

    def former_name(self, topic: str) -> str | None:
        """Return what the copy of a source topic is called, where the file calls it otherwise."""
        return self._elsewhere.get(topic)

    def __contains__(self, topic: object) -> bool:
        """Whether the copy of a source topic lies elsewhere."""
        return topic in self._elsewhere

    def follow(self, partition: MirroredPartition, now_ms: int) -> bool:
        """Stop a partition whose copy lies elsewhere, or let it go on; return whether it stops."""
        name = self._elsewhere.get(partition.topic)
        if name is not None:
            reason = (
                f"the copy is {name!r} on {self._names.target}, and by the file now it is to be"
                f" {partition.target_topic!r}"
            )
            self._interruptions.stop(partition, PartitionState.COPY_RENAMED, reason, now_ms)
        elif partition.state is PartitionState.COPY_RENAMED:
            partition.retry(COPY_IS_GONE, now_ms)
        return name is not None

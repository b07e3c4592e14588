"""Topics that were deleted and made again on the source: what becomes of the copies of the earlier.

The map remembers the id of the source topic that each copy is of (`RecreatedTopics.remember`). A
source topic of another id is another topic, though it has the name. Its records have nothing to do
with the copy, and the copy may be the last there is of the earlier topic. So

1. its partitions stop as TOPIC_RECREATED (`follow`), and none of them is positioned
   (mirror.start.positioning);
2. the copy is neither grown nor given the new topic's settings (`leaves_copy_alone`);
3. somebody decides, a person (`mirror restart --from-earliest`) or the policy of the flow:
   discovery deletes the copy and the map forgets the earlier topic (`Discovery._begin_anew`). Or
   somebody deletes the copy by hand;
4. the target's topic is made anew, the map remembers the new id, and the partitions go on.

Brokers before Kafka 2.8 tell no ids, and there nothing of this is seen.
"""

from collections.abc import Collection, Iterable
from typing import Final

from mirror.map.map_log import MapLog
from mirror.state.interruptions import Interruptions
from mirror.state.partition import MirroredPartition
from mirror.state.partition_state import PartitionState
from mirror.topics.sight import exists
from offset_translation.map_records import source_topic
from offset_translation.topic_identity import is_recreated
from runtime.configuration.topic_names import TopicNames
from wire.net.metadata import ClusterView, TopicView

COPY_IS_ITS_OWN: Final = "the target topic is the new one's copy by now"


class RecreatedTopics:
    """Tells the source's topics from earlier ones of the same names, by what the map remembers."""

    def __init__(self, map_log: MapLog, names: TopicNames, interruptions: Interruptions) -> None:
        self._map_log = map_log
        self._names = names
        self._interruptions = interruptions

    def leaves_copy_alone(self, topic: TopicView, target: ClusterView) -> bool:
        """Whether the target holds the copy of an earlier topic, about which somebody decides."""
        known_id = self._map_log.state.topic_ids.get(topic.name)
        has_copy = exists(target, self._names.on_target(topic.name))
        return has_copy and is_recreated(known_id, topic.topic_id)

    def follow(
        self, partition: MirroredPartition, topic: TopicView, *, has_copy: bool, now_ms: int
    ) -> None:
        """Stop a partition whose source topic is another now, or let it go on where it is not.

        ``has_copy`` says that the target has a topic of the name, of whichever source topic.
        """
        known_id = self._map_log.state.topic_ids.get(topic.name)
        partition.source.meet_topic(topic.topic_id)
        if is_recreated(known_id, topic.topic_id) and has_copy:
            partition.target.keep_copy_of(known_id)
            reason = f"topic id {topic.topic_id} is not {known_id}, which was mirrored"
            self._interruptions.stop(partition, PartitionState.TOPIC_RECREATED, reason, now_ms)
        elif partition.state is PartitionState.SOURCE_GONE:
            partition.come_back(now_ms)
        elif (
            partition.state is PartitionState.TOPIC_RECREATED
            and partition.target.copied_id != known_id == topic.topic_id
        ):
            partition.retry(COPY_IS_ITS_OWN, now_ms)

    async def remember(self, topics: Iterable[TopicView], created: Collection[str]) -> None:
        """Write into the map which topics the copies are of; raises NetworkFault.

        A topic that the map knows keeps its id there, unless the target's topic was ``created``
        just now: then mirroring begins anew. These are named as on the target.
        """
        known = self._map_log.state.topic_ids
        records = [
            source_topic(topic.name, topic.topic_id)
            for topic in topics
            if topic.topic_id.int
            and (topic.name not in known or self._names.on_target(topic.name) in created)
        ]
        if records:
            await self._map_log.write_many(records)

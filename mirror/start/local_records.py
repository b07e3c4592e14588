"""Find copies on the target that hold records of the target's own, which nobody brings back.

The source has got these records, by the other direction's map, and they are not sent back from
there.
"""

from collections.abc import Mapping

from mirror.state.flow_partitions import FlowPartitions
from mirror.state.partition import MirroredPartition
from mirror.state.reverse_flow import ReverseFlow
from runtime.process.clock import now_ms
from wire.errors import ErrorCode
from wire.net.cluster import Cluster
from wire.net.operations import list_offsets
from wire.topic_partition import TopicPartition


async def hear_of(cluster: Cluster, silent: Mapping[TopicPartition, MirroredPartition]) -> None:
    """Note the ends of partitions on their source, as far as it answers; raises NetworkFault."""
    if not silent:
        return
    for topic_partition, end in (await list_offsets(cluster, silent)).items():
        if not isinstance(end, ErrorCode):
            silent[topic_partition].heard(source_end=end, readable_end=end, now_ms=now_ms())


async def holds_own(
    partitions: FlowPartitions, reverse: ReverseFlow, source: Cluster, topic: str
) -> bool | None:
    """Return whether a copy does; None while the source does not tell its end. NetworkFault."""
    of_topic = partitions.of_topic(topic)
    silent = {
        partition.topic_partition: partition
        for partition in of_topic
        if reverse.has_map_of(partition.topic_partition) and partition.source.end is None
    }
    await hear_of(source, silent)
    if any(reverse.backward(partition) is not None for partition in of_topic):
        return True
    return None if any(partition.source.end is None for partition in silent.values()) else False

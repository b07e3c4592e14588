"""Enough replicas of the evidence: with one broker the pair must not forget which site is active.

The topic is made at a first start, where brokers may have been away, or there were fewer of them.
"""

from collections.abc import Sequence
from typing import Final

from runtime.pair.evidence import TOPIC
from wire.errors import ErrorCode, describe
from wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from wire.net import Cluster, ClusterView, NetworkFault
from wire.net.topic_creation import MOST_REPLICAS

TIMEOUT_MS: Final = 15_000


class ReplicasRefused(NetworkFault):
    """The cluster gives the evidence no more replicas; the message says why."""


def added_replicas(view: ClusterView) -> tuple[int, ...]:
    """Return the brokers that the evidence's replicas could be added on, to be MOST_REPLICAS.

    Brokers of racks that have none come first. It is empty where the topic is not known.
    """
    topic = view.topics.get(TOPIC)
    partition = None if topic is None else topic.partitions.get(0)
    if partition is None:
        return ()
    held = {view.brokers[broker].rack for broker in partition.replicas if broker in view.brokers}
    spare = [one for one in view.brokers.values() if one.node_id not in partition.replicas]
    spare.sort(key=lambda one: (one.rack is not None and one.rack in held, one.node_id))
    missing = max(0, MOST_REPLICAS - len(partition.replicas))
    return tuple(one.node_id for one in spare[:missing])


async def add_replicas(cluster: Cluster) -> Sequence[int]:
    """Have the cluster add the replicas that it can; return on which brokers.

    It needs ALTER on the cluster, and KIP-455 (Apache Kafka 2.4). Raises NetworkFault.
    """
    view = await cluster.metadata(refresh=True)
    added = added_replicas(view)
    if not added:
        return ()
    replicas = (*view.topics[TOPIC].partitions[0].replicas, *added)
    moving = ReassignablePartition(partition_index=0, replicas=replicas)
    answer = await cluster.request_controller(
        AlterPartitionReassignmentsRequest(
            timeout_ms=TIMEOUT_MS, topics=(ReassignableTopic(name=TOPIC, partitions=(moving,)),)
        )
    )
    refused = [(answer.error_code, answer.error_message)]
    refused += [
        (partition.error_code, partition.error_message)
        for topic in answer.responses
        for partition in topic.partitions
    ]
    for code, message in refused:
        if code != ErrorCode.NONE:
            why = f"{describe(code)}{': ' + message if message else ''}"
            raise ReplicasRefused(f"{TOPIC}: no replicas on brokers {[*added]}: {why}")
    return added

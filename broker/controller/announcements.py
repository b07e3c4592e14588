"""From a decision to the requests that tell the brokers about it. Pure.

As Kafka's `ControllerBrokerRequestBatch`: replicas hear of their partitions by LeaderAndIsr, every
broker hears of all changed partitions by UpdateMetadata, deletions go out as StopReplica.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

from broker.controller.cluster import (
    LEADER_DURING_DELETE,
    Cluster,
    Decision,
    Replica,
    TopicPartition,
)
from broker.zookeeper.tree import PartitionState
from wire.messages.leader_and_isr import (
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from wire.messages.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
)
from wire.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)

ControlRequest: TypeAlias = LeaderAndIsrRequest | UpdateMetadataRequest | StopReplicaRequest

PLAINTEXT: Final = 0
"""Kafka's number of the security protocol."""

INCREMENTAL: Final = 1
FULL: Final = 2
"""LeaderAndIsr v5+: everything that the broker should hold, or only what changed."""


class Announcement(NamedTuple):
    """One request for one broker, to be sent in the order given."""

    broker_id: int
    request: ControlRequest


def announce(decision: Decision, controller_id: int) -> list[Announcement]:
    """Return what every live broker is to be told, newcomers everything."""
    cluster = decision.cluster
    told: list[Announcement] = []
    for broker in sorted(cluster.live):
        is_new = broker in decision.introduced
        partitions = set(cluster.partitions()) if is_new else decision.announced
        held = [part for part in partitions if broker in _replicas(cluster, part)]
        if held or is_new:
            told.append(
                Announcement(
                    broker, _leader_and_isr(cluster, held, broker, controller_id, full=is_new)
                )
            )
        if partitions or decision.brokers_changed:
            told.append(
                Announcement(broker, _update_metadata(cluster, partitions, broker, controller_id))
            )
    return [*told, *_stop_replicas(cluster, decision.doomed, controller_id)]


def _replicas(cluster: Cluster, partition: TopicPartition) -> tuple[int, ...]:
    return cluster.topics[partition.topic].replicas[partition.partition]


def _leader_and_isr(
    cluster: Cluster,
    partitions: Iterable[TopicPartition],
    broker: int,
    controller_id: int,
    *,
    full: bool,
) -> LeaderAndIsrRequest:
    by_topic: dict[str, list[LeaderAndIsrPartitionState]] = defaultdict(list)
    leaders: set[int] = set()
    for partition in sorted(partitions):
        state = cluster.states.get(partition)
        if state is None or partition.topic in cluster.deleting:
            continue
        leaders.add(state.leader)
        by_topic[partition.topic].append(_replica_state(cluster, partition, state))
    return LeaderAndIsrRequest(
        controller_id=controller_id,
        controller_epoch=cluster.controller_epoch,
        broker_epoch=cluster.live[broker].epoch,
        type=FULL if full else INCREMENTAL,
        topic_states=tuple(
            LeaderAndIsrTopicState(
                topic_name=name,
                topic_id=cluster.topics[name].topic_id,
                partition_states=tuple(states),
            )
            for name, states in by_topic.items()
        ),
        live_leaders=tuple(
            LeaderAndIsrLiveLeader(broker_id=live.broker_id, host_name=live.host, port=live.port)
            for live in cluster.live.values()
            if live.broker_id in leaders
        ),
    )


def _replica_state(
    cluster: Cluster, partition: TopicPartition, state: PartitionState
) -> LeaderAndIsrPartitionState:
    return LeaderAndIsrPartitionState(
        partition_index=partition.partition,
        controller_epoch=state.controller_epoch,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=state.isr,
        partition_epoch=state.version,
        replicas=_replicas(cluster, partition),
        is_new=state.leader_epoch == 0,
    )


def _update_metadata(
    cluster: Cluster, partitions: Collection[TopicPartition], broker: int, controller_id: int
) -> UpdateMetadataRequest:
    by_topic: dict[str, list[UpdateMetadataPartitionState]] = defaultdict(list)
    for partition in sorted(partitions):
        by_topic[partition.topic].append(_cached_state(cluster, partition))
    return UpdateMetadataRequest(
        controller_id=controller_id,
        controller_epoch=cluster.controller_epoch,
        broker_epoch=cluster.live[broker].epoch,
        topic_states=tuple(
            UpdateMetadataTopicState(
                topic_name=name,
                topic_id=cluster.topics[name].topic_id,
                partition_states=tuple(states),
            )
            for name, states in by_topic.items()
        ),
        live_brokers=tuple(
            UpdateMetadataBroker(
                id=live.broker_id,
                endpoints=(
                    UpdateMetadataEndpoint(
                        port=live.port,
                        host=live.host,
                        listener="PLAINTEXT",
                        security_protocol=PLAINTEXT,
                    ),
                ),
                rack=live.rack,
            )
            for live in cluster.live.values()
        ),
    )


def _cached_state(cluster: Cluster, partition: TopicPartition) -> UpdateMetadataPartitionState:
    replicas = _replicas(cluster, partition)
    state = cluster.states.get(partition)
    leader = -1 if state is None else state.leader
    if partition.topic in cluster.deleting:
        leader = LEADER_DURING_DELETE
    return UpdateMetadataPartitionState(
        partition_index=partition.partition,
        controller_epoch=cluster.controller_epoch,
        leader=leader,
        leader_epoch=-1 if state is None else state.leader_epoch,
        isr=() if state is None else state.isr,
        zk_version=-1 if state is None else state.version,
        replicas=replicas,
        offline_replicas=tuple(broker for broker in replicas if broker not in cluster.live),
    )


def _stop_replicas(
    cluster: Cluster, doomed: Collection[Replica], controller_id: int
) -> Sequence[Announcement]:
    by_broker: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for replica in sorted(doomed):
        by_broker[replica.broker_id][replica.topic].append(replica.partition)
    return [
        Announcement(broker, _stop_replica(cluster, topics, broker, controller_id))
        for broker, topics in by_broker.items()
        if broker in cluster.live
    ]


def _stop_replica(
    cluster: Cluster, topics: dict[str, list[int]], broker: int, controller_id: int
) -> StopReplicaRequest:
    return StopReplicaRequest(
        controller_id=controller_id,
        controller_epoch=cluster.controller_epoch,
        broker_epoch=cluster.live[broker].epoch,
        topic_states=tuple(
            StopReplicaTopicState(
                topic_name=name,
                partition_states=tuple(
                    StopReplicaPartitionState(
                        partition_index=index,
                        leader_epoch=LEADER_DURING_DELETE,
                        delete_partition=True,
                    )
                    for index in indexes
                ),
            )
            for name, indexes in topics.items()
        ),
    )

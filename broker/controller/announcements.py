"""From a decision to the requests that tell the brokers about it. Pure.

As Kafka's `ControllerBrokerRequestBatch`: replicas hear of their partitions by LeaderAndIsr, every
broker hears of all changed partitions by UpdateMetadata, deletions go out as StopReplica.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

from broker.controller.cluster import LEADER_DURING_DELETE, Cluster, Decision, PartitionAndReplica
from broker.zookeeper.tree import LeaderAndIsr
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
from wire.topic_partition import TopicPartition

ControlRequest: TypeAlias = LeaderAndIsrRequest | UpdateMetadataRequest | StopReplicaRequest

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
    everything = frozenset(cluster.partitions()) if decision.introduced else frozenset()
    known = _cached_topics(cluster, everything)
    changed = _cached_topics(cluster, decision.announced | decision.published)
    told: list[Announcement] = []
    for broker in sorted(cluster.live):
        is_new = broker in decision.introduced
        held = [
            part
            for part in (everything if is_new else decision.announced)
            if _is_held(cluster, part, broker)
        ]
        if held or is_new:
            told.append(
                Announcement(broker, _leader_and_isr(decision, held, broker, controller_id))
            )
        topics = known if is_new else changed
        if topics or is_new or decision.brokers_changed:
            told.append(
                Announcement(broker, _update_metadata(cluster, topics, broker, controller_id))
            )
    stops = _stop_replicas(decision, controller_id)
    # A newcomer deletes what is to be deleted before it looks for logs that are not assigned to it.
    first = [stop for stop in stops if stop.broker_id in decision.introduced]
    return [*first, *told, *(stop for stop in stops if stop.broker_id not in decision.introduced)]


def _is_held(cluster: Cluster, partition: TopicPartition, broker: int) -> bool:
    topic = cluster.topics.get(partition.topic)
    return topic is not None and broker in topic.replicas.get(partition.partition, ())


def _leader_and_isr(
    decision: Decision, partitions: Iterable[TopicPartition], broker: int, controller_id: int
) -> LeaderAndIsrRequest:
    cluster = decision.cluster
    by_topic: dict[str, list[LeaderAndIsrPartitionState]] = defaultdict(list)
    leaders: set[int] = set()
    for partition in sorted(partitions):
        state = cluster.states.get(partition)
        if state is None or partition.topic in cluster.deleting:
            continue
        leaders.add(state.leader)
        by_topic[partition.topic].append(_replica_state(decision, partition, state, broker))
    return LeaderAndIsrRequest(
        controller_id=controller_id,
        controller_epoch=cluster.controller_epoch,
        broker_epoch=cluster.live[broker].epoch,
        type=FULL if broker in decision.introduced else INCREMENTAL,
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
    decision: Decision, partition: TopicPartition, state: LeaderAndIsr, broker: int
) -> LeaderAndIsrPartitionState:
    topic, index = decision.cluster.topics[partition.topic], partition.partition
    is_first = partition in decision.writes and state.version == 0
    return LeaderAndIsrPartitionState(
        partition_index=index,
        controller_epoch=state.controller_epoch,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=state.isr,
        partition_epoch=state.version,
        replicas=topic.replicas[index],
        adding_replicas=topic.adding.get(index, ()),
        removing_replicas=topic.removing.get(index, ()),
        is_new=is_first or _begins_here(decision, partition, broker),
        leader_recovery_state=state.recovery,
    )


def _begins_here(decision: Decision, partition: TopicPartition, broker: int) -> bool:
    """Say whether this decision gives the broker a replica that it cannot have had before.

    Said once only: later the replica may lie on a log folder that has failed, and must not be made
    anew on another one.
    """
    begun = decision.begun.get(partition.topic)
    return begun is not None and broker in begun.adding.get(partition.partition, ())


def _cached_topics(
    cluster: Cluster, partitions: Collection[TopicPartition]
) -> tuple[UpdateMetadataTopicState, ...]:
    by_topic: dict[str, list[UpdateMetadataPartitionState]] = defaultdict(list)
    for partition in sorted(partitions):
        by_topic[partition.topic].append(_cached_state(cluster, partition))
    return tuple(
        UpdateMetadataTopicState(
            topic_name=name,
            topic_id=cluster.topics[name].topic_id,
            partition_states=tuple(states),
        )
        for name, states in by_topic.items()
    )


def _update_metadata(
    cluster: Cluster,
    topics: tuple[UpdateMetadataTopicState, ...],
    broker: int,
    controller_id: int,
) -> UpdateMetadataRequest:
    return UpdateMetadataRequest(
        controller_id=controller_id,
        controller_epoch=cluster.controller_epoch,
        broker_epoch=cluster.live[broker].epoch,
        topic_states=topics,
        live_brokers=tuple(
            UpdateMetadataBroker(
                id=live.broker_id,
                endpoints=tuple(
                    UpdateMetadataEndpoint(
                        port=one.port,
                        host=one.host,
                        listener=one.name,
                        security_protocol=one.protocol.value,
                    )
                    for one in live.listeners
                ),
                rack=live.rack,
            )
            for live in cluster.live.values()
        ),
    )


def _cached_state(cluster: Cluster, partition: TopicPartition) -> UpdateMetadataPartitionState:
    replicas = cluster.replicas(partition)
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
        offline_replicas=tuple(id_ for id_ in replicas if not cluster.is_online(id_, partition)),
    )


def _stop_replicas(decision: Decision, controller_id: int) -> Sequence[Announcement]:
    cluster = decision.cluster
    by_broker: dict[int, list[PartitionAndReplica]] = defaultdict(list)
    for replica in sorted(decision.doomed | decision.stopped):
        if replica.broker_id in cluster.live:
            by_broker[replica.broker_id].append(replica)
    return [
        Announcement(broker, _stop_replica(decision, replicas, broker, controller_id))
        for broker, replicas in by_broker.items()
    ]


def _stop_replica(
    decision: Decision, replicas: Iterable[PartitionAndReplica], broker: int, controller_id: int
) -> StopReplicaRequest:
    cluster = decision.cluster
    by_topic: dict[str, list[StopReplicaPartitionState]] = defaultdict(list)
    for replica in replicas:
        by_topic[replica.topic].append(
            StopReplicaPartitionState(
                partition_index=replica.partition,
                leader_epoch=_epoch_to_stop_in(cluster, replica),
                delete_partition=replica in decision.doomed,
            )
        )
    return StopReplicaRequest(
        controller_id=controller_id,
        controller_epoch=cluster.controller_epoch,
        broker_epoch=cluster.live[broker].epoch,
        topic_states=tuple(
            StopReplicaTopicState(topic_name=name, partition_states=tuple(states))
            for name, states in by_topic.items()
        ),
    )


def _epoch_to_stop_in(cluster: Cluster, replica: PartitionAndReplica) -> int:
    state = cluster.states.get(TopicPartition(replica.topic, replica.partition))
    if state is None or replica.topic in cluster.deleting:
        return LEADER_DURING_DELETE
    return state.leader_epoch

"""Event in, decision out: elections, broker deaths, topics coming and going. Pure.

The rules are those of Apache Kafka 3.9's ZooKeeper controller (`KafkaController`,
`PartitionLeaderElectionAlgorithms`, `TopicDeletionManager`).
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import assert_never

from broker.controller.cluster import (
    NO_LEADER,
    BrokersChanged,
    Cluster,
    Decision,
    DeletionRequested,
    Event,
    Replica,
    ReplicasDeleted,
    StateFound,
    TopicFound,
    TopicPartition,
)
from broker.zookeeper.tree import PartitionState


def decide(cluster: Cluster, event: Event) -> Decision:
    """Return what `event` makes of the cluster."""
    match event:
        case BrokersChanged():
            return _brokers_changed(cluster, event)
        case TopicFound():
            return _topic_found(cluster, event)
        case StateFound():
            return _state_found(cluster, event)
        case DeletionRequested():
            return _deletion_requested(cluster, event.name)
        case ReplicasDeleted():
            return _replicas_deleted(cluster, event)
        case _:
            assert_never(event)


def first_isr(live_replicas: tuple[int, ...]) -> tuple[int, ...]:
    """Return who is in sync in a new partition: its leader alone.

    A replica counts as in sync only once it has fetched up to the leader's end. One that never
    fetched must never be elected, for that would lose every acknowledged record.
    """
    return live_replicas[:1]


def _brokers_changed(cluster: Cluster, event: BrokersChanged) -> Decision:
    """Take the dead out first, then let the newcomers in; a broker reborn is both."""
    states = cluster.states.values()
    mentioned = {broker for state in states for broker in (state.leader, *state.isr)}
    gone = (mentioned - event.live.keys() - {NO_LEADER}) | {
        broker
        for broker, known in cluster.live.items()
        if broker not in event.live or event.live[broker].epoch != known.epoch
    }
    come = {
        broker
        for broker, registered in event.live.items()
        if broker not in cluster.live or cluster.live[broker].epoch != registered.epoch
    }
    survivors = {id_: known for id_, known in cluster.live.items() if id_ not in gone}
    without = replace(cluster, live=survivors)
    after_death = _with_states(without, _without_replicas(without, gone))
    after = replace(after_death, live=dict(event.live))
    changed = _one_write_each(cluster, _with_states(after, _elect(after, _leaderless(after))))
    final = _with_states(after, changed)
    doomed = frozenset(
        replica for replica in _replicas_of(final, final.deleting) if replica.broker_id in come
    )
    return Decision(
        cluster=final,
        writes=changed,
        introduced=frozenset(come),
        brokers_changed=cluster.live.keys() != event.live.keys() or bool(come),
        announced=frozenset(changed),
        doomed=doomed - final.deleted_replicas,
    )


def _one_write_each(before: Cluster, after: Cluster) -> dict[TopicPartition, PartitionState]:
    """Return the changed states; two steps of one decision become one write, one version on."""
    return {
        partition: replace(state, version=before.states[partition].version + 1)
        if partition in before.states
        else state
        for partition, state in after.states.items()
        if before.states.get(partition) != state
    }


def _without_replicas(cluster: Cluster, gone: set[int]) -> dict[TopicPartition, PartitionState]:
    """Return new states of the partitions that had a dead broker as leader or in sync.

    The last in-sync replica stays listed although it is dead: it alone has every record, so nobody
    else may lead until it is back.
    """
    changed: dict[TopicPartition, PartitionState] = {}
    for partition, state in cluster.states.items():
        if partition.topic in cluster.deleting:
            continue
        left = tuple(broker for broker in state.isr if broker not in gone)
        preferred = _first_of(cluster.topics[partition.topic].replicas[partition.partition], left)
        leader = state.leader if state.leader in left else preferred
        isr = left or _last_in_sync(state)
        if (leader, isr) != (state.leader, state.isr):
            changed[partition] = _successor(cluster, state, leader=leader, isr=isr)
    return changed


def _last_in_sync(state: PartitionState) -> tuple[int, ...]:
    """Return who must come back when everybody in sync is gone: the leader has every record."""
    return (state.leader,) if state.leader in state.isr else state.isr


def _topic_found(cluster: Cluster, event: TopicFound) -> Decision:
    known = cluster.topics.get(event.name)
    if known == event.assignment:
        return Decision(cluster=cluster)
    after = replace(cluster, topics={**cluster.topics, event.name: event.assignment})
    partitions = {TopicPartition(event.name, index) for index in event.assignment.replicas}
    elected = _elect(after, partitions & _leaderless(after))
    return Decision(
        cluster=_with_states(after, elected),
        writes=elected,
        announced=frozenset(
            partition
            for partition in partitions
            if known is None or partition.partition not in known.replicas
        ),
    )


def _state_found(cluster: Cluster, event: StateFound) -> Decision:
    """Take over what ZooKeeper holds; elect where its leader is not alive."""
    after = _with_states(cluster, {event.partition: event.state})
    elected = _elect(after, _leaderless(after) & {event.partition})
    return Decision(
        cluster=_with_states(after, elected),
        writes=elected,
        announced=frozenset({event.partition}),
    )


def _deletion_requested(cluster: Cluster, name: str) -> Decision:
    if name not in cluster.topics or name in cluster.deleting:
        return Decision(cluster=cluster)
    after = replace(cluster, deleting=cluster.deleting | {name})
    return Decision(
        cluster=after,
        announced=frozenset(part for part in after.partitions() if part.topic == name),
        doomed=frozenset(
            replica for replica in _replicas_of(after, {name}) if replica.broker_id in after.live
        ),
    )


def _replicas_deleted(cluster: Cluster, event: ReplicasDeleted) -> Decision:
    """Remove a topic when its last copy is gone; one on a dead broker has to be waited for."""
    awaited = frozenset(_replicas_of(cluster, cluster.deleting))
    deleted = cluster.deleted_replicas | (event.replicas & awaited)
    open_topics = {replica.topic for replica in awaited - deleted}
    removed = cluster.deleting - open_topics
    after = replace(
        cluster,
        topics={name: topic for name, topic in cluster.topics.items() if name not in removed},
        states={part: state for part, state in cluster.states.items() if part.topic not in removed},
        deleting=cluster.deleting - removed,
        deleted_replicas=frozenset(part for part in deleted if part.topic not in removed),
    )
    return Decision(cluster=after, removed=removed)


def _leaderless(cluster: Cluster) -> set[TopicPartition]:
    """Return the partitions without a live leader that are not being deleted."""
    return {
        partition
        for partition in cluster.partitions()
        if partition.topic not in cluster.deleting
        and (
            partition not in cluster.states or cluster.states[partition].leader not in cluster.live
        )
    }


def _elect(
    cluster: Cluster, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, PartitionState]:
    """Return the states that change: the first live in-sync replica leads, else nobody."""
    elected: dict[TopicPartition, PartitionState] = {}
    for partition in partitions:
        replicas = cluster.topics[partition.topic].replicas[partition.partition]
        live = tuple(broker for broker in replicas if broker in cluster.live)
        state = cluster.states.get(partition)
        if state is None:
            if live:
                elected[partition] = _first_state(cluster, live)
            continue
        isr = tuple(broker for broker in state.isr if broker in cluster.live)
        leader = _first_of(replicas, isr)
        if leader != state.leader:
            elected[partition] = _successor(cluster, state, leader=leader, isr=isr or state.isr)
    return elected


def _first_state(cluster: Cluster, live: tuple[int, ...]) -> PartitionState:
    return PartitionState(
        leader=live[0],
        leader_epoch=0,
        isr=first_isr(live),
        controller_epoch=cluster.controller_epoch,
        version=0,
    )


def _successor(
    cluster: Cluster, state: PartitionState, *, leader: int, isr: tuple[int, ...]
) -> PartitionState:
    return PartitionState(
        leader=leader,
        leader_epoch=state.leader_epoch + 1,
        isr=isr,
        controller_epoch=cluster.controller_epoch,
        version=state.version + 1,
    )


def _first_of(replicas: Iterable[int], eligible: Collection[int]) -> int:
    return next((broker for broker in replicas if broker in eligible), NO_LEADER)


def _with_states(cluster: Cluster, changed: Mapping[TopicPartition, PartitionState]) -> Cluster:
    return replace(cluster, states={**cluster.states, **changed}) if changed else cluster


def _replicas_of(cluster: Cluster, topics: Collection[str]) -> list[Replica]:
    return [
        Replica(name, index, broker)
        for name in topics
        for index, brokers in cluster.topics[name].replicas.items()
        for broker in brokers
    ]

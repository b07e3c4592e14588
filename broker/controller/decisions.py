"""Event in, decision out: brokers, topics, deletions. Pure.

The rules are those of Apache Kafka 3.9's ZooKeeper controller (`KafkaController`,
`TopicDeletionManager`); who leads is `elections`, what leaders and operators ask for is `requests`,
moves of replicas are `moves`.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import assert_never

from broker.controller.cluster import (
    NO_LEADER,
    BrokersChanged,
    Cluster,
    Decision,
    DeletionRequested,
    DiskFailed,
    ElectionRequested,
    Event,
    IsrProposed,
    MoveRequested,
    PartitionAndReplica,
    ReplicasDeleted,
    ReplicasFailed,
    ShutdownRequested,
    TopicFound,
    UncleanAllowed,
)
from broker.controller.elections import changes, settle, with_states
from broker.controller.moves import request_moves, resume_moves
from broker.controller.requests import elect_on_request, propose_isr, shut_down
from wire.topic_partition import TopicPartition


def decide(cluster: Cluster, event: Event) -> Decision:  # noqa: C901, PLR0911 - one line per event
    """Return what `event` makes of the cluster."""
    match event:
        case BrokersChanged():
            return _brokers_changed(cluster, event)
        case TopicFound():
            return _topic_found(cluster, event)
        case DeletionRequested():
            return _deletion_requested(cluster, event.name)
        case ReplicasDeleted():
            return _replicas_deleted(cluster, event)
        case ReplicasFailed():
            return _replicas_failed(cluster, event)
        case DiskFailed():
            return Decision(cluster=cluster, introduced=event.brokers & cluster.live.keys())
        case UncleanAllowed():
            return _unclean_allowed(cluster, event)
        case IsrProposed():
            return propose_isr(cluster, event)
        case ShutdownRequested():
            return shut_down(cluster, event.broker_id)
        case ElectionRequested():
            return elect_on_request(cluster, event)
        case MoveRequested():
            return request_moves(cluster, event.targets)
        case _:
            assert_never(event)


def _brokers_changed(cluster: Cluster, event: BrokersChanged) -> Decision:
    """Take the dead out and let the newcomers in; a broker reborn is both, dead first.

    To a new controller the states tell who has died: the controller before may have died with that
    broker, or have been it.
    """
    mentioned = {
        broker for state in cluster.states.values() for broker in (state.leader, *state.isr)
    }
    stayed = {
        broker
        for broker, known in cluster.live.items()
        if broker in event.live and event.live[broker].epoch == known.epoch
    }
    gone = (mentioned - event.live.keys() - {NO_LEADER}) | (cluster.live.keys() - stayed)
    come = event.live.keys() - stayed
    after = replace(
        cluster,
        live=dict(event.live),
        leaving=cluster.leaving & stayed,
        failed=frozenset(one for one in cluster.failed if one.broker_id in stayed),
    )
    reborn = {} if cluster.live else {name: _reborn(after, name) for name in after.states}
    settled = _settled(after, _present(after), gone, reborn)
    decision = resume_moves(settled.cluster, come, is_all=not cluster.live)
    changed = changes(cluster, decision.cluster, _present(after))
    final = with_states(decision.cluster, changed)
    doomed = frozenset(
        replica for replica in _replicas_of(final, final.deleting) if replica.broker_id in come
    )
    return replace(
        decision,
        cluster=final,
        writes=changed,
        introduced=frozenset(come),
        brokers_changed=after.live != cluster.live,
        announced=frozenset(changed) | decision.announced,
        doomed=(doomed - final.deleted_replicas) | decision.doomed,
    )


def _reborn(cluster: Cluster, partition: TopicPartition) -> frozenset[int]:
    """Return those in sync who have begun a new life since that was written.

    Nobody has let them in in that life, and the disk of it may be another one. Where nobody in sync
    has stayed all is as before.
    """
    state = cluster.states[partition]
    live = [broker for broker in state.isr if broker in cluster.live]
    reborn = frozenset(
        broker for broker in live if 0 <= state.written_zxid < cluster.live[broker].epoch
    )
    return reborn if len(reborn) < len(live) else frozenset()


def _settled(
    cluster: Cluster,
    partitions: Collection[TopicPartition],
    gone: Collection[int] = (),
    reborn: Mapping[TopicPartition, frozenset[int]] = MappingProxyType({}),
) -> Decision:
    """Return the decision that gives each of these partitions the leader it can have."""
    found = {
        name: settle(cluster, name, gone=gone, doubted=reborn.get(name, ())) for name in partitions
    }
    changed = {
        name: state
        for name, state in found.items()
        if state is not None and state is not cluster.states.get(name)
    }
    return Decision(
        cluster=with_states(cluster, changed), writes=changed, announced=frozenset(changed)
    )


def _topic_found(cluster: Cluster, event: TopicFound) -> Decision:
    known = cluster.topics.get(event.name)
    if known == event.assignment:
        return Decision(cluster=cluster)
    after = replace(cluster, topics={**cluster.topics, event.name: event.assignment})
    fresh = {
        TopicPartition(event.name, index)
        for index in event.assignment.replicas
        if known is None or index not in known.replicas
    }
    settled = _settled(after, fresh)
    return replace(settled, announced=frozenset(fresh))


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
        failed=frozenset(one for one in cluster.failed if one.topic not in removed),
        deleting=cluster.deleting - removed,
        deleted_replicas=frozenset(part for part in deleted if part.topic not in removed),
    )
    return Decision(cluster=after, removed=removed)


def _replicas_failed(cluster: Cluster, event: ReplicasFailed) -> Decision:
    """Treat a replica whose disk has failed as one whose broker is dead."""
    failed = (cluster.failed - event.told) | event.failed
    if failed == cluster.failed:
        return Decision(cluster=cluster)
    touched = {TopicPartition(one.topic, one.partition) for one in failed ^ cluster.failed}
    after = replace(cluster, failed=failed)
    settled = _settled(after, [name for name in touched if after.exists(name)])
    return replace(settled, published=frozenset(filter(after.exists, touched)))


def _unclean_allowed(cluster: Cluster, event: UncleanAllowed) -> Decision:
    if event.topics == cluster.unclean:
        return Decision(cluster=cluster)
    after = replace(cluster, unclean=event.topics)
    leaderless = [name for name in _present(after) if _is_leaderless(after, name)]
    return _settled(after, leaderless)


def _is_leaderless(cluster: Cluster, partition: TopicPartition) -> bool:
    state = cluster.states.get(partition)
    return state is None or state.leader == NO_LEADER


def _present(cluster: Cluster) -> list[TopicPartition]:
    return [name for name in cluster.partitions() if name.topic not in cluster.deleting]


def _replicas_of(cluster: Cluster, topics: Collection[str]) -> list[PartitionAndReplica]:
    return [
        PartitionAndReplica(name, index, broker)
        for name in topics
        for index, brokers in cluster.topics[name].replicas.items()
        for broker in brokers
    ]

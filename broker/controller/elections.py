"""Elections: the first state of a partition, and every way to come to the next one. Pure.

The rules are those of Apache Kafka 3.9's ZooKeeper controller (`Election`,
`PartitionLeaderElectionAlgorithms`, `ReplicaStateMachine`). Every change of leader or ISR that the
controller makes raises the leader epoch, so that what was said before it is refused everywhere.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from broker.controller.cluster import NO_LEADER, RECOVERING, Cluster
from broker.zookeeper.tree import LeaderAndIsr
from wire.topic_partition import TopicPartition

States = Mapping[TopicPartition, LeaderAndIsr]


def first_state(cluster: Cluster, partition: TopicPartition) -> LeaderAndIsr | None:
    """Return the state of a new partition, None while no replica can lead it.

    Every live replica is in sync with an empty log. None of them may be counted as holding a
    record before it has fetched it: the leader holds the high watermark back for that.
    """
    live = tuple(id_ for id_ in cluster.replicas(partition) if cluster.can_lead(id_, partition))
    if not live:
        return None
    return LeaderAndIsr(
        leader=live[0],
        leader_epoch=0,
        isr=live,
        controller_epoch=cluster.controller_epoch,
        version=0,
    )


def settle(
    cluster: Cluster,
    partition: TopicPartition,
    *,
    gone: Collection[int] = (),
    doubted: Collection[int] = (),
    is_unclean_allowed: bool = False,
) -> LeaderAndIsr | None:
    """Return the partition's state without the replicas on `gone`, with a leader if one can be.

    A `doubted` replica leads only where no other can: the others cut what their leader does not
    have, while a leader sees what its follower has.

    When nobody in sync is left the ISR stays as it was: they all have every acknowledged record,
    so any of them may lead when it is back, and nobody else may.
    """
    state = cluster.states.get(partition)
    if state is None:
        return first_state(cluster, partition)
    replicas = cluster.replicas(partition)
    left = tuple(id_ for id_ in state.isr if id_ not in gone and cluster.is_online(id_, partition))
    if state.leader in left and state.leader not in doubted:
        return successor(cluster, state, isr=left)
    eligible = tuple(id_ for id_ in left or state.isr if cluster.can_lead(id_, partition))
    leader = _first_of(replicas, [id_ for id_ in eligible if id_ not in doubted] or eligible)
    if leader != NO_LEADER:
        return successor(cluster, state, leader=leader, isr=eligible, is_new_epoch=True)
    if is_unclean_allowed or partition.topic in cluster.unclean:
        leader = next((id_ for id_ in replicas if cluster.can_lead(id_, partition)), NO_LEADER)
        if leader != NO_LEADER:
            elected = successor(cluster, state, leader=leader, isr=(leader,))
            return replace(elected, recovery=RECOVERING)
    return successor(cluster, state, leader=NO_LEADER, isr=left or state.isr)


def prefer(cluster: Cluster, partition: TopicPartition) -> LeaderAndIsr | None:
    """Return the state in which the first replica leads, None when it cannot."""
    state, preferred = cluster.states[partition], cluster.replicas(partition)[0]
    if preferred not in state.isr or not cluster.can_lead(preferred, partition):
        return None
    return successor(cluster, state, leader=preferred, isr=state.isr)


def move_away(
    cluster: Cluster, partition: TopicPartition, broker: int
) -> tuple[LeaderAndIsr, bool]:
    """Return the state in which `broker` neither leads nor is in sync, and whether that can be.

    The last in-sync replica cannot leave: then the state stays as it is.
    """
    state = cluster.states[partition]
    left = tuple(id_ for id_ in state.isr if id_ != broker)
    if state.leader != broker:
        return successor(cluster, state, isr=left or state.isr), True
    eligible = [id_ for id_ in left if cluster.can_lead(id_, partition)]
    leader = _first_of(cluster.replicas(partition), eligible)
    if leader == NO_LEADER:
        return state, False
    return successor(cluster, state, leader=leader, isr=left), True


def successor(
    cluster: Cluster,
    state: LeaderAndIsr,
    *,
    leader: int | None = None,
    isr: tuple[int, ...] | None = None,
    is_new_epoch: bool = False,
) -> LeaderAndIsr:
    """Return the next state in a new leader epoch; the same one when nothing differs."""
    changed = replace(
        state,
        leader=state.leader if leader is None else leader,
        isr=state.isr if isr is None else isr,
    )
    if changed == state and not is_new_epoch:
        return state
    return replace(
        changed,
        leader_epoch=state.leader_epoch + 1,
        controller_epoch=cluster.controller_epoch,
        version=state.version + 1,
    )


def with_states(cluster: Cluster, changed: States) -> Cluster:
    """Return the cluster with these states instead of what it had."""
    return replace(cluster, states={**cluster.states, **changed}) if changed else cluster


def changes(before: Cluster, after: Cluster, partitions: Iterable[TopicPartition]) -> States:
    """Return the states to be written; several steps of one decision are one write, one version."""
    found: dict[TopicPartition, LeaderAndIsr] = {}
    for partition in partitions:
        old, new = before.states.get(partition), after.states.get(partition)
        if new is not None and new != old:
            found[partition] = replace(new, version=0 if old is None else old.version + 1)
    return found


def _first_of(replicas: Iterable[int], eligible: Collection[int]) -> int:
    return next((broker for broker in replicas if broker in eligible), NO_LEADER)

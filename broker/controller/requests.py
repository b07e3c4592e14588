"""Decisions on what leaders, leaving brokers and operators ask of the controller. Pure.

As Kafka's `KafkaController`: `tryProcessAlterPartition`, `doControlledShutdown`,
`processReplicaLeaderElection`, `checkAndTriggerAutoLeaderRebalance`.
"""

from collections import defaultdict
from dataclasses import replace

from broker.controller.cluster import (
    NO_LEADER,
    RECOVERED,
    RECOVERING,
    UNKNOWN_BROKER_EPOCH,
    ApiError,
    Cluster,
    Decision,
    Election,
    ElectionRequested,
    IsrChange,
    IsrProposed,
    PartitionAndReplica,
)
from broker.controller.elections import changes, move_away, prefer, settle, with_states
from broker.controller.moves import finish_moves
from broker.zookeeper.tree import LeaderAndIsr
from wire.errors import ErrorCode
from wire.topic_partition import TopicPartition


def propose_isr(cluster: Cluster, event: IsrProposed) -> Decision:
    """Take the ISR that a leader wants, where it knows the present state; finish moves by it.

    A leader that knows the present state and wants the ISR as it is gets it in a new version: a
    request of its own that it has lost sight of is void from then on.
    """
    outcomes: dict[TopicPartition, ApiError] = {}
    taken: dict[TopicPartition, LeaderAndIsr] = {}
    for partition, change in event.changes.items():
        error = _refuse(cluster, event.broker_id, partition, change)
        outcomes[partition] = ApiError(error)
        if error is ErrorCode.NONE and not _was_done(cluster.states[partition], change):
            taken[partition] = replace(
                cluster.states[partition],
                isr=tuple(change.isr),
                recovery=change.recovery,
                controller_epoch=cluster.controller_epoch,
            )
    finished = finish_moves(with_states(cluster, taken), taken)
    renewed = {
        partition: replace(state, version=state.version + 1)
        for partition, state in cluster.states.items()
        if partition in taken
    }
    written = {**renewed, **changes(cluster, finished.cluster, taken)}
    return replace(
        finished,
        cluster=with_states(finished.cluster, written),
        writes=written,
        published=frozenset(taken),
        outcomes=outcomes,
    )


def _refuse(
    cluster: Cluster, broker: int, partition: TopicPartition, change: IsrChange
) -> ErrorCode:
    """Return what keeps a change from being taken: first an older view of the partition."""
    state = cluster.states.get(partition)
    if state is None or not cluster.exists(partition):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if change.version > state.version or change.leader_epoch > state.leader_epoch:
        return ErrorCode.NOT_CONTROLLER  # whoever told it that is the controller now
    if change.leader_epoch < state.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if state.leader == broker and _is_so(state, change):
        return ErrorCode.NONE  # asked again: the answer to the first time was lost
    if change.version < state.version:
        return ErrorCode.INVALID_UPDATE_VERSION
    return _refuse_isr(cluster, broker, partition, change)


def _refuse_isr(
    cluster: Cluster, broker: int, partition: TopicPartition, change: IsrChange
) -> ErrorCode:
    state = cluster.states[partition]
    is_among_replicas = change.isr.keys() <= set(cluster.replicas(partition))
    if state.leader != broker or broker not in change.isr or not is_among_replicas:
        return ErrorCode.INVALID_REQUEST
    if change.recovery == RECOVERING and (state.recovery == RECOVERED or len(change.isr) > 1):
        return ErrorCode.INVALID_REQUEST
    added = change.isr.keys() - set(state.isr)
    if not all(_may_join(cluster, partition, id_, change.isr[id_]) for id_ in added):
        return ErrorCode.INELIGIBLE_REPLICA
    return ErrorCode.NONE


def _is_so(state: LeaderAndIsr, change: IsrChange) -> bool:
    return change.isr.keys() == set(state.isr) and change.recovery == state.recovery


def _was_done(state: LeaderAndIsr, change: IsrChange) -> bool:
    """Return whether this is a repetition: the answer to the first time was lost."""
    return _is_so(state, change) and change.version < state.version


def _may_join(cluster: Cluster, partition: TopicPartition, broker: int, epoch: int) -> bool:
    """Return whether a replica may be in sync: in this life of its broker (KIP-841, KIP-903)."""
    return cluster.can_lead(broker, partition) and epoch in {
        UNKNOWN_BROKER_EPOCH,
        cluster.live[broker].epoch,
    }


def shut_down(cluster: Cluster, broker: int) -> Decision:
    """Give away what a leaving broker leads, take it out of every ISR, stop its fetching."""
    after = replace(cluster, leaving=cluster.leaving | ({broker} & cluster.live.keys()))
    moved: dict[TopicPartition, LeaderAndIsr] = {}
    stopped: set[PartitionAndReplica] = set()
    for partition, state in cluster.states.items():
        replicas = () if partition.topic in cluster.deleting else cluster.replicas(partition)
        if broker not in replicas or len(replicas) == 1:
            continue
        changed, has_left = move_away(after, partition, broker)
        if changed is not state:
            moved[partition] = changed
        if has_left and state.leader != broker:
            stopped.add(PartitionAndReplica(*partition, broker))
    return Decision(
        cluster=with_states(after, moved),
        writes=moved,
        announced=frozenset(moved),
        stopped=frozenset(stopped),
    )


def still_led(cluster: Cluster, broker: int) -> list[TopicPartition]:
    """Return what a leaving broker leads although somebody else holds it too."""
    return [
        partition
        for partition, state in cluster.states.items()
        if state.leader == broker
        and partition.topic not in cluster.deleting
        and len(cluster.replicas(partition)) > 1
    ]


def elect_on_request(cluster: Cluster, event: ElectionRequested) -> Decision:
    """Elect where it is needed and can be."""
    outcomes: dict[TopicPartition, ApiError] = {}
    elected: dict[TopicPartition, LeaderAndIsr] = {}
    for partition in event.partitions:
        found = _elect(cluster, partition, event.election)
        if isinstance(found, LeaderAndIsr):
            elected[partition] = found
            outcomes[partition] = ApiError()
        else:
            outcomes[partition] = found
    return Decision(
        cluster=with_states(cluster, elected),
        writes=elected,
        announced=frozenset(elected),
        outcomes=outcomes,
    )


def _elect(
    cluster: Cluster, partition: TopicPartition, election: Election
) -> LeaderAndIsr | ApiError:
    if partition.topic in cluster.deleting:
        return ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic is being deleted")
    if not cluster.exists(partition):
        return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
    state = cluster.states.get(partition)
    leader = NO_LEADER if state is None else state.leader
    if election is Election.PREFERRED:
        is_needed = leader != cluster.replicas(partition)[0]
        elected = None if state is None else prefer(cluster, partition)
        error = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        reason = "the preferred replica is not alive and in sync"
    else:
        is_needed = leader not in cluster.live
        elected = settle(cluster, partition, is_unclean_allowed=True)
        error = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
        reason = "no replica is alive"
    if not is_needed:
        return ApiError(ErrorCode.ELECTION_NOT_NEEDED)
    if elected is not None and elected.leader != NO_LEADER:
        return elected
    return ApiError(error, f"Failed to elect leader for partition {partition}: {reason}")


def imbalanced(cluster: Cluster, percentage: int) -> frozenset[TopicPartition]:
    """Return the partitions to be given back to their preferred leaders.

    A broker gets its partitions back when others lead more than `percentage` percent of them. Only
    partitions whose preferred replica can lead now are named.
    """
    preferred: dict[int, list[TopicPartition]] = defaultdict(list)
    for partition in cluster.states:
        if partition.topic not in cluster.deleting:
            preferred[cluster.replicas(partition)[0]].append(partition)
    found: set[TopicPartition] = set()
    for broker, partitions in preferred.items():
        others = [name for name in partitions if cluster.states[name].leader != broker]
        if len(others) * 100 > percentage * len(partitions):
            found |= {name for name in others if prefer(cluster, name) is not None}
    return frozenset(found)

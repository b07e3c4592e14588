"""Moving partitions to other brokers (KIP-455): begin, finish, cancel, resume. Pure.

    replicas          adding   removing  leader  isr
    1,2,3                                1       1,2,3         as it was
    4,5,6,1,2,3       4,5,6    1,2,3     1       1,2,3         begun: the new ones fetch
    4,5,6,1,2,3       4,5,6    1,2,3     1       1,2,3,4,5,6   in sync, by the leader's word
    4,5,6                                4       4,5,6         finished: the old ones are deleted

As Kafka's `onPartitionReassignment`. The assignment that begins a move is written before the state
and the one that finishes it after the state, so that a controller that dies in between is resumed.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from broker.controller.cluster import NO_LEADER, ApiError, Cluster, Decision, PartitionAndReplica
from broker.controller.elections import changes, first_state, successor, with_states
from broker.zookeeper.tree import LeaderAndIsr, TopicAssignment
from wire.errors import ErrorCode
from wire.topic_partition import TopicPartition


def request_moves(
    cluster: Cluster, targets: Mapping[TopicPartition, tuple[int, ...] | None]
) -> Decision:
    """Begin, replace or cancel moves; those that need no catching up are finished at once."""
    outcomes: dict[TopicPartition, ApiError] = {}
    planned: dict[TopicPartition, TopicAssignment] = {}
    for partition, wanted in targets.items():
        plan = _plan(cluster, partition, wanted)
        if isinstance(plan, ApiError):
            outcomes[partition] = plan
        else:
            planned[partition] = plan
            outcomes[partition] = ApiError()
    begun = _merged(cluster, planned)
    after = replace(cluster, topics={**cluster.topics, **begun})
    dropped = {name: _dropped(cluster, after, name) for name in planned}
    resumed = _resume(
        with_states(after, {name: _without(after, name) for name in planned if dropped[name]}),
        planned,
    )
    written = changes(cluster, resumed.cluster, planned)
    return replace(
        resumed,
        cluster=with_states(resumed.cluster, written),
        begun=begun,
        writes=written,
        doomed=resumed.doomed | _on(cluster, dropped),
        outcomes=outcomes,
    )


def resume_moves(cluster: Cluster, come: Collection[int], *, is_all: bool) -> Decision:
    """Go on with the moves to brokers that have come; with `is_all`, with every move.

    The states in the decision's cluster are not yet what is to be written: see `changes`.
    """
    moving = [
        TopicPartition(name, index)
        for name, topic in cluster.topics.items()
        if name not in cluster.deleting
        for index in topic.moving()
        if is_all or not set(topic.target(index)).isdisjoint(come)
    ]
    return _resume(cluster, moving)


def finish_moves(cluster: Cluster, partitions: Iterable[TopicPartition]) -> Decision:
    """Finish those of the moves whose targets are all in sync."""
    moving = [name for name in partitions if _is_moving(cluster, name)]
    return _finish(cluster, [name for name in moving if _is_ready(cluster, name)])


def _resume(cluster: Cluster, partitions: Iterable[TopicPartition]) -> Decision:
    """Finish what is ready; tell the replicas of the others of the move, in a new leader epoch."""
    ready = {name: _is_ready(cluster, name) for name in partitions}
    finished = _finish(cluster, [name for name, is_ready in ready.items() if is_ready])
    told = {
        name: successor(cluster, cluster.states[name], is_new_epoch=True)
        for name, is_ready in ready.items()
        if not is_ready
    }
    return replace(
        finished,
        cluster=with_states(finished.cluster, told),
        announced=finished.announced | told.keys(),
    )


def _finish(cluster: Cluster, ready: Collection[TopicPartition]) -> Decision:
    settled = {name: _settled(cluster.topics[name.topic], name.partition) for name in ready}
    left = {name: cluster.topics[name.topic].removing.get(name.partition, ()) for name in ready}
    topics = _merged(cluster, settled)
    after = replace(cluster, topics={**cluster.topics, **topics})
    states = {name: _finished_state(after, name) for name in ready}
    return Decision(
        cluster=with_states(
            after, {name: state for name, state in states.items() if state is not None}
        ),
        finished={name: topic for name, topic in topics.items() if topic != cluster.topics[name]},
        announced=frozenset(ready),
        doomed=_on(cluster, left),
    )


def _plan(
    cluster: Cluster, partition: TopicPartition, wanted: tuple[int, ...] | None
) -> TopicAssignment | ApiError:
    """Return the topic's assignment with this one partition on the move, or why not."""
    if not cluster.exists(partition):
        return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
    topic, index = cluster.topics[partition.topic], partition.partition
    origin = topic.origin(index)
    if wanted is None:
        if index not in topic.moving():
            return ApiError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
        wanted = origin
    full = tuple(dict.fromkeys([*wanted, *origin]))
    adding = tuple(broker for broker in full if broker not in origin)
    refused = _refuse(cluster, partition, wanted, adding)
    if refused is not None:
        return refused
    removing = tuple(broker for broker in full if broker not in wanted)
    planned = _with_partition(topic, index, full, adding, removing)
    gone = set(topic.replicas[index]) - set(full)
    state = cluster.states.get(partition)
    if state is not None and gone and set(state.isr) <= gone:
        return ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Only replicas that would be dropped are in sync: this would lose records.",
        )
    return planned


def _refuse(
    cluster: Cluster, partition: TopicPartition, wanted: tuple[int, ...], adding: tuple[int, ...]
) -> ApiError | None:
    error = ErrorCode.INVALID_REPLICA_ASSIGNMENT
    if not wanted:
        return ApiError(error, "Empty replica list specified in partition reassignment.")
    if len(set(wanted)) < len(wanted):
        reason = "Duplicate replica ids in partition reassignment replica list"
        return ApiError(error, f"{reason}: {list(wanted)}")
    if any(broker < 0 for broker in wanted):
        return ApiError(error, f"Invalid broker id in replica list: {list(wanted)}")
    dead = [broker for broker in adding if not cluster.can_lead(broker, partition)]
    if dead:
        reason = "Replica assignment has brokers that are not alive"
        return ApiError(
            error,
            f"{reason}. Replica list: {list(adding)}, live broker list: {sorted(cluster.live)}",
        )
    return None


def _is_moving(cluster: Cluster, partition: TopicPartition) -> bool:
    return partition.partition in cluster.topics[partition.topic].moving()


def _is_ready(cluster: Cluster, partition: TopicPartition) -> bool:
    """Return whether the targets are in sync and one of them can lead, or nothing has to move."""
    state = cluster.states.get(partition)
    if state is None or not _is_moving(cluster, partition):
        return True
    target = cluster.topics[partition.topic].target(partition.partition)
    leads = [id_ for id_ in target if id_ == state.leader or cluster.can_lead(id_, partition)]
    return set(target) <= set(state.isr) and bool(leads)


def _finished_state(cluster: Cluster, partition: TopicPartition) -> LeaderAndIsr | None:
    """Return the state of a partition that has moved: `cluster` has its new replicas."""
    state = cluster.states.get(partition)
    if state is None:
        return first_state(cluster, partition)
    return replace(
        _without(cluster, partition),
        leader_epoch=state.leader_epoch + 1,
        controller_epoch=cluster.controller_epoch,
        version=state.version + 1,
    )


def _without(cluster: Cluster, partition: TopicPartition) -> LeaderAndIsr:
    """Return the state without those that are no longer among the replicas."""
    state, replicas = cluster.states[partition], cluster.replicas(partition)
    isr = tuple(broker for broker in state.isr if broker in replicas)
    leader = state.leader
    if leader not in isr or not cluster.is_online(leader, partition):
        eligible = [id_ for id_ in isr if cluster.can_lead(id_, partition)]
        leader = next((id_ for id_ in replicas if id_ in eligible), NO_LEADER)
    return successor(cluster, state, leader=leader, isr=isr)


def _settled(topic: TopicAssignment, index: int) -> TopicAssignment:
    return _with_partition(topic, index, topic.target(index), (), ())


def _with_partition(
    topic: TopicAssignment,
    index: int,
    replicas: tuple[int, ...],
    adding: tuple[int, ...],
    removing: tuple[int, ...],
) -> TopicAssignment:
    return replace(
        topic,
        replicas={**topic.replicas, index: replicas},
        adding=_put(topic.adding, index, adding),
        removing=_put(topic.removing, index, removing),
    )


def _put(
    mapping: Mapping[int, tuple[int, ...]], index: int, value: tuple[int, ...]
) -> dict[int, tuple[int, ...]]:
    kept = {key: brokers for key, brokers in mapping.items() if key != index}
    return {**kept, index: value} if value else kept


def _merged(
    cluster: Cluster, changed: Mapping[TopicPartition, TopicAssignment]
) -> dict[str, TopicAssignment]:
    """Return the topics with all their partitions' changes; each entry changed one of them."""
    merged: dict[str, TopicAssignment] = {}
    for partition, assignment in changed.items():
        index = partition.partition
        merged[partition.topic] = _with_partition(
            merged.get(partition.topic, cluster.topics[partition.topic]),
            index,
            assignment.replicas[index],
            assignment.adding.get(index, ()),
            assignment.removing.get(index, ()),
        )
    return merged


def _dropped(before: Cluster, after: Cluster, partition: TopicPartition) -> tuple[int, ...]:
    """Return who held a partition on its way and is to hold it no longer."""
    kept = after.replicas(partition)
    return tuple(broker for broker in before.replicas(partition) if broker not in kept)


def _on(
    cluster: Cluster, copies: Mapping[TopicPartition, Collection[int]]
) -> frozenset[PartitionAndReplica]:
    return frozenset(
        PartitionAndReplica(*partition, broker)
        for partition, brokers in copies.items()
        for broker in brokers
        if broker in cluster.live
    )

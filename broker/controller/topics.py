"""Decisions on requests to create or grow a topic: an assignment, or an error. Pure.

Checks and error codes are those of Apache Kafka 3.9 (`ZkAdminManager`, `AdminZkClient`, `Topic`).
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace
from types import MappingProxyType
from typing import Final
from uuid import UUID

from broker.controller.cluster import ApiError, Cluster
from broker.controller.placement import RacksIncomplete, place
from broker.log.config import InvalidConfig, LogConfig
from broker.zookeeper.tree import TopicAssignment
from wire.errors import ErrorCode
from wire.values import frozen

MAX_NAME_LENGTH: Final = 249
MAX_PARTITIONS: Final = 100_000
DEFAULT: Final = -1
_LEGAL_NAME: Final = re.compile(r"[a-zA-Z0-9._-]+")
INTERNAL_TOPICS: Final = frozenset({"__consumer_offsets", "__transaction_state"})
"""Where something lies in them follows from how many partitions they have."""


@frozen
class TopicSpec:
    """A topic as asked for. `partitions` and `replication_factor` -1 mean the broker's default."""

    name: str
    partitions: int = DEFAULT
    replication_factor: int = DEFAULT
    assignment: Mapping[int, tuple[int, ...]] = field(default_factory=lambda: MappingProxyType({}))
    configs: Mapping[str, str | None] = field(default_factory=lambda: MappingProxyType({}))


@frozen
class Chances:
    """The random numbers of one placement, drawn by the caller."""

    topic_id: UUID
    start: int
    shift: int


def illegal_name(name: str) -> str | None:
    """Return what is wrong with a topic's name, None when nothing is."""
    if not name:
        return "the empty string is not allowed"
    if name in {".", ".."}:
        return f"'{name}' is not allowed"
    if len(name) > MAX_NAME_LENGTH:
        return f"the length of '{name}' is longer than {MAX_NAME_LENGTH}"
    if _LEGAL_NAME.fullmatch(name) is None:
        return f"'{name}' contains characters other than ASCII letters, digits, '.', '_' and '-'"
    return None


def plan_creation(
    cluster: Cluster, spec: TopicSpec, defaults: TopicSpec, chances: Chances
) -> TopicAssignment | ApiError:
    """Return where a new topic's partitions go. `defaults` fill in for -1."""
    return (
        _refuse_name(cluster, spec.name)
        or _refuse_configs(spec)
        or _assign(cluster, spec, defaults, chances)
    )


def plan_growth(
    cluster: Cluster,
    name: str,
    total: int,
    given: Sequence[Sequence[int]] | None,
) -> TopicAssignment | ApiError:
    """Return the assignment of a topic grown to `total` partitions; the old ones stay."""
    topic = cluster.topics.get(name)
    if topic is None or name in cluster.deleting:
        return ApiError(
            error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            message=f"The topic '{name}' does not exist.",
        )
    if name in INTERNAL_TOPICS:
        # Kafka's tools refuse it, its brokers go by the number that they found at their start.
        return ApiError(
            error=ErrorCode.INVALID_TOPIC_EXCEPTION,
            message=f"What is in the internal topic '{name}' would not be found any more.",
        )
    if topic.moving():
        return ApiError(
            error=ErrorCode.REASSIGNMENT_IN_PROGRESS,
            message=f"A partition reassignment is in progress for the topic '{name}'.",
        )
    present = len(topic.replicas)
    if not present < total <= MAX_PARTITIONS:
        reason = f"Topic currently has {present} partitions, which is higher than the requested"
        if total == present:
            reason = f"Topic already has {present} partitions; the requested number is"
        return ApiError(error=ErrorCode.INVALID_PARTITIONS, message=f"{reason} {total}.")
    added = _grown(cluster, topic, range(present, total), given)
    if isinstance(added, ApiError):
        return added
    return replace(topic, replicas={**topic.replicas, **added})


def _grown(
    cluster: Cluster,
    topic: TopicAssignment,
    added: range,
    given: Sequence[Sequence[int]] | None,
) -> dict[int, tuple[int, ...]] | ApiError:
    factor = len(topic.replicas[0])
    if given is not None:
        if len(given) != len(added):
            return _bad_assignment(f"{len(given)} assignments for {len(added)} new partitions")
        chosen = {index: tuple(brokers) for index, brokers in zip(added, given, strict=True)}
        return _refuse_assignment(chosen, cluster.live, factor) or chosen
    first = topic.replicas[0][0]
    start = next((at for at, id_ in enumerate(sorted(cluster.live)) if id_ >= first), 0)
    return _placed(cluster, added, factor, start, start)


def _refuse_name(cluster: Cluster, name: str) -> ApiError | None:
    wrong = illegal_name(name)
    if wrong is not None:
        return ApiError(
            error=ErrorCode.INVALID_TOPIC_EXCEPTION, message=f"Topic name is invalid: {wrong}"
        )
    if name in cluster.topics:
        state = " and is marked for deletion" if name in cluster.deleting else ""
        return ApiError(
            error=ErrorCode.TOPIC_ALREADY_EXISTS, message=f"Topic '{name}' already exists{state}."
        )
    # Metrics write '.' as '_', so two such names would be one there.
    twins = [other for other in cluster.topics if _collide(other, name)]
    if twins:
        return ApiError(
            error=ErrorCode.INVALID_TOPIC_EXCEPTION,
            message=f"Topic '{name}' collides with existing topics: {', '.join(twins)}",
        )
    return None


def _collide(one: str, other: str) -> bool:
    return one.replace(".", "_") == other.replace(".", "_")


def _refuse_configs(spec: TopicSpec) -> ApiError | None:
    without_value = [name for name, value in spec.configs.items() if value is None]
    if without_value:
        return ApiError(
            error=ErrorCode.INVALID_CONFIG,
            message=f"Null value not supported for topic configs: {', '.join(without_value)}",
        )
    try:
        LogConfig().with_overrides({name: value or "" for name, value in spec.configs.items()})
    except InvalidConfig as error:
        return ApiError(error=ErrorCode.INVALID_CONFIG, message=str(error))
    return None


def _assign(
    cluster: Cluster, spec: TopicSpec, defaults: TopicSpec, chances: Chances
) -> TopicAssignment | ApiError:
    if spec.assignment:
        return _take_assignment(cluster, spec, chances)
    partitions = defaults.partitions if spec.partitions == DEFAULT else spec.partitions
    factor = spec.replication_factor
    factor = defaults.replication_factor if factor == DEFAULT else factor
    if not 1 <= partitions <= MAX_PARTITIONS:
        return ApiError(
            error=ErrorCode.INVALID_PARTITIONS,
            message=f"Number of partitions was set to {partitions}; 1 to {MAX_PARTITIONS} can be.",
        )
    if factor < 1:
        return ApiError(
            error=ErrorCode.INVALID_REPLICATION_FACTOR,
            message=f"Replication factor {factor} must be larger than 0.",
        )
    count = max(len(cluster.live), 1)
    replicas = _placed(
        cluster, range(partitions), factor, chances.start % count, chances.shift % count
    )
    if isinstance(replicas, ApiError):
        return replicas
    return TopicAssignment(topic_id=chances.topic_id, replicas=replicas)


def _placed(
    cluster: Cluster, partitions: range, factor: int, start: int, shift: int
) -> dict[int, tuple[int, ...]] | ApiError:
    if factor > len(cluster.live):
        return _too_few(factor, cluster.live)
    try:
        return place(
            {id_: broker.rack for id_, broker in cluster.live.items()},
            partitions=partitions,
            replication_factor=factor,
            start=start,
            shift=shift,
        )
    except RacksIncomplete as error:
        return ApiError(error=ErrorCode.UNKNOWN_SERVER_ERROR, message=str(error))


def _take_assignment(
    cluster: Cluster, spec: TopicSpec, chances: Chances
) -> TopicAssignment | ApiError:
    if spec.partitions != DEFAULT or spec.replication_factor != DEFAULT:
        return ApiError(
            error=ErrorCode.INVALID_REQUEST,
            message="Both numPartitions or replicationFactor and replicasAssignments were set.",
        )
    if sorted(spec.assignment) != list(range(len(spec.assignment))):
        return _bad_assignment("partitions must be numbered from 0 without a gap")
    factor = len(spec.assignment[0])
    refused = _refuse_assignment(spec.assignment, cluster.live, factor)
    return refused or TopicAssignment(
        topic_id=chances.topic_id, replicas=dict(sorted(spec.assignment.items()))
    )


def _refuse_assignment(
    assignment: Mapping[int, tuple[int, ...]], live: Collection[int], factor: int
) -> ApiError | None:
    for index, brokers in assignment.items():
        if not brokers or len(set(brokers)) < len(brokers):
            return _bad_assignment(f"partition {index}: {brokers} is empty or names one twice")
        if len(brokers) != factor:
            return _bad_assignment(f"partition {index} has not {factor} replicas as the others")
        unknown = [broker for broker in brokers if broker not in live]
        if unknown:
            return _bad_assignment(f"partition {index}: unknown brokers {unknown}")
    return None


def _bad_assignment(reason: str) -> ApiError:
    return ApiError(error=ErrorCode.INVALID_REPLICA_ASSIGNMENT, message=reason)


def _too_few(factor: int, brokers: Collection[int]) -> ApiError:
    return ApiError(
        error=ErrorCode.INVALID_REPLICATION_FACTOR,
        message=f"Replication factor: {factor} larger than available brokers: {len(brokers)}.",
    )

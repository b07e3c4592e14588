"""The assignment of partitions to workers: sticky, and balanced by the bytes they carry. Pure.

A partition weighs the bytes per second that it carries and a floor, so that idle ones are spread as
well. A worker keeps what it has, except where the balance is worth a move:

    partitions without a worker     the heaviest first, each to the worker with the least to do
    then, if the heaviest and the lightest load differ by more than TRIGGER of the mean load:
    move from the one to the other, until they differ by SETTLED of it at most, or until no
    partition of the heaviest worker is light enough for its move to even them out

The bound that follows: the loads differ by at most TRIGGER of their mean, or by less than a
partition of the most loaded worker weighs, times 1 / WORTH_IT. Between TRIGGER and SETTLED lies the
room in which rates may change without any move. `mirror.workers.balance` says when rates are worth
a move at all, and which partitions have to stay where they are.
"""

from collections.abc import Collection, Mapping
from dataclasses import field
from math import inf
from typing import Final

from wire.topic_partition import TopicPartition
from wire.values import frozen

TRIGGER: Final = 0.25
SETTLED: Final = 0.10
WORTH_IT: Final = 0.9
"""A partition moves if it weighs at most so much of the difference; else hardly anything is won."""
FLOOR_BYTES_PER_S: Final = 10_000.0
"""The weight of a partition that carries nothing: its part of fetches, look-ups and memory."""


@frozen
class Loads:
    """The bytes that partitions carry, and the partitions that stay where they are in any case."""

    bytes_per_s: Mapping[TopicPartition, float] = field(default_factory=dict)
    at_rest: Collection[TopicPartition] = ()


def assign(
    partitions: Collection[TopicPartition],
    members: Collection[str],
    *,
    before: Mapping[TopicPartition, str],
    bytes_per_s: Mapping[TopicPartition, float],
    at_rest: Collection[TopicPartition] = (),
) -> dict[TopicPartition, str]:
    """Return the worker of each partition; none without workers.

    The same arguments give the same answer, whatever their order. ``before`` may name workers and
    partitions that are gone, ``bytes_per_s`` may lack partitions. What is ``at_rest`` stays with
    its worker, if that is there.
    """
    if not members:
        return {}
    weights = {partition: _weight(partition, bytes_per_s) for partition in partitions}
    held: dict[str, set[TopicPartition]] = {member: set() for member in sorted(members)}
    free: list[TopicPartition] = []
    for partition in sorted(weights):
        owner = before.get(partition)
        if owner in held:
            held[owner].add(partition)
        else:
            free.append(partition)
    loads = {
        member: sum(weights[partition] for partition in sorted(held[member])) for member in held
    }
    for partition in sorted(free, key=lambda one: (-weights[one], one)):
        lightest = min(loads, key=lambda member: (loads[member], len(held[member]), member))
        held[lightest].add(partition)
        loads[lightest] += weights[partition]
    if _spread(loads) > TRIGGER * _mean(loads):
        resting = frozenset(at_rest) - frozenset(free)
        _even_out(held, loads, {p: one for p, one in weights.items() if p not in resting})
    return {partition: member for member, of_member in held.items() for partition in of_member}


def is_uneven(
    owners: Mapping[TopicPartition, str],
    members: Collection[str],
    bytes_per_s: Mapping[TopicPartition, float],
) -> bool:
    """Whether the workers' loads differ by so much that moves would be worth it."""
    loads = dict.fromkeys(members, 0.0)
    for partition, owner in owners.items():
        if owner in loads:
            loads[owner] += _weight(partition, bytes_per_s)
    return bool(loads) and _spread(loads) > TRIGGER * _mean(loads)


def _even_out(
    held: dict[str, set[TopicPartition]],
    loads: dict[str, float],
    weights: Mapping[TopicPartition, float],
) -> None:
    """Move single partitions from the most to the least loaded; each move shrinks their gap.

    What is not in ``weights`` stays.
    """
    while _spread(loads) > SETTLED * _mean(loads):
        heaviest = max(loads, key=lambda member: (loads[member], member))
        lightest = min(loads, key=lambda member: (loads[member], member))
        gap = loads[heaviest] - loads[lightest]
        light = [p for p in held[heaviest] if weights.get(p, inf) <= WORTH_IT * gap]
        if not light:
            return
        partition = min(light, key=lambda one: (abs(weights[one] - gap / 2), one))
        held[heaviest].remove(partition)
        held[lightest].add(partition)
        loads[heaviest] -= weights[partition]
        loads[lightest] += weights[partition]


def _weight(partition: TopicPartition, bytes_per_s: Mapping[TopicPartition, float]) -> float:
    return FLOOR_BYTES_PER_S + bytes_per_s.get(partition, 0.0)


def _spread(loads: Mapping[str, float]) -> float:
    return max(loads.values()) - min(loads.values())


def _mean(loads: Mapping[str, float]) -> float:
    return sum(loads.values()) / len(loads)

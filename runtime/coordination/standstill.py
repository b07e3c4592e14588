"""Partitions that stand still until somebody decides, as the witness tells of them. Pure.

Each worker tells of its own in its ephemeral node, among much else that is the mirror's: what has
stopped one, and the command that ends it. What people have paused lies in the orders of the flow.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Final

from runtime.coordination.witness import WitnessGarbled
from runtime.set_option import set_option
from runtime.untrusted_json import LARGEST_INT32, read_json, text, unpack_json, whole_number
from wire.topic_partition import TopicPartition

KEY: Final = "standing"
"""The field of a worker's node."""
MOST_TOLD: Final = 100
"""So many a worker tells of: its node has a limit, and one is enough to hold a promotion up."""
LONGEST: Final = 500
"""Characters of a reason."""
TELL_WITHIN_S: Final = 2.0
"""A worker tells what is new within a second; what stood still for longer than this does so now."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Standstill:
    """One partition that stands still; `remedy` is what to do, a command where there is one."""

    partition: TopicPartition
    cause: str
    remedy: str

    def __str__(self) -> str:
        """Return it as people read it."""
        return f"{self.partition} stands still: {self.cause}; {self.remedy}"


def told(found: Collection[Standstill]) -> list[list[str | int]]:
    """Return what a worker's node has of these, in JSON's types."""
    return [[*one.partition, one.cause[:LONGEST], one.remedy] for one in sorted(found)[:MOST_TOLD]]


def heard(node: Any) -> tuple[Standstill, ...]:  # noqa: ANN401 - JSON
    """Return what a worker's document has; raises ValueError, KeyError, TypeError."""
    return tuple(
        Standstill(
            partition=TopicPartition(text(topic), whole_number(index, LARGEST_INT32)),
            cause=text(cause),
            remedy=text(remedy),
        )
        for topic, index, cause, remedy in node.get(KEY, ())
    )


def read_worker(data: bytes) -> tuple[Standstill, ...]:
    """Return what a worker's node tells; raises WitnessGarbled."""
    try:
        return heard(unpack_json(data))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise WitnessGarbled(f"witness: no valid member: {data[:80]!r}: {error}") from error


def not_known(
    partitions: Collection[TopicPartition], path: str, fault: WitnessGarbled, remedy: str
) -> tuple[Standstill, ...]:
    """Return each of these as if it stood still: a node that may tell of it is not understood."""
    cause = f"whether it goes on is not known, by {path}: {fault}"
    return tuple(
        Standstill(partition=partition, cause=cause, remedy=remedy)
        for partition in sorted(partitions)
    )


def read_paused(
    data: bytes, flow: str, partitions: Collection[TopicPartition], topic_set: str | None
) -> tuple[Standstill, ...]:
    """Return those of these partitions that the orders of a flow pause; raises WitnessGarbled.

    `flow` is its name as commands take it, with the set that they need.
    """
    try:
        pauses = [
            (one["scope"]["topic"], one["scope"]["partition"], text(one["by"]))
            for one in read_json(data)["pauses"]
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise WitnessGarbled(f"witness: no valid orders: {data[:80]!r}: {error}") from error
    return tuple(_paused(pauses, flow, partitions, topic_set))


def _paused(
    pauses: Collection[tuple[object, object, str]],
    flow: str,
    partitions: Collection[TopicPartition],
    topic_set: str | None,
) -> Iterator[Standstill]:
    for partition in sorted(partitions):
        for topic, index, by in pauses:
            if topic in {None, partition.topic} and index in {None, partition.partition}:
                scope = "" if topic is None else f" {topic}"
                scope += "" if index is None else f":{index}"
                yield Standstill(
                    partition=partition,
                    cause=f"paused by {by}",
                    remedy=f"`mirror resume {flow}{scope}{set_option(topic_set)}` lets it go on",
                )
                break

"""Who is to own which partition: `uniform` and `range`, the assignors that Kafka's brokers have.

Both are plain functions of what members subscribe to, what topics there are, and what the members'
targets were. Each partition of a topic that anybody subscribes to goes to one of its subscribers.

Sources of the rules: KIP-848; Kafka's UniformAssignor and RangeAssignor.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from heapq import heapify, heappop, heappush, heapreplace
from typing import Final, TypeAlias
from uuid import UUID

from broker.groups.consumer.partitions import NONE, Partitions, TopicIdPartition
from wire.values import frozen


@frozen
class Subscriber:
    """One member as an assignor sees it: the topics it reads, and its target so far."""

    member_id: str
    instance_id: str | None
    topics: frozenset[UUID]
    target: Partitions = NONE


Counts: TypeAlias = Mapping[UUID, int]
"""How many partitions topics have, of those that there are."""
Assignment: TypeAlias = dict[str, Partitions]
"""A target for every member, by its id."""
MOST_LOOKS: Final = 200_000
"""At partitions that may have to move: half a second at most. A few hundred members, each of topics
of its own, would keep a broker busy for a minute until their loads were level."""
Assign: TypeAlias = Callable[[list[Subscriber], Counts], Assignment]


def uniform(members: list[Subscriber], counts: Counts) -> Assignment:
    """Give every member as many partitions as another, and move as few as that takes."""
    if not members:
        return {}
    members = sorted(members, key=lambda member: member.member_id)
    if all(member.topics == members[0].topics for member in members):
        return _evenly(members, _all_of(members[0].topics, counts))
    return _by_turns(members, counts)


def _all_of(topics: frozenset[UUID], counts: Counts) -> list[TopicIdPartition]:
    return [
        TopicIdPartition(topic_id, index)
        for topic_id in sorted(topics & counts.keys())
        for index in range(counts[topic_id])
    ]


def _evenly(members: list[Subscriber], partitions: list[TopicIdPartition]) -> Assignment:
    """Assign to members of one subscription: nobody owns two more than another."""
    fewest, one_more = divmod(len(partitions), len(members))
    there = frozenset(partitions)
    taken: set[TopicIdPartition] = set()
    kept: dict[str, list[TopicIdPartition]] = {}
    # Those that own the most keep one more, so that least moves.
    held = {member.member_id: sorted(member.target & there) for member in members}
    for name in sorted(held, key=lambda name: -len(held[name])):
        quota = fewest + (one_more > 0)
        free = [partition for partition in held[name] if partition not in taken][:quota]
        one_more -= len(free) > fewest
        taken.update(free)
        kept[name] = free
    left = iter([partition for partition in partitions if partition not in taken])
    for name in held:
        quota = fewest
        if len(kept[name]) <= fewest and one_more > 0:
            quota, one_more = fewest + 1, one_more - 1
        while len(kept[name]) < quota:
            kept[name].append(next(left))
    return {name: frozenset(owned) for name, owned in kept.items()}


def _by_turns(members: list[Subscriber], counts: Counts) -> Assignment:
    """Assign to members of different subscriptions: each partition to who of its topic has least.

    Partitions move until no member could give one to a subscriber of the topic that has two fewer.
    Each move makes the loads more equal, so that it comes to an end. That may take long, so it
    stops after `MOST_LOOKS`; the next assignment goes on from there.
    """
    readers: dict[UUID, list[str]] = {}
    owned: dict[str, set[TopicIdPartition]] = {}
    owners: dict[TopicIdPartition, str] = {}
    for member in members:
        owned[member.member_id] = set()
        for topic_id in member.topics & counts.keys():
            readers.setdefault(topic_id, []).append(member.member_id)
        for partition in member.target:
            is_there = partition.partition < counts.get(partition.topic_id, 0)
            if is_there and partition.topic_id in member.topics and partition not in owners:
                owners[partition] = member.member_id
                owned[member.member_id].add(partition)
    has_moved, looks = True, 0
    while has_moved and looks <= MOST_LOOKS:
        has_moved = False
        for topic_id in sorted(readers):
            for index in range(counts[topic_id]):
                owners.setdefault(TopicIdPartition(topic_id, index), "")
            has_moved |= _level(topic_id, counts[topic_id], readers[topic_id], owned, owners)
        looks += max(1, len(owners))
    return {name: frozenset(partitions) for name, partitions in owned.items()}


def _level(
    topic_id: UUID,
    count: int,
    readers: list[str],
    owned: dict[str, set[TopicIdPartition]],
    owners: dict[TopicIdPartition, str],
) -> bool:
    """Give partitions of one topic to those of its readers that own least; say if any has moved."""
    loads = [(len(owned[name]), name) for name in readers]
    heapify(loads)
    has_moved = False
    for index in range(count):
        partition = TopicIdPartition(topic_id, index)
        while loads[0][0] != len(owned[loads[0][1]]):  # it has given away or taken meanwhile
            heapreplace(loads, (len(owned[loads[0][1]]), loads[0][1]))
        load, least = loads[0]
        owner = owners[partition]
        if owner and len(owned[owner]) <= load + 1:
            continue
        has_moved = True
        if owner:
            owned[owner].discard(partition)
            heappush(loads, (len(owned[owner]), owner))
        owned[least].add(partition)
        owners[partition] = least
        heappop(loads)
        heappush(loads, (load + 1, least))
    return has_moved


def in_ranges(members: list[Subscriber], counts: Counts) -> Assignment:
    """Give each subscriber of a topic a range of its partitions, in the order of their names.

    Members that subscribe to the same topics so own the same numbers in all of them. Static
    members come first, by their instance ids, so that their ranges stay over restarts.
    """
    ordered = sorted(
        members, key=lambda one: (one.instance_id is None, one.instance_id or one.member_id)
    )
    owned: dict[str, set[TopicIdPartition]] = {member.member_id: set() for member in ordered}
    for topic_id in sorted({topic for member in members for topic in member.topics}):
        readers = [member.member_id for member in ordered if topic_id in member.topics]
        fewest, one_more = divmod(counts.get(topic_id, 0), len(readers))
        first = 0
        for place, name in enumerate(readers):
            end = first + fewest + (place < one_more)
            owned[name].update(TopicIdPartition(topic_id, index) for index in range(first, end))
            first = end
    return {name: frozenset(partitions) for name, partitions in owned.items()}


class Assignor(Enum):
    """An assignor by the name that members ask for it with."""

    UNIFORM = "uniform"
    RANGE = "range"


ASSIGN: Final[Mapping[Assignor, Assign]] = {Assignor.UNIFORM: uniform, Assignor.RANGE: in_ranges}

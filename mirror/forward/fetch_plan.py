"""The partitions that one fetcher asks for, kept up to date without looking at all each time.

Of thousands of partitions a few move between two requests: those of which records came, and those
that were held back. Only these are looked at. All are looked at when another task has changed what
is to be fetched (``FlowWakeups.fetch_anew``), and every few seconds in any case. A partition that
has stopped meanwhile is at worst asked for in vain until then.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

import trio

from mirror.forward.fetch_session import PartitionKey
from mirror.forward.flow_parts import FetchParts
from mirror.forward.lanes import Lane
from mirror.state.partition import MirroredPartition
from runtime.process.clock import now_ms
from wire.hot.fetch import Fetched, FetchedPartition, TopicKey

LOOK_S: Final = 5.0


class AskedPartition(NamedTuple):
    """A partition as it was when the request was made."""

    partition: MirroredPartition
    attempt: int
    offset: int

    @property
    def is_current(self) -> bool:
        """Whether nothing has interrupted it since."""
        return self.partition.attempt == self.attempt


Updated: TypeAlias = Mapping[PartitionKey, AskedPartition | None]
"""What was updated, and how it is asked for now; None: it is not."""


def partition_key_of(partition: MirroredPartition) -> PartitionKey:
    """Return where a request names the partition."""
    return (partition.topic, partition.source.topic_id), partition.index


class FetchPlan:
    """The partitions asked of one broker over one lane."""

    def __init__(self, parts: FetchParts, node: int, lane: Lane) -> None:
        """Begin with nothing planned."""
        self._parts = parts
        self._node = node
        self._lane = lane
        self.asked: dict[PartitionKey, AskedPartition] = {}
        """In the order in which a broker is to serve them."""
        self._held: dict[PartitionKey, MirroredPartition] = {}
        """Mine, and not to be asked for just now."""
        self._came: dict[PartitionKey, MirroredPartition] = {}
        """Of which something came since the last update."""
        self._behind: set[PartitionKey] = set()
        self._keys: dict[str | UUID, TopicKey] = {}
        self._changes = -1
        self._plan_all_s = 0.0

    @property
    def is_complete(self) -> bool:
        """Whether all flowing partitions are asked for."""
        return not self._held

    @property
    def behind(self) -> int:
        """Return how many partitions had more to be fetched at the last update."""
        return len(self._behind)

    @property
    def topic_ids(self) -> Iterable[UUID]:
        """Return the ids of all topics that are asked for."""
        return (topic_id for _, topic_id in self._keys.values())

    def update(self) -> Updated | None:
        """Bring `asked` up to date; return the partitions updated, None for all."""
        changes, now_s = self._parts.wakeups.fetch_changes, trio.current_time()
        is_same = changes == self._changes and self._parts.throttle.is_idle
        if is_same and now_s < self._plan_all_s:
            return self._plan_some()
        self._changes, self._plan_all_s = changes, now_s + LOOK_S
        self._plan_all()
        return None

    def match(self, answer: Fetched) -> Iterator[tuple[AskedPartition, FetchedPartition]]:
        """Yield each partition with its part of the answer; since v13 topics travel by id."""
        for name, partitions in answer.topics:
            key = self._keys.get(name)
            if key is None:
                continue
            for data in partitions:
                partition_key = key, data.partition
                one = self.asked.get(partition_key)
                if one is not None:
                    self._came[partition_key] = one.partition
                    yield one, data

    def _plan_all(self) -> None:
        parts, now = self._parts, now_ms()
        led = parts.partitions.fetched_from(self._node)
        mine = led if self._lane.count == 1 else filter(self._lane.carries, led)
        is_throttled = not parts.throttle.is_idle
        asked: list[tuple[PartitionKey, AskedPartition]] = []
        self._held, self._came, self._keys = {}, {}, {}
        self._behind.clear()
        for partition in mine:
            partition_key = partition_key_of(partition)
            one = self._as_asked(partition_key, partition)
            if one is None or (is_throttled and parts.throttle.wait_ms(partition.topic, now) > 0):
                self._held[partition_key] = partition
            else:
                asked.append((partition_key, one))
                name, topic_id = key = partition_key[0]
                self._keys[name] = self._keys[topic_id] = key
        self.asked = dict(_by_room(asked))

    def _plan_some(self) -> Updated:
        some, wanted = self._held | self._came, []
        self._held, self._came = {}, {}
        gone: dict[PartitionKey, AskedPartition | None] = {}
        for partition_key, partition in some.items():
            if not self._is_mine(partition):
                gone[partition_key] = None
                self._behind.discard(partition_key)
            elif (one := self._as_asked(partition_key, partition)) is None:
                gone[partition_key], self._held[partition_key] = None, partition
            else:
                wanted.append((partition_key, one))
                name, topic_id = key = partition_key[0]
                self._keys[name] = self._keys[topic_id] = key
        for partition_key in gone:
            self.asked.pop(partition_key, None)
        now_asked = dict(_by_room(wanted))
        self.asked |= now_asked
        return {**gone, **now_asked}

    def _is_mine(self, partition: MirroredPartition) -> bool:
        is_here = self._parts.partitions.own.get(partition.topic_partition) is partition
        is_led = partition.leaders.fetched_from == self._node and partition.is_flowing
        return is_here and is_led and self._lane.carries(partition)

    def _as_asked(
        self, partition_key: PartitionKey, partition: MirroredPartition
    ) -> AskedPartition | None:
        """Return how to ask for it, None while it is to be held back."""
        cursor, limit = partition.cursor, self._parts.budget.most_bytes_each
        if _is_behind(partition):
            self._behind.add(partition_key)
        else:
            self._behind.discard(partition_key)
        if cursor is None or partition.is_announcing or partition.in_flight.bytes >= limit:
            return None
        return AskedPartition(partition, partition.attempt, cursor.source)


def _is_behind(partition: MirroredPartition) -> bool:
    """Tell whether more was readable than was fetched when the source was last heard."""
    cursor, end = partition.cursor, partition.source.readable_end
    return cursor is None or end is None or cursor.source < end


def _by_room(
    asked: Iterable[tuple[PartitionKey, AskedPartition]],
) -> list[tuple[PartitionKey, AskedPartition]]:
    """Return those with the most room first: a broker serves in the order asked until it is full.

    A fetcher that refilled each acknowledged byte at once would ask for one partition's records at
    a time, and a request to the target holds one batch of a partition.
    """
    return sorted(asked, key=lambda one: one[1].partition.in_flight.bytes)

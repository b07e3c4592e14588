"""The records that a producer was given and no site has acknowledged, by partition. Pure.

    given ──► unsent ──► sent ──► acknowledged (gone)
                 ▲         │
                 └─────────┘  the site changed, and the record is not on the new one

Per partition the sent ones come before the unsent ones, always in the order they were given in.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from wire.topic_partition import TopicPartition
from wire.values import frozen

T = TypeVar("T")
Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]
DeliveryCallback: TypeAlias = Callable[[Any, Any], None]

RECORD_OVERHEAD_BYTES: Final = 200
"""Roughly what a record costs beyond its key, value and headers, here and in librdkafka."""


@frozen
class Content:
    """The identity of a record: everything that travels but the offset."""

    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: Headers


class Acknowledged(NamedTuple):
    """The record of a partition that a site has acknowledged last."""

    offset: int
    is_stamped: bool
    """The broker has put its own time in place of ours (`message.timestamp.type=LogAppendTime`)."""


@dataclass(slots=True, kw_only=True, eq=False)
class Pending:
    """One record on its way, known by identity: equal records are still two records."""

    topic: str
    partition: int
    content: Content
    size: int
    on_delivery: DeliveryCallback | None
    sent: bool = False


def size_of(content: Content) -> int:
    """Return the bytes that a record counts for against the producer's limit."""
    headers = sum(len(name) + len(value or b"") for name, value in content.headers)
    return len(content.key or b"") + len(content.value or b"") + headers + RECORD_OVERHEAD_BYTES


class Ledger:
    """Every unacknowledged record. `total_bytes` is what they count for."""

    def __init__(self) -> None:
        self._queues: dict[TopicPartition, deque[Pending]] = {}
        self._unsent: deque[Pending] = deque()
        self.total_bytes = 0
        self.record_count = 0

    def __len__(self) -> int:
        """Return the number of unacknowledged records."""
        return self.record_count

    def add(self, pending: Pending) -> None:
        """Take a record in, behind all others of its partition."""
        partition = TopicPartition(pending.topic, pending.partition)
        queue = self._queues.get(partition)
        if queue is None:
            queue = self._queues[partition] = deque()
        queue.append(pending)
        self._unsent.append(pending)
        self.total_bytes += pending.size
        self.record_count += 1

    def first_unsent(self) -> Pending | None:
        """Return the record to send next, None when all are on their way."""
        return self._unsent[0] if self._unsent else None

    def note_sent(self) -> None:
        """Take note that the record to send next is on its way."""
        self._unsent.popleft().sent = True

    def remove(self, pending: Pending) -> None:
        """Remove a sent record that was acknowledged or refused for good."""
        queue = self._queues[TopicPartition(pending.topic, pending.partition)]
        if queue[0] is pending:
            queue.popleft()
        else:  # librdkafka refused it alone, for example as too large
            queue.remove(pending)
        self.total_bytes -= pending.size
        self.record_count -= 1

    def sent(self) -> dict[TopicPartition, list[Pending]]:
        """Return the records whose fate is open, in order by partition."""
        found = {
            where: [pending for pending in queue if pending.sent]
            for where, queue in self._queues.items()
        }
        return {where: pendings for where, pendings in found.items() if pendings}

    def forget_sending(self) -> None:
        """Take every record as unsent: the producer that was sending them is no more."""
        self._unsent = deque(pending for queue in self._queues.values() for pending in queue)
        for pending in self._unsent:
            pending.sent = False


def find_in_order(sent: Sequence[Content], tail: Iterable[tuple[T, Content]]) -> list[T]:
    """Return the partitions in the log's tail of those sent records that are there.

    `tail` begins behind the last record that was acknowledged and ends where the log took no more
    of ours. An idempotent producer appends in order and without gaps, so those that arrived are the
    first ones, in their order, with records of others in between:

        sent   a b c d          tail   x a y b z      ⇒ a and b are there, c and d are not

    Matching the earliest equal record each time finds the longest such run.
    """
    found: list[T] = []
    for where, content in tail:
        if len(found) < len(sent) and content == sent[len(found)]:
            found.append(where)
    return found

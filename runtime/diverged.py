"""Records that only one site has: how they are read, kept aside, and counted by key.

    dc1   |--aaaa--|--d d d--|~~b~~b~~|      a: mirrored to dc2      d: only dc1 has them
    dc2   |~~aaaa~~|--b--b--|                b: dc2's own, brought back by the mirror

A record that is set aside goes to `<topic>.diverged`, into the partition of its own number, with
its key, value, time and headers. Behind its own headers it gets those of its origin; all values are
text. The same records are lines of JSON in a file, bytes in base64.
"""

import json
from base64 import b64encode
from collections.abc import Collection
from hashlib import blake2b
from typing import Final, Self, TypeAlias
from uuid import UUID

from wire.net.cluster import Cluster
from wire.net.operations import READ_COMMITTED, read_partition
from wire.record_batch import BatchHeader, CorruptBatch, Record, crc_is_valid, iterate_records
from wire.record_batch.committed import Aborted, CommittedFilter
from wire.topic_partition import TopicPartition
from wire.values import frozen

SITE: Final = "diverged.site"
TOPIC_ID: Final = "diverged.topic.id"
PARTITION: Final = "diverged.partition"
OFFSET: Final = "diverged.offset"
LEADER_EPOCH: Final = "diverged.leader.epoch"
TIMESTAMP_MS: Final = "diverged.timestamp.ms"
RANGE_START: Final = "diverged.range.start"
RESTORED: Final = ("diverged.restored", b"true")
"""The header of a record that nobody has lost: it sets a key back to the other site's value."""

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]

MOST_KEYS: Final = 1_000_000
"""So many keys are compared, at about 150 bytes each; of more, the count is a least one."""


@frozen
class Origin:
    """The place that a record was set aside from."""

    site: str
    topic_id: UUID
    partition: int
    offset: int
    leader_epoch: int
    """The epoch of the leader that had appended it; -1 where the broker does not tell."""
    timestamp_ms: int
    range_start: int
    """The first offset that was set aside together with it."""


def with_origin(record: Record, origin: Origin) -> Record:
    """Return the record as it is kept aside."""
    told = (
        (SITE, origin.site),
        (TOPIC_ID, str(origin.topic_id)),
        (PARTITION, str(origin.partition)),
        (OFFSET, str(origin.offset)),
        (LEADER_EPOCH, str(origin.leader_epoch)),
        (TIMESTAMP_MS, str(origin.timestamp_ms)),
        (RANGE_START, str(origin.range_start)),
    )
    headers = tuple((name, value.encode()) for name, value in told)
    return record._replace(headers=(*record.headers, *headers))


def origin_of(record: Record) -> Origin | None:
    """Return the origin of a record of a `.diverged` topic; None if it has none.

    Of headers with the same name the last counts: an application's stand before.
    """
    told = {name: (value or b"").decode(errors="replace") for name, value in record.headers}
    try:
        return Origin(
            site=told[SITE],
            topic_id=UUID(told[TOPIC_ID]),
            partition=int(told[PARTITION]),
            offset=int(told[OFFSET]),
            leader_epoch=int(told[LEADER_EPOCH]),
            timestamp_ms=int(told[TIMESTAMP_MS]),
            range_start=int(told[RANGE_START]),
        )
    except (KeyError, ValueError):
        return None


def is_restored(record: Record) -> bool:
    """Return whether a record only sets a key back."""
    return RESTORED in record.headers


def without_mark(headers: Headers) -> Headers:
    """Return a record's headers without the mark of one that sets a key back."""
    return tuple(one for one in headers if one != RESTORED)


def json_line(topic: str, record: Record, origin: Origin) -> bytes:
    """Return the record as one line of a file; ``record`` has its own headers only."""
    return (
        json.dumps(
            {
                "site": origin.site,
                "topic": topic,
                "partition": origin.partition,
                "offset": origin.offset,
                "leader_epoch": origin.leader_epoch,
                "timestamp_ms": origin.timestamp_ms,
                "key": _base64(record.key),
                "value": _base64(record.value),
                "headers": [[name, _base64(value)] for name, value in record.headers],
            }
        ).encode()
        + b"\n"
    )


def _base64(data: bytes | None) -> str | None:
    return None if data is None else b64encode(data).decode()


class OwnRecords:
    """Iterates over a log's committed records in [start, stop) that no mirror has written.

    Gives the header of each batch, and its records; may be left at any batch. `mirrors` are the
    producer ids of mirrors. Raises NetworkFault, also for records behind an open transaction, and
    CorruptBatch.
    """

    def __init__(
        self,
        cluster: Cluster,
        partition: TopicPartition,
        start: int,
        stop: int,
        mirrors: Collection[int],
    ) -> None:
        self._range = range(start, stop)
        self._reader = read_partition(
            cluster, *partition, start, stop, isolation_level=READ_COMMITTED
        )
        self._mirrors = frozenset(mirrors)
        self._aborted: object = None
        self._committed = CommittedFilter(())

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> tuple[BatchHeader, list[Record]]:
        while True:
            header, batch = await anext(self._reader)
            if self._reader.aborted is not self._aborted:
                self._aborted = self._reader.aborted
                self._committed = CommittedFilter(
                    [
                        Aborted(producer_id=one.producer_id, first_offset=one.first_offset)
                        for one in self._reader.aborted
                    ]
                )
            if self._committed.is_left_out(header) or header.producer_id in self._mirrors:
                continue
            if not crc_is_valid(batch):
                raise CorruptBatch(0, f"checksum of the batch at offset {header.base_offset}")
            return header, [one for one in iterate_records(batch) if one.offset in self._range]


class KeyComparison:
    """How many keys would end with different values, if divergent records were appended late.

    On the site that has them the other site's records follow, so a key ends with the other site's
    value; on the other one it ends with the divergent one. Keys and values are kept as digests.
    """

    def __init__(self, most_keys: int = MOST_KEYS) -> None:
        self._most_keys = most_keys
        self._diverged: dict[bytes, bytes] = {}
        self._newer: dict[bytes, bytes] = {}
        self.is_complete = True
        """Whether all keys were compared."""

    def take_diverged(self, record: Record) -> None:
        """Take the next record that only one site has."""
        if record.key is None:
            return
        key = _digest(record.key)
        if key not in self._diverged and len(self._diverged) >= self._most_keys:
            self.is_complete = False
            return
        self._diverged[key] = _digest(record.value)

    def take_newer(self, record: Record) -> None:
        """Take the next record of the other site's own, behind all divergent ones."""
        if record.key is not None and (key := _digest(record.key)) in self._diverged:
            self._newer[key] = _digest(record.value)

    @property
    def keys(self) -> int:
        """Return how many keys the divergent records have."""
        return len(self._diverged)

    @property
    def differing(self) -> int:
        """Return how many of them end differently."""
        return sum(self._diverged[key] != value for key, value in self._newer.items())

    def __str__(self) -> str:
        """Say it."""
        least = "" if self.is_complete else "at least "
        return f"{least}{self.differing} of {self.keys} keys end with different values"


def _digest(data: bytes | None) -> bytes:
    """Return a digest by which no value equals another; a tombstone is like no value."""
    marked = b"\x00" if data is None else b"\x01" + data
    return blake2b(marked, digest_size=16).digest()

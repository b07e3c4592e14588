"""Last values of keys that only a returned site has changed: they are set back to the other site's.

    dc1   |--k=100--|--k=90--|--k=100--|      90 was lost with dc1, and is set aside
    dc2   |~~k=100~~|                         nobody has changed k there since

Of a compacted topic a reader wants the last value of each key. Leaving a record out of the stream
takes it from no log, so dc1 would go on to end with 90. The value of dc2 is appended behind it, and
is set aside with it, so that it stays on dc1. Where dc2 has changed the key since, the stream
brings that value anyway.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from runtime.diverged import RESTORED, OwnRecords, without_mark
from wire.errors import ErrorCode
from wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from wire.net.cluster import Cluster
from wire.net.errors import RequestRefused
from wire.net.operations import EARLIEST, LATEST, list_offsets
from wire.net.retries import code_of
from wire.record_batch import Record
from wire.topic_partition import TopicPartition

TOPIC_RESOURCE: Final = 2
POLICY: Final = "cleanup.policy"
MOST_BYTES: Final = 64 * 1024 * 1024
"""So much may the last records of all keys take, on each side."""


class TooManyKeys(Exception):
    """The last records of the keys in question take more than MOST_BYTES."""


class Theirs(NamedTuple):
    """The other site's last record of a key, and whether the stream brings it."""

    record: Record
    comes: bool


@dataclass(slots=True)
class _Room:
    """The memory that last records take."""

    taken: int = 0

    def take(self, record: Record) -> None:
        """Count one; raises TooManyKeys."""
        self.taken += 200 + len(record.key or b"") + len(record.value or b"")
        if self.taken > MOST_BYTES:
            raise TooManyKeys(f"the last records of its keys take over {MOST_BYTES >> 20} MiB")


def to_restore(mine: Mapping[bytes, Record], theirs: Mapping[bytes, Theirs]) -> list[Record]:
    """Return the records that set keys back: for each key its last record on both sites.

    A key that the other site does not have gets a tombstone. Nothing is returned for keys that end
    alike, or that the stream brings.
    """
    restored: list[Record] = []
    for key, last in mine.items():
        other = theirs.get(key)
        if other is None:
            if last.value is not None:
                restored.append(Record(0, last.timestamp_ms, key, None, (RESTORED,)))
        elif not other.comes:
            wanted = other.record
            if (wanted.value, wanted.headers) != (last.value, without_mark(last.headers)):
                headers = (*wanted.headers, RESTORED)
                restored.append(Record(0, wanted.timestamp_ms, key, wanted.value, headers))
    return restored


async def is_compacted(cluster: Cluster, topic: str) -> bool:
    """Return whether a cleaner keeps the last value of each key; raises NetworkFault."""
    resource = DescribeConfigsResource(
        resource_type=TOPIC_RESOURCE, resource_name=topic, configuration_keys=(POLICY,)
    )
    [result] = (await cluster.request(DescribeConfigsRequest(resources=(resource,)))).results
    code = code_of(result.error_code)
    if code is not ErrorCode.NONE:
        raise RequestRefused(f"settings of {topic}", code)
    return any("compact" in (one.value or "") for one in result.configs if one.name == POLICY)


async def last_of_part(records: OwnRecords) -> dict[bytes, Record]:
    """Return the last record of each key; raises what reading raises, and TooManyKeys."""
    last: dict[bytes, Record] = {}
    room = _Room()
    async for _, some in records:
        for record in some:
            if record.key is not None:
                room.take(record)
                last[record.key] = record
    return last


async def last_of_keys(
    cluster: Cluster,
    partition: TopicPartition,
    keys: Mapping[bytes, object],
    brought_from: int,
    mirrors: frozenset[int],
) -> dict[bytes, Theirs]:
    """Return the last record of each of these keys in a whole log.

    The stream brings what lies at ``brought_from`` or behind and was not written by `mirrors`.
    Raises what reading raises, and TooManyKeys.
    """
    start, stop = [
        (await list_offsets(cluster, [partition], edge))[partition] for edge in (EARLIEST, LATEST)
    ]
    for answer in (start, stop):
        if isinstance(answer, ErrorCode):
            raise RequestRefused(f"ends of {partition}", answer)
    last: dict[bytes, Theirs] = {}
    room = _Room()
    async for header, some in OwnRecords(cluster, partition, start, stop, ()):
        is_own = header.producer_id not in mirrors
        for record in some:
            if record.key is not None and record.key in keys:
                room.take(record)
                last[record.key] = Theirs(record, is_own and record.offset >= brought_from)
    return last

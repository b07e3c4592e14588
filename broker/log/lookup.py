"""Finding records by time. The only place of the log that takes batches apart."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

from broker.fairness import RECORDS_AT_ONCE, UNPACKED_AT_ONCE_BYTES
from broker.log.config import LONG_MAX
from broker.log.record_scan import unpacked_at_once
from broker.log.results import FileSlice, StorageError, TimestampOffset
from broker.log.segments import SegmentList
from wire.compression import Compression
from wire.record_batch import BatchHeader, CorruptBatch, Record, iterate_records, parse_header


@dataclass(frozen=True, slots=True, kw_only=True)
class Further:
    """A search that has taken long enough for once: `search` one batch beside, then go on."""

    search: Callable[[], TimestampOffset | None]
    next_offset: int
    """Where to go on if that finds nothing."""


MORE_BYTES: Final = UNPACKED_AT_ONCE_BYTES + 1
TimestampSearchResult: TypeAlias = TimestampOffset | Further | None


def first_at_least(
    segments: SegmentList, timestamp_ms: int, start_offset: int, stop_offset: int
) -> TimestampSearchResult:
    """Return the first record in the range of offsets whose timestamp is at least that.

    One batch is nearly always enough; more only where headers tell of times that no record has.
    Raises StorageError for a batch that cannot be decoded, OSError where the disk does.
    """
    looked_at = unpacked_bytes = 0
    for batch in segments.batches_from_time(timestamp_ms, start_offset):
        data = batch.read()
        header = parse_header(data)
        if header.base_offset >= stop_offset:
            return None
        search = partial(_search, batch, data, header, timestamp_ms, (start_offset, stop_offset))
        looked_at += header.record_count
        if header.compression is not Compression.NONE:
            payload = unpacked_at_once(data, header)
            unpacked_bytes += MORE_BYTES if payload is None else len(payload)
        if looked_at > RECORDS_AT_ONCE or unpacked_bytes > UNPACKED_AT_ONCE_BYTES:
            return Further(search=search, next_offset=header.next_offset)
        found = search()
        if found is not None:
            return found
    return None


def _search(
    batch: FileSlice, data: bytes, header: BatchHeader, timestamp_ms: int, offsets: tuple[int, int]
) -> TimestampOffset | None:
    start_offset, stop_offset = offsets
    for record in _records(batch, data):
        if record.timestamp_ms < timestamp_ms or record.offset < start_offset:
            continue
        if record.offset >= stop_offset:
            return None
        return TimestampOffset(
            timestamp_ms=min(record.timestamp_ms, LONG_MAX),  # what an answer can hold
            offset=record.offset,
            leader_epoch=header.partition_leader_epoch,
        )
    return None


def _records(batch: FileSlice, data: bytes) -> Iterator[Record]:
    try:
        yield from iterate_records(data)
    except CorruptBatch as fault:
        assert batch.file is not None
        raise StorageError(batch.file.path, f"byte {batch.position}: {fault}") from fault

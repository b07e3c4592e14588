"""Finding records by time. The only place of the log that takes batches apart."""

from collections.abc import Iterator

from broker.log.results import FileSlice, StorageError, TimestampOffset
from broker.log.segments import SegmentList
from wire.record_batch import CorruptBatch, Record, iterate_records, parse_header


def first_at_least(
    segments: SegmentList, timestamp_ms: int, start_offset: int, stop_offset: int
) -> TimestampOffset | None:
    """Return the first record in the range of offsets whose timestamp is at least that.

    Raises StorageError for a batch that cannot be decoded, OSError where the disk does.
    """
    for batch in segments.batches_from_time(timestamp_ms):
        data = batch.read()
        header = parse_header(data)
        if header.base_offset >= stop_offset:
            return None
        for record in _records(batch, data):
            if record.timestamp_ms < timestamp_ms or record.offset < start_offset:
                continue
            if record.offset >= stop_offset:
                return None
            return TimestampOffset(
                timestamp_ms=record.timestamp_ms,
                offset=record.offset,
                leader_epoch=header.partition_leader_epoch,
            )
    return None


def newest(segments: SegmentList, start_offset: int, stop_offset: int) -> TimestampOffset | None:
    """Return the first record with the largest timestamp of all, None without any timestamp."""
    largest = max(segment.max_timestamp for segment in segments)
    if largest < 0:
        return None
    return first_at_least(segments, largest, start_offset, stop_offset)


def _records(batch: FileSlice, data: bytes) -> Iterator[Record]:
    try:
        yield from iterate_records(data)
    except CorruptBatch as fault:
        assert batch.file is not None
        raise StorageError(batch.file.path, f"byte {batch.position}: {fault}") from fault

"""What the tests of the log share: batches, a log that can be killed, reading back."""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from struct import pack

from broker.log.config import LogConfig
from broker.log.log_manager import LogManager
from broker.log.lookup import Further
from broker.log.markers import AbortedTransaction, read_marker
from broker.log.partition_log import PartitionLog
from broker.log.results import OffsetOutOfRange, RecoveryReport, TimestampOffset
from wire.compression import Compression
from wire.record_batch import (
    BatchHeader,
    Record,
    build_batch,
    crc_is_valid,
    iterate_batches,
    iterate_records,
)

NOW_MS = 1_700_000_000_000
SMALL = LogConfig(segment_bytes=700, index_interval_bytes=150)
"""Segments of a few batches and an index entry every other one."""


def recovered(manager: LogManager) -> list[RecoveryReport]:
    """Return what the start of the logs has mended."""
    return [report for log in manager.logs.values() for report in log.recovery_reports]


def batch(
    values: Sequence[bytes | None] = (b"value",),
    *,
    timestamp_ms: int = NOW_MS,
    producer: tuple[int, int, int] = (-1, -1, -1),
    is_transactional: bool = False,
    keys: Sequence[bytes | None] = (),
    compression: Compression = Compression.NONE,
) -> bytes:
    """Return one batch as a producer sends it; `producer` is (id, epoch, first sequence)."""
    records = [
        Record(offset=slot, timestamp_ms=timestamp_ms + slot, key=key, value=value)
        for slot, (value, key) in enumerate(zip_longest(values, keys))
    ]
    producer_id, epoch, sequence = producer
    return build_batch(
        records,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=is_transactional,
        compression=compression,
    )


def marker(
    producer_id: int, epoch: int = 0, *, is_abort: bool, timestamp_ms: int = NOW_MS
) -> bytes:
    """Return the control batch with which a coordinator ends a transaction."""
    record = Record(
        offset=0,
        timestamp_ms=timestamp_ms,
        key=pack(">hh", 0, 0 if is_abort else 1),
        value=pack(">hi", 0, 3),
    )
    return build_batch(
        [record],
        producer_id=producer_id,
        producer_epoch=epoch,
        is_transactional=True,
        is_control=True,
    )


def opened(folder: Path, config: LogConfig = SMALL, *, now_ms: int = NOW_MS) -> LogManager:
    """Open a log folder."""
    return LogManager.open(
        [folder], broker_id=1, cluster_id="test", config_of=lambda _: config, now_ms=now_ms
    )


def partition_of(manager: LogManager, config: LogConfig = SMALL) -> PartitionLog:
    """Return the one partition of the tests, made if it is not there."""
    return manager.create("topic", 0, topic_id=bytes(range(16)), config=config, now_ms=NOW_MS)


@contextmanager
def log_folder() -> Iterator[Path]:
    """Give a folder for one example of a property."""
    folder = Path(tempfile.mkdtemp())
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextmanager
def one_log(folder: Path, config: LogConfig = SMALL) -> Iterator[PartitionLog]:
    """Give a log that is closed cleanly in the end."""
    manager = opened(folder, config)
    yield partition_of(manager, config)
    manager.close()


def batches_of(log: PartitionLog, start: int | None = None) -> list[tuple[BatchHeader, bytes]]:
    """Read everything from `start` (the first segment's batches that end behind it) on."""
    offset = log.log_start_offset if start is None else start
    found: list[tuple[BatchHeader, bytes]] = []
    while offset < log.log_end_offset:
        data = log.read(offset, 1000)
        assert not isinstance(data, OffsetOutOfRange)
        assert data, f"nothing at {offset} before the end {log.log_end_offset}"
        for header, view in iterate_batches(data):
            assert crc_is_valid(view)
            found.append((header, bytes(view)))
            offset = header.next_offset
    return found


def record_at(
    log: PartitionLog, timestamp_ms: int, *, stop: int | None = None
) -> TimestampOffset | None:
    """Return the first record that is at least that young, however long it takes."""
    end = log.log_end_offset if stop is None else stop
    found = log.look_for_timestamp(timestamp_ms, stop_offset=end)
    while isinstance(found, Further):
        inside = found.search()
        if inside is not None:
            return inside
        start = found.next_offset
        found = log.look_for_timestamp(timestamp_ms, start_offset=start, stop_offset=end)
    return found


def values_of(log: PartitionLog) -> dict[int, bytes | None]:
    """Return every readable record's value by offset."""
    return {
        record.offset: record.value
        for _, data in batches_of(log)
        for record in iterate_records(data)
        if record.offset >= log.log_start_offset
    }


def scanned(log: PartitionLog) -> tuple[list[AbortedTransaction], dict[int, int]]:
    """Return the aborted transactions, and where the open ones began, told from the records."""
    aborted: list[AbortedTransaction] = []
    open_ones: dict[int, int] = {}
    for header, data in batches_of(log, log.segment_bases[0]):
        if header.is_control:
            began = open_ones.pop(header.producer_id, None)
            said = read_marker(data)
            if began is not None and said is not None and said.is_abort:
                stable = min(open_ones.values(), default=header.next_offset)
                place = (header.producer_id, began, header.base_offset, stable)
                aborted.append(AbortedTransaction(*place))
        elif header.is_transactional:
            open_ones.setdefault(header.producer_id, header.base_offset)
    return aborted, open_ones

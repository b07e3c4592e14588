"""Compacting a log on the spot, for tests."""

from collections.abc import Callable
from dataclasses import replace

from broker.log.cleaning import Cleaning, CleaningReport
from broker.log.partition_log import PartitionLog
from broker.log.results import AppendOrigin, BatchRefused
from broker.log.steps import Slow, Steps
from tests.broker.log.logs import NOW_MS, SMALL
from wire.record_batch import (
    BatchHeader,
    Record,
    crc_is_valid,
    iterate_batches,
    iterate_records,
)

COMPACTED = replace(
    SMALL, cleanup_policy=frozenset({"compact"}), retention_ms=-1, delete_retention_ms=1000
)


def add(log: PartitionLog, sent: bytes, *, now_ms: int = NOW_MS) -> None:
    """Append a batch of any kind as the broker itself."""
    done = log.append(sent, leader_epoch=0, now_ms=now_ms, origin=AppendOrigin.COORDINATOR)
    assert not isinstance(done, BatchRefused)


def clean(
    log: PartitionLog,
    *,
    now_ms: int = NOW_MS,
    slots: int = 1_000_000,
    checkpoint: int | None = None,
    high_watermark: int | None = None,
) -> CleaningReport:
    """Compact what may be compacted, whether or not it is due."""
    committed = log.log_end_offset if high_watermark is None else high_watermark
    plan = log.cleanable(checkpoint, high_watermark=committed, now_ms=now_ms)
    return run_through(Cleaning(log, plan, slots=slots, now_ms=now_ms).steps())


def run_through(
    steps: Steps[CleaningReport], run: Callable[[Slow], object] = lambda slow: slow()
) -> CleaningReport:
    """Do all of it at once, on the spot; return its result. `run` does what is slow."""
    answer = None
    while True:
        try:
            slow = steps.send(answer)
        except StopIteration as end:
            result: CleaningReport = end.value
            return result
        answer = None if slow is None else run(slow)


def batches_left(log: PartitionLog) -> list[tuple[BatchHeader, bytes]]:
    """Read everything; compaction may have taken what was before the end."""
    found: list[tuple[BatchHeader, bytes]] = []
    offset = log.log_start_offset
    while data := log.read(offset, 1000):
        assert isinstance(data, bytes)
        for header, view in iterate_batches(data):
            assert crc_is_valid(view)
            found.append((header, bytes(view)))
            offset = header.next_offset
    return found


def records_of(log: PartitionLog) -> list[Record]:
    """Return every record, control records too."""
    return [record for _, data in batches_left(log) for record in iterate_records(data)]


def headers_of(log: PartitionLog) -> list[BatchHeader]:
    """Return every batch's header."""
    return [header for header, _ in batches_left(log)]

"""Logs in memory, and a stand-in for the reading that reads them as the real one reads Kafka.

Everything behind the Fetch answer is the real code; only the network is left out.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias
from uuid import UUID

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from spark_audit.scan.committed import HoleReason
from spark_audit.scan.scan import begin
from spark_audit.scan.scan_plan import ScanTask
from spark_audit.scan.scan_rows import ARROW_SCAN, SCAN, ScanRow, arrow_batches, failure_row
from spark_audit.snapshot.bounds import LogBounds, PartitionBounds, SeenEnd, Snapshot
from spark_audit.snapshot.origins import Brought
from spark_audit.snapshot.seals import Seal
from spark_audit.snapshot.side import Side
from wire.record_batch import Record, build_batch

Batch: TypeAlias = tuple[int, bytes]
"""The offset behind it, and the bytes."""
FETCH_BATCHES = 7
"""A stand-in for the size of a Fetch answer: reading must go on in the middle of a log."""


@dataclass(slots=True)
class Log:
    """One partition's log: batches at their offsets."""

    batches: list[Batch] = field(default_factory=list)
    start: int = 0
    stop: int = 0
    is_compacted: bool = False

    def append(self, *contents: str, producer_id: int = -1) -> list[int]:
        """Append one batch of records and return their offsets; equal contents, equal records.

        In "key@time:value" only the key must be; a value `tombstone` is none.
        """
        offsets = list(range(self.stop, self.stop + len(contents)))
        records = [
            Record(offset, _time_of(content), _key_of(content), _value_of(content))
            for offset, content in zip(offsets, contents, strict=True)
        ]
        batch = build_batch(records, base_offset=self.stop, producer_id=producer_id)
        self.append_bytes(batch, len(contents))
        return offsets

    def append_bytes(self, batch: bytes, offsets: int) -> None:
        """Append a batch that is ready made."""
        self.stop += offsets
        self.batches.append((self.stop, batch))

    def skip(self, offsets: int) -> None:
        """Leave a gap."""
        self.stop += offsets

    def fetch(self, position: int) -> bytes:
        """Return the batches from the one that holds, or follows, the position."""
        following = [batch for behind, batch in self.batches if behind > position]
        return b"".join(following[:FETCH_BATCHES])

    def bounds(self) -> LogBounds:
        """Return what a snapshot says of it."""
        return LogBounds(
            start=self.start,
            stop=self.stop,
            topic_id=UUID(int=1),
            is_compacted=self.is_compacted,
        )


def _time_of(content: str) -> int:
    """Return the time of a record: what stands before the colon, which alterations keep."""
    return 1_700_000_000_000 + sum(content.partition(":")[0].encode())


def _key_of(content: str) -> bytes:
    return content.partition(":")[0].partition("@")[0].encode()


def _value_of(content: str) -> bytes | None:
    return None if content.endswith(":tombstone") else content.encode()


@dataclass(slots=True)
class Pair:
    """Both sides of a partition."""

    source: Log = field(default_factory=Log)
    target: Log = field(default_factory=Log)
    seal: Seal | None = None
    seen: SeenEnd | None = None
    to_source: Brought | None = None
    to_target: Brought | None = None

    def mirror(self, *contents: str) -> None:
        """Append the same records to both sides."""
        self.source.append(*contents)
        self.target.append(*contents)


Pairs: TypeAlias = Mapping[tuple[str, int], Pair]


def snapshot_of(pairs: Pairs, promotion: int | None = None) -> Snapshot:
    """Return the snapshot of these logs."""
    return Snapshot(
        flow="dc1->dc2",
        source="dc1",
        target="dc2",
        taken_ms=1_700_000_000_000,
        promotion=promotion,
        partitions=tuple(
            PartitionBounds(
                topic=topic,
                partition=partition,
                source=pair.source.bounds(),
                target=pair.target.bounds(),
                seal=pair.seal,
                seen=pair.seen,
                to_source=pair.to_source,
                to_target=pair.to_target,
            )
            for (topic, partition), pair in sorted(pairs.items())
        ),
        only_on_target=(),
    )


def scan_of(pairs: Pairs) -> Callable[[SparkSession, Sequence[ScanTask]], DataFrame]:
    """Return what reads these logs instead of Kafka's; the rows are made in this process."""

    def scan(spark: SparkSession, tasks: Sequence[ScanTask]) -> DataFrame:
        batches = [batch for task in tasks for batch in arrow_batches(task.log, read(pairs, task))]
        table = pa.Table.from_batches(batches, schema=ARROW_SCAN)
        return spark.createDataFrame(table, SCAN)

    return scan


def read(pairs: Pairs, task: ScanTask) -> list[ScanRow]:
    """Return the rows of one task, as `scan.scan` does."""
    pair = pairs[task.log.topic, task.log.partition]
    is_source = task.log.side in {Side.SOURCE, Side.RETURNED}
    log = pair.source if is_source else pair.target
    reading, sink = begin(task)
    if task.to_end:
        reading.extend(log.stop)
    for hole in reading.skip_to(log.start, HoleReason.RETENTION):
        sink.take(hole)
    while not reading.is_done:
        fetched = log.fetch(reading.position)
        if not fetched:
            return [failure_row(reading.position, "the log in memory ends")]
        if not all(sink.take(found) for found in reading.feed(memoryview(fetched), ())):
            break
        if sink.is_past(reading.position):
            break
    return sink.finish()

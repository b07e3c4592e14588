"""Logs in memory, and a stand-in for the reading that reads them as the real one reads Kafka.

Everything behind the Fetch answer is the real code; only the network is left out.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias
from uuid import UUID

import pyarrow as pa

from offset_translation import OffsetMap
from offset_translation.map_records import Begun
from spark_audit.compare.judgements import ARROW_JUDGED, failure_of, table_of
from spark_audit.compare.key_ends import KeyEnds, compare_ends
from spark_audit.compare.settling import Differences, settle
from spark_audit.scan.committed import AbortedTransaction, CommittedLog, HoleReason
from spark_audit.scan.scan import Reading, begin, committed
from spark_audit.scan.scan_plan import ScanTask, each_of
from spark_audit.scan.scan_rows import ARROW_SCAN, ScanRow, arrow_batches, failure_row
from spark_audit.scan.sinks import Sink
from spark_audit.snapshot.bounds import (
    GroupPlace,
    LogBounds,
    PartitionBounds,
    Promise,
    SeenEnd,
    Snapshot,
    begun_behind,
)
from spark_audit.snapshot.origins import Brought
from spark_audit.snapshot.seals import Seal
from spark_audit.snapshot.side import Side
from wire.record_batch import Record, build_batch
from wire.topic_partition import TopicPartition

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
    aborted: list[AbortedTransaction] = field(default_factory=list)
    """Each of a producer that writes nothing else."""

    def append(self, *contents: str, producer_id: int = -1) -> list[int]:
        """Append one batch of records and return their offsets; equal contents, equal records.

        In "key@time:value" only the key must be; a value `tombstone` is none.
        """
        self.append_bytes(self.batch_of(contents, producer_id), len(contents))
        return list(range(self.stop - len(contents), self.stop))

    def batch_of(self, contents: Sequence[str], producer_id: int = -1) -> bytes:
        """Return the batch that `append` would append."""
        records = [
            Record(offset, time_of(content), _key_of(content), _value_of(content))
            for offset, content in enumerate(contents, self.stop)
        ]
        return build_batch(records, base_offset=self.stop, producer_id=producer_id)

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


def time_of(content: str) -> int:
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
    source_seen: SeenEnd | None = None
    promise: Promise | None = None
    set_aside: tuple[tuple[int, int], ...] = ()
    begun: Begun | None = None
    """Where the flow began, by its `start`."""
    places: tuple[GroupPlace, ...] = ()
    pieces: list[tuple[int, int]] | None = None
    """The map: where pieces begin on both sides; None if there is none."""

    def mirror(self, *contents: str) -> None:
        """Append the same records to both sides; at the same offset they are the same bytes."""
        if self.source.stop == self.target.stop:
            batch = self.source.batch_of(contents)
            self.source.append_bytes(batch, len(contents))
            self.target.append_bytes(batch, len(contents))
        else:
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
            begun_behind(
                PartitionBounds(
                    topic=topic,
                    partition=partition,
                    source=pair.source.bounds(),
                    target=pair.target.bounds(),
                    seal=pair.seal,
                    seen=pair.seen,
                    source_seen=pair.source_seen,
                    promise=pair.promise,
                    set_aside=pair.set_aside,
                    to_source=pair.to_source,
                    to_target=pair.to_target,
                ),
                pair.begun,
            )
            for (topic, partition), pair in sorted(pairs.items())
        ),
        only_on_target=(),
        places={TopicPartition(*place): pair.places for place, pair in pairs.items()},
        maps={
            TopicPartition(*place): OffsetMap.from_starts(pair.pieces, pair.target.stop)
            for place, pair in pairs.items()
            if pair.pieces is not None
        },
    )


@dataclass(frozen=True, slots=True)
class MemoryReader:
    """Reads these logs instead of Kafka's, and settles partitions in this process."""

    pairs: Pairs
    before_scan: Callable[[int, Sequence[ScanTask]], None] = lambda _number, _tasks: None
    """Called with 0 before ranges are read, with 1 before the windows are."""
    after_scan: Callable[[int, Sequence[ScanTask]], None] = lambda _number, _tasks: None
    before_look: Callable[[Sequence[Reading]], None] = lambda _wanted: None
    """Called with each thing that the settling of a partition asks to be read."""
    before_reading: Callable[[Reading], None] = lambda _reading: None
    """Called with each of them directly before; they are read side by side, here the last first."""
    read_records: Counter[tuple[Side, str]] = field(default_factory=Counter)
    """How many offsets were read for their records, by side and topic."""

    def scan(self, tasks: Sequence[ScanTask]) -> pa.Table:
        """Return the rows of these tasks."""
        self.before_scan(0, tasks)
        batches = [
            batch
            for task in each_of(tasks)
            for batch in arrow_batches(task.log, read(self.pairs, task))
        ]
        self.after_scan(0, tasks)
        return pa.Table.from_batches(batches, schema=ARROW_SCAN)

    def settle(self, questions: Sequence[Differences | KeyEnds]) -> pa.Table:
        """Return the judgements of these partitions."""
        self.before_scan(1, ())
        batches = [self._settled(one) for one in questions]
        return pa.Table.from_batches(batches, schema=ARROW_JUDGED)

    def _settled(self, question: Differences | KeyEnds) -> pa.RecordBatch:
        place = question.topic, question.partition
        looking = compare_ends(question) if isinstance(question, KeyEnds) else settle(question)
        try:
            wanted = next(looking)
            while True:
                self.before_look(wanted)
                for reading in reversed(wanted):
                    self.before_reading(reading)
                    task = reading.task
                    self.read_records[task.log.side, task.log.topic] += task.stop - task.start
                    why = read_into(self.pairs, task, committed(task), reading.sink)
                    if why is not None:
                        return failure_of(*place, why)
                wanted = looking.send(None)
        except StopIteration as ended:
            return table_of(*place, ended.value)


def read(pairs: Pairs, task: ScanTask) -> list[ScanRow]:
    """Return the rows of one task, as `scan.scan` does."""
    reading, sink = begin(task)
    why = read_into(pairs, task, reading, sink)
    return sink.rows() if why is None else [failure_row(reading.position, why)]


def read_into(pairs: Pairs, task: ScanTask, reading: CommittedLog, sink: Sink) -> str | None:
    """Read a stretch into its sink; return why it cannot be read to its end."""
    pair = pairs[task.log.topic, task.log.partition]
    is_source = task.log.side in {Side.SOURCE, Side.RETURNED}
    log = pair.source if is_source else pair.target
    if task.to_end:
        reading.extend(log.stop)
    for hole in reading.skip_to(log.start, HoleReason.RETENTION):
        sink.take(hole)
    while not reading.is_done:
        fetched = log.fetch(reading.position)
        if not fetched:
            return "the log in memory ends"
        if not all(sink.take(found) for found in reading.feed(memoryview(fetched), log.aborted)):
            break
        if sink.is_past(reading.position):
            break
    return None

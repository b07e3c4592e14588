"""The rows that a scan of a log yields, and the Arrow batches in which they travel to Spark.

One schema for four kinds of row, so that one pass over a log can give them all:

    range     records start_offset..stop_offset-1 by number and digest, with the first one's time
    record    a record that was searched for; start_offset is its own
    hole      offsets without a committed record, and why
    failure   the log could not be read to its end, and why: the audit cannot tell
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from typing import Final, NamedTuple

import pyarrow as pa

from spark_audit.scan.committed import Hole
from spark_audit.scan.digests import DigestRange
from spark_audit.snapshot.side import Side

ROWS_PER_BATCH: Final = 8_192


class RowKind(Enum):
    """See the module's docstring."""

    RANGE = "range"
    RECORD = "record"
    HOLE = "hole"
    FAILURE = "failure"


OF_ROW: Final = (
    "kind string, start_offset bigint, stop_offset bigint, records bigint, digest binary, "
    "timestamp_ms bigint, runs binary, reason string, detail string, leader_epoch int"
)
"""The columns of a ScanRow, whatever log it is of."""
ARROW_OF_ROW: Final = (
    ("kind", pa.string()),
    ("start_offset", pa.int64()),
    ("stop_offset", pa.int64()),
    ("records", pa.int64()),
    ("digest", pa.binary()),
    ("timestamp_ms", pa.int64()),
    ("runs", pa.binary()),
    ("reason", pa.string()),
    ("detail", pa.string()),
    ("leader_epoch", pa.int32()),
)
ARROW_SCAN: Final = pa.schema(
    [
        ("flow", pa.string()),
        ("side", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        *ARROW_OF_ROW,
    ]
)
"""The columns of a scan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScannedLog:
    """The log that all rows of one scan are of."""

    side: Side
    topic: str
    partition: int
    flow: str = ""
    """The flow whose audit reads it; a digest of a site reads for none."""


class ScanRow(NamedTuple):
    """One row without its log."""

    kind: str
    start_offset: int
    stop_offset: int
    records: int = 0
    digest: bytes | None = None
    timestamp_ms: int | None = None
    runs: bytes | None = None
    """Of a range with holes in it: first offset and number of records of each part, in int64s."""
    reason: str | None = None
    detail: str | None = None
    leader_epoch: int | None = None
    """Of a range: that of its last record's batch, -1 if brokers do not say. None where the range
    ends because reading did, and not by its content."""


def range_row(
    digest_range: DigestRange,
    first_ms: int | None,
    runs: Sequence[int],
    leader_epoch: int | None,
) -> ScanRow:
    """Return the row of a range, by its first record's time and the parts that holes leave."""
    parts = array("q", runs).tobytes() if len(runs) > 2 else None
    return ScanRow(RowKind.RANGE.value, *digest_range, first_ms, parts, leader_epoch=leader_epoch)


def hole_row(hole: Hole) -> ScanRow:
    """Return the row of a hole."""
    return ScanRow(
        RowKind.HOLE.value,
        hole.start_offset,
        hole.stop_offset,
        hole.stop_offset - hole.start_offset,
        reason=hole.reason.name,
        detail=hole.detail,
    )


def failure_row(offset: int, detail: str) -> ScanRow:
    """Return the row that says why the log cannot be read from `offset` on."""
    return ScanRow(RowKind.FAILURE.value, offset, offset, detail=detail)


def arrow_batches(log: ScannedLog, rows: Iterable[ScanRow]) -> Iterator[pa.RecordBatch]:
    """Yield the rows as Arrow batches of `ARROW_SCAN`, ROWS_PER_BATCH at a time."""
    remaining = iter(rows)
    while chunk := list(islice(remaining, ROWS_PER_BATCH)):
        constants = (log.flow, log.side.value, log.topic, log.partition)
        columns = [
            *([value] * len(chunk) for value in constants),
            *zip(*chunk, strict=True),
        ]
        arrays = [
            pa.array(values, field.type) for values, field in zip(columns, ARROW_SCAN, strict=True)
        ]
        yield pa.record_batch(arrays, schema=ARROW_SCAN)

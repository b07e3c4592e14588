"""The two steps that see one partition of a topic in order: from Arrow tables to pure functions.

Spark hands all rows of a group to one call, so a partition's windows have to fit into a worker's
memory: about 1.1 KiB a record. Ranges are a thousandth of the records.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import pyarrow as pa

from spark_audit.compare.outcomes import Bracket, Entry, Outcome, WindowRecords, outcomes
from spark_audit.scan.digests import DigestRange
from spark_audit.scan.windows import windows_between
from spark_audit.snapshot.side import Side

ORIGINAL: Final = "original"
"""The side of a row that says: the source holds this too, outside the windows."""

ALIGNMENT_INPUT: Final = (
    "topic",
    "partition",
    "window",
    "side",
    "start_offset",
    "digest",
    "timestamp_ms",
    "key",
    "producer_id",
    "source_after",
    "source_before",
    "target_after",
    "target_before",
    "is_last",
    "is_compacted",
    "is_cut",
    "source_begin",
)

_WINDOW_FIELDS: Final = [
    ("topic", pa.string()),
    ("partition", pa.int32()),
    ("window", pa.int32()),
    ("source_start", pa.int64()),
    ("source_stop", pa.int64()),
    ("target_start", pa.int64()),
    ("target_stop", pa.int64()),
    ("source_records", pa.int64()),
    ("target_records", pa.int64()),
    ("is_last", pa.bool_()),
]
_OUTCOME_FIELDS: Final = [
    ("topic", pa.string()),
    ("partition", pa.int32()),
    ("kind", pa.string()),
    ("source_offset", pa.int64()),
    ("target_offset", pa.int64()),
    ("source_digest", pa.binary()),
    ("timestamp_ms", pa.int64()),
    ("key", pa.string()),
    ("producer_id", pa.int64()),
    ("source_after", pa.int64()),
    ("source_before", pa.int64()),
    ("target_after", pa.int64()),
    ("target_before", pa.int64()),
]


def find_windows(key: Sequence[Any], ranges: pa.Table) -> pa.Table:
    """Return the windows of one partition, `compare.WINDOWS`, from its range rows."""
    by_side: dict[str, list[DigestRange]] = {side.value: [] for side in Side}
    columns = ("side", "start_offset", "stop_offset", "records", "digest")
    for side, start, stop, records, digest in _rows(ranges, columns):
        by_side[side].append(DigestRange(start, stop, records, digest))
    windows = windows_between(
        sorted(by_side[Side.SOURCE.value]), sorted(by_side[Side.TARGET.value])
    )
    partition = _partition(key)
    return _table(
        [(*partition, number, *window) for number, window in enumerate(windows)], _WINDOW_FIELDS
    )


def align_partition(key: Sequence[Any], records: pa.Table) -> pa.Table:
    """Return the outcomes of one partition, `compare.OUTCOMES`, from rows of ALIGNMENT_INPUT."""
    windows: dict[int, WindowRecords] = {}
    originals: dict[bytes, Entry] = {}
    is_compacted = False
    for row in _rows(records, ALIGNMENT_INPUT[2:]):
        window, side, offset, digest, timestamp_ms, record_key, producer_id, *edges = row
        entry = Entry(offset, digest, timestamp_ms, record_key, producer_id)
        if side == ORIGINAL:
            originals[digest] = entry
            continue
        is_compacted = edges[5]
        if window not in windows:
            windows[window] = WindowRecords(
                bracket=Bracket(*edges[:4]),
                is_last=edges[4],
                is_cut=edges[6],
                source_begin=edges[7],
                source=[],
                target=[],
            )
        into = windows[window]
        (into.source if side == Side.SOURCE.value else into.target).append(entry)
    for into in windows.values():
        into.source.sort()
        into.target.sort()
    in_order = [windows[number] for number in sorted(windows)]
    partition = _partition(key)
    unmatched = outcomes(in_order, originals, is_compacted=is_compacted)
    return _table([_outcome_row(partition, outcome) for outcome in unmatched], _OUTCOME_FIELDS)


def _outcome_row(partition: tuple[str, int], outcome: Outcome) -> tuple[Any, ...]:
    source, target, record = outcome.source, outcome.target, outcome.record
    return (
        *partition,
        outcome.kind.value,
        None if source is None else source.offset,
        None if target is None else target.offset,
        None if source is None else source.digest,
        record.timestamp_ms,
        preview(record.key),
        record.producer_id,
        *outcome.bracket,
    )


def preview(key: bytes | None) -> str | None:
    """Return a key as text if it is printable UTF-8, else as 0x and hexadecimal digits."""
    if key is None:
        return None
    try:
        text = key.decode()
    except UnicodeDecodeError:
        text = ""
    return text if text.isprintable() and text else "0x" + key.hex()


def _partition(key: Sequence[Any]) -> tuple[str, int]:
    topic, partition = (value.as_py() for value in key)
    return topic, partition


def _rows(table: pa.Table, columns: Sequence[str]) -> Iterable[tuple[Any, ...]]:
    return zip(*(table.column(name).to_pylist() for name in columns), strict=True)


def _table(rows: Sequence[tuple[Any, ...]], fields: Sequence[tuple[str, Any]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(fields)
    return pa.table(
        [pa.array(values, kind) for values, (_, kind) in zip(columns, fields, strict=True)],
        schema=pa.schema(fields),
    )

"""The audit's judgements, as rows: of a record, of records in a row, or of a hole. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa

from spark_audit.compare.outcomes import FINDINGS, Kind

RUN_RECORDS: Final = 100
"""So many findings of one kind in a row, for one reason, are one row."""

ARROW_JUDGED: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("kind", pa.string()),
        ("source_offset", pa.int64()),
        ("target_offset", pa.int64()),
        ("records", pa.int64()),
        ("timestamp_ms", pa.int64()),
        ("key", pa.string()),
        ("reason", pa.string()),
        ("digest", pa.binary()),
    ]
)
"""The columns of judgements."""
FAILURE: Final = "failure"
"""Instead of a kind: the partition's logs could not be read, for this reason."""


class Judgement(NamedTuple):
    """What is said of a record; `records` may be more, in a row from these offsets on."""

    kind: Kind
    source_offset: int | None
    target_offset: int | None
    records: int
    timestamp_ms: int | None
    key: str | None
    reason: str
    digest: bytes | None = None
    """Of a record that was not mirrored before a promotion: it may have been written again."""


def condensed(judgements: Iterable[Judgement]) -> list[Judgement]:
    """Return what stands for these: what is no finding is added up, long runs become one row.

    Of what is added up the first offsets and the oldest time stay.
    """
    added: dict[tuple[Kind, str, bool], Judgement] = {}
    findings: list[Judgement] = []
    for one in judgements:
        if one.kind in FINDINGS:
            findings.append(one)
        else:
            alike = (one.kind, one.reason, one.source_offset is None)
            known = added.get(alike)
            added[alike] = one if known is None else _sum(known, one)
    findings.sort(key=_place)
    return [*(row for run in _runs(findings) for row in _as_rows(run)), *added.values()]


def _sum(known: Judgement, one: Judgement) -> Judgement:
    return known._replace(
        source_offset=_least(known.source_offset, one.source_offset),
        target_offset=_least(known.target_offset, one.target_offset),
        timestamp_ms=_least(known.timestamp_ms, one.timestamp_ms),
        records=known.records + one.records,
        key=None,
    )


def _least(one: int | None, other: int | None) -> int | None:
    return min((value for value in (one, other) if value is not None), default=None)


def _place(one: Judgement) -> tuple[str, str, bool, int, int]:
    return (
        one.kind.value,
        one.reason,
        one.digest is not None,
        -1 if one.source_offset is None else one.source_offset,
        -1 if one.target_offset is None else one.target_offset,
    )


def _runs(findings: Sequence[Judgement]) -> Iterator[list[Judgement]]:
    run: list[Judgement] = []
    for one in findings:
        if run and not _goes_on(run[-1], one):
            yield run
            run = []
        run.append(one)
    if run:
        yield run


def _goes_on(before: Judgement, one: Judgement) -> bool:
    is_alike = (before.kind, before.reason) == (one.kind, one.reason)
    return (
        is_alike
        and one.digest is None
        and before.digest is None
        and _follows(before.source_offset, one.source_offset, before.records)
        and _follows(before.target_offset, one.target_offset, before.records)
    )


def _follows(before: int | None, at: int | None, records: int) -> bool:
    if before is None or at is None:
        return before is at
    return at == before + records


def _as_rows(run: Sequence[Judgement]) -> Sequence[Judgement]:
    if len(run) < RUN_RECORDS:
        return run
    return [run[0]._replace(records=sum(one.records for one in run))]


def table_of(topic: str, partition: int, rows: Iterable[Judgement]) -> pa.RecordBatch:
    """Return the rows of one partition as an Arrow batch of `ARROW_JUDGED`."""
    values = [(topic, partition, row.kind.value, *row[1:]) for row in rows]
    return _batch(values)


def failure_of(topic: str, partition: int, why: str) -> pa.RecordBatch:
    """Return the row that says why a partition's logs could not be read."""
    return _batch([(topic, partition, FAILURE, None, None, 0, None, None, why, None)])


def _batch(values: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
    columns = list(zip(*values, strict=True)) or [()] * len(ARROW_JUDGED)
    arrays = [
        pa.array(column, field.type) for column, field in zip(columns, ARROW_JUDGED, strict=True)
    ]
    return pa.record_batch(arrays, schema=ARROW_JUDGED)


def judgement_of(row: Mapping[str, Any]) -> Judgement:
    """Return a row of `ARROW_JUDGED` that is no failure."""
    return Judgement(
        Kind(row["kind"]), *(row[name] for name in Judgement._fields if name != "kind")
    )

"""A partition's numbers, and the rows of findings, out of what was judged. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from spark_audit.compare.explain import (
    COMPACTED_ON_SOURCE,
    COMPACTED_ON_TARGET,
    CORRUPT_ON_SOURCE,
    CORRUPT_ON_TARGET,
    SET_ASIDE,
    TAKEN_ON_SOURCE,
    TAKEN_ON_TARGET,
)
from spark_audit.compare.judgements import ARROW_JUDGED, Judgement
from spark_audit.compare.outcomes import FINDINGS, Kind
from spark_audit.scan.committed import HoleReason
from spark_audit.scan.scan_rows import ScanRow
from spark_audit.snapshot.bounds import PartitionBounds
from spark_audit.snapshot.side import Side

HOLE_COLUMNS: Final = tuple(
    (f"{side.value}_{reason.name.lower()}_offsets", side, reason)
    for side in (Side.SOURCE, Side.TARGET)
    for reason in HoleReason
)
"""Offsets without a committed record, by side and reason."""
EXPLANATIONS: Final = {
    "missing_by_retention": TAKEN_ON_TARGET,
    "missing_by_compaction": COMPACTED_ON_TARGET,
    "missing_by_corruption": CORRUPT_ON_TARGET,
    "missing_set_aside": SET_ASIDE,
    "surplus_by_retention": TAKEN_ON_SOURCE,
    "surplus_by_compaction": COMPACTED_ON_SOURCE,
    "surplus_by_corruption": CORRUPT_ON_SOURCE,
}
"""Records that one side alone has for a reason: the source (missing), the target (surplus)."""
_BY_PLACE: Final = (Kind.HOLE, Kind.CORRUPT, Kind.TOO_FAR)
"""Kinds whose findings are counted, not the offsets or records that each is about."""

ARROW_FINDINGS: Final = pa.schema(
    [*(one for one in ARROW_JUDGED if one.name != "digest"), ("flow", pa.string())]
)


def findings(bounds: PartitionBounds, judged: Iterable[Judgement]) -> list[dict[str, Any]]:
    """Return what is a finding, in the order in which people look for it: `ARROW_FINDINGS`."""
    rows = [
        {
            "topic": bounds.topic,
            "partition": bounds.partition,
            **{name: value for name, value in one._asdict().items() if name != "digest"},
            "kind": one.kind.value,
        }
        for one in judged
        if one.kind in FINDINGS
    ]
    return sorted(rows, key=_place)


def _place(row: Mapping[str, Any]) -> tuple[int, str]:
    source, target = row["source_offset"], row["target_offset"]
    return (target if source is None else source), row["kind"]


def partition_summary(
    bounds: PartitionBounds,
    promotion: int | None,
    records: Mapping[Side, int],
    holes: Iterable[tuple[Side, ScanRow]],
    judged: Sequence[Judgement],
) -> dict[str, Any]:
    """Return one partition's row: bounds, records, kinds, holes.

    The bounds are those of the snapshot, so that the rest adds up to them.
    """
    offsets: Counter[tuple[Side, str]] = Counter()
    for side, row in holes:
        offsets[side, row.reason or ""] += row.records
    counts: Counter[Kind] = Counter()
    reasons: Counter[str] = Counter()
    for one in judged:
        counts[one.kind] += 1 if one.kind in _BY_PLACE else one.records
        if one.kind is Kind.EXPLAINED:
            reasons[one.reason] += one.records
    untold = [one for one in judged if one.kind is Kind.NOT_COMPARED]
    of_keys = [one for one in judged if one.kind is Kind.KEYS_NOT_COMPARED]
    waiting = [one for one in judged if one.kind in {Kind.IN_FLIGHT, Kind.OVERDUE}]
    return {
        "topic": bounds.topic,
        "partition": bounds.partition,
        "source_start": bounds.whole_source_start,
        "source_stop": bounds.source.stop,
        "target_start": min(bounds.target.start, bounds.mirrored_stop),
        "target_stop": bounds.mirrored_stop,
        "promotion": promotion,
        "mirrored_source_end": None if bounds.seal is None else bounds.seal.mirrored_source_end,
        "source_compacted": bounds.source.is_compacted,
        "target_compacted": bounds.target.is_compacted,
        "source_records": records[Side.SOURCE],
        "target_records": records[Side.TARGET],
        **{name: offsets[side, reason.name] for name, side, reason in HOLE_COLUMNS},
        **{kind.column: counts[kind] for kind in Kind},
        "oldest_in_flight_ms": min(
            (one.timestamp_ms for one in waiting if one.timestamp_ms is not None), default=None
        ),
        "first_in_flight": min(
            (one.source_offset for one in waiting if one.source_offset is not None), default=None
        ),
        **{name: reasons[reason] for name, reason in EXPLANATIONS.items()},
        "before_start": 0 if bounds.before_start is None else bounds.before_start.offsets,
        "not_compared_source": sum(one.records for one in untold if one.source_offset is not None),
        "not_compared_target": sum(one.records for one in untold if one.source_offset is None),
        "not_compared_reason": untold[0].reason if untold else None,
        "keys_not_compared_reason": of_keys[0].reason if of_keys else None,
    }


def first_behind(row: Mapping[str, Any]) -> int | None:
    """Return the first source offset of a partition's row that the target may have yet to get.

    Where that is not known because some are not compared, it is the end; None if all have arrived.
    """
    first: int | None = row["first_in_flight"]
    if first is None and row["not_compared_source"]:
        end: int = row["source_stop"]
        return end
    return first

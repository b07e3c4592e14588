"""What became of every offset that the snapshot named, by side. Pure.

The shares of a side add up to its offsets. What no share accounts for was not read, so a result
that came back in part is never taken for a whole one.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, Final

from spark_audit.scan.committed import HoleReason

SIDES: Final = ("source", "target")


class Share(Enum):
    """What became of offsets, in the order in which tables show it."""

    COMPARED = "compared"
    RETENTION = "taken by retention"
    COMPACTION = "compacted away"
    MARKERS = "transaction markers"
    ABORTED = "aborted transactions"
    ELSEWHERE = "compared by the other direction"
    WRITTEN_AGAIN = "written again after a promotion"
    SET_ASIDE = "set aside as divergent"
    BEFORE_START = "before the flow's start"
    IN_FLIGHT = "in flight"
    OVERDUE = "overdue"
    UNREADABLE = "corrupt or missing"
    NOT_COMPARED = "not compared"

    @property
    def is_explained(self) -> bool:
        """Return whether these offsets need no record on the other side, for a known reason."""
        return self in _EXPLAINED


_EXPLAINED: Final = frozenset(
    {
        Share.RETENTION,
        Share.COMPACTION,
        Share.MARKERS,
        Share.ABORTED,
        Share.ELSEWHERE,
        Share.WRITTEN_AGAIN,
        Share.SET_ASIDE,
        Share.BEFORE_START,
    }
)
_OF_HOLES: Final = {
    HoleReason.MARKER: Share.MARKERS,
    HoleReason.ABORTED: Share.ABORTED,
    HoleReason.RETENTION: Share.RETENTION,
    HoleReason.ELSEWHERE: Share.ELSEWHERE,
    HoleReason.CORRUPT: Share.UNREADABLE,
}


def coverage(row: Mapping[str, Any], side: str) -> Counter[Share]:
    """Return the shares of one side of one partition; `row` is of `summary.partition_summary`."""
    shares: Counter[Share] = Counter()
    for reason in HoleReason:
        gap = Share.COMPACTION if row[f"{side}_compacted"] else Share.UNREADABLE
        shares[_OF_HOLES.get(reason, gap)] += row[f"{side}_{reason.name.lower()}_offsets"]
    if side == "source":
        shares[Share.BEFORE_START] = row.get("before_start", 0)  # older results have none
    read = row[f"{side}_records"] + sum(shares.values())
    of_records = _of_source(row) if side == "source" else _of_target(row)
    shares[Share.COMPARED] = row[f"{side}_records"] - sum(of_records.values())
    shares.update(of_records)
    shares[Share.NOT_COMPARED] += abs(row[f"{side}_stop"] - row[f"{side}_start"] - read)
    return shares


def _of_source(row: Mapping[str, Any]) -> Counter[Share]:
    return Counter(
        {
            Share.RETENTION: row["missing_by_retention"],
            Share.COMPACTION: row["missing_by_compaction"],
            Share.WRITTEN_AGAIN: row["written_again"],
            Share.SET_ASIDE: row["missing_set_aside"],
            Share.UNREADABLE: row.get("missing_by_corruption", 0),  # older results have none
            Share.IN_FLIGHT: row["in_flight"],
            Share.OVERDUE: row["overdue"],
            Share.NOT_COMPARED: row["not_compared_source"],
        }
    )


def _of_target(row: Mapping[str, Any]) -> Counter[Share]:
    return Counter(
        {
            Share.RETENTION: row["surplus_by_retention"],
            Share.COMPACTION: row["surplus_by_compaction"],
            Share.UNREADABLE: row["surplus_by_corruption"],
            Share.NOT_COMPARED: row["not_compared_target"],
        }
    )


def total_coverage(rows: Iterable[Mapping[str, Any]], side: str) -> Counter[Share]:
    """Return the shares of one side of all these partitions."""
    shares: Counter[Share] = Counter()
    for row in rows:
        shares.update(coverage(row, side))
    return shares


def why_not_compared(row: Mapping[str, Any]) -> str | None:
    """Return why not all of a partition was compared; None if it was."""
    sides = {side: coverage(row, side)[Share.NOT_COMPARED] for side in SIDES}
    if row["corrupt"]:
        return f"corrupt batches ({row['corrupt']:,}): nobody knows what is in them"
    if not any(sides.values()):
        reason = row["keys_not_compared_reason"]
        return None if reason is None else str(reason)
    if row["not_compared_reason"]:
        return str(row["not_compared_reason"])
    return "not all that the snapshot named was read: " + ", ".join(
        f"{offsets:,} offsets of the {side}" for side, offsets in sides.items() if offsets
    )

"""One audit over everything that was planted, by topic: an audit of one topic costs as much."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from spark_audit import flow_audit
from spark_audit.flow_audit import NOTHING_KEPT, Kept, audit_flow
from spark_audit.scan.scan_plan import Address, Planner, ScanTask
from spark_audit.snapshot.bounds import Snapshot
from spark_audit.snapshot.side import Side
from tests.spark_audit.logs import MemoryReader, Pair, snapshot_of
from tests.spark_audit.planted.backlogs import BACKLOG, plant_backlogs
from tests.spark_audit.planted.compaction import (
    plant_behind_a_promotion,
    plant_both_ways,
    plant_cleaners_at_work,
    plant_what_cleaners_took,
)
from tests.spark_audit.planted.faults import plant_faults
from tests.spark_audit.planted.meanwhile import plant_retention_at_work
from tests.spark_audit.planted.planting import Planted, PlantedFinding
from tests.spark_audit.planted.promotion import plant_unmirrored_ends
from wire.topic_partition import TopicPartition

ADDRESSES: Mapping[str, tuple[Address, ...]] = {"dc1": (), "dc2": ()}


@dataclass(slots=True)
class Audited:
    """What one run found, by topic."""

    findings: dict[str, set[PlantedFinding]] = field(default_factory=dict)
    reasons: dict[str, set[str]] = field(default_factory=dict)
    summary: dict[str, dict[str, Any]] = field(default_factory=dict)
    untold: Mapping[TopicPartition, str] = field(default_factory=dict)
    read: Counter[tuple[Side, str]] = field(default_factory=Counter)
    """How many offsets were read for their records, by side and topic."""
    first: Counter[str] = field(default_factory=Counter)
    """How many offsets the first job read, by topic."""
    rows: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    """What the audit says of all logs, as it says it: its findings and its summary."""

    def numbers(self, column: str, *topics: str) -> tuple[int, ...]:
        """Return a column of the summary for these topics."""
        return tuple(self.summary[topic][column] for topic in topics)

    def of(self, planted: Planted) -> dict[str, set[PlantedFinding]]:
        """Return the findings of these topics."""
        return {topic: self.findings[topic] for topic in planted.topics}


def audit(
    planted: Sequence[Planted], promotion: int | None = None, kept: Kept = NOTHING_KEPT
) -> Audited:
    """Run one audit over all logs and return its findings and numbers."""
    first: Counter[str] = Counter()
    pairs: dict[tuple[str, int], Pair] = {}
    for one in planted:
        assert not pairs.keys() & one.pairs.keys(), "each partition is planted once"
        pairs |= one.pairs
    snapshot = snapshot_of(pairs, promotion)

    def before_scan(number: int, tasks: Sequence[ScanTask]) -> None:
        for task in tasks if number == 0 else ():
            first[task.log.topic] += task.stop - task.start
        for one in planted:
            one.before_scan(number, tasks)

    def after_scan(number: int, tasks: Sequence[ScanTask]) -> None:
        for one in planted:
            one.after_scan(number, tasks)

    reader = MemoryReader(pairs, before_scan, after_scan)
    result = audit_flow(reader, snapshot, planner_of(snapshot), kept=kept)
    rows = {"findings": result.findings, "summary": result.summary}
    audited = Audited(untold=result.untold, read=reader.read_records, first=first, rows=rows)
    for row in result.summary:
        audited.summary[row["topic"]] = dict(row)
        audited.findings[row["topic"]] = set()
        audited.reasons[row["topic"]] = set()
    for row in result.findings:
        audited.findings[row["topic"]] |= set(_each(row))
        audited.reasons[row["topic"]].add(row["reason"])
    return audited


def _each(row: Mapping[str, Any]) -> Iterator[PlantedFinding]:
    """Yield each record of a row that stands for records in a row."""
    source, target = row["source_offset"], row["target_offset"]
    for step in range(row["records"] if row["kind"] not in {"hole", "corrupt"} else 1):
        yield (
            row["kind"],
            None if source is None else source + step,
            None if target is None else target + step,
        )


def planner_of(snapshot: Snapshot) -> Planner:
    """Return what plans the reading of logs in memory."""
    return Planner(snapshot, ADDRESSES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Everything:
    """All that was planted where no site was promoted, and the one audit of it."""

    faults: Planted
    cleaned: Planted
    cleaners_at_work: Planted
    both_ways: Planted
    retention_at_work: Planted
    backlogs: Planted
    audited: Audited


def audit_everything() -> Everything:
    """Partitions do not concern each other, so many differences are found in one run as alone."""
    planted = {
        "faults": plant_faults(),
        "cleaned": plant_what_cleaners_took(),
        "cleaners_at_work": plant_cleaners_at_work(),
        "both_ways": plant_both_ways(),
        "retention_at_work": plant_retention_at_work(),
        "backlogs": plant_backlogs(),
    }
    return Everything(**planted, audited=audit_with_backlogs(list(planted.values())))


def audit_with_backlogs(planted: Sequence[Planted], kept: Kept = NOTHING_KEPT) -> Audited:
    """Run one audit in which a backlog is too long to be looked at record by record."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flow_audit, "LONG_RECORDS", BACKLOG // 2)
        return audit(planted, kept=kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class BehindPromotion:
    """What was planted behind promotion 4, and the one audit of it."""

    unmirrored: Planted
    cleaned: Planted
    audited: Audited


def audit_behind_promotion() -> BehindPromotion:
    """Audit what has a promotion before it: the snapshot of a flow has one or none."""
    unmirrored, cleaned = plant_unmirrored_ends(), plant_behind_a_promotion()
    audited = audit([unmirrored, cleaned], promotion=4)
    return BehindPromotion(unmirrored=unmirrored, cleaned=cleaned, audited=audited)

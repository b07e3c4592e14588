"""One audit over everything that was planted, by topic: an audit of one topic costs as much."""

import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_audit import flow_audit
from spark_audit.flow_audit import audit_flow
from spark_audit.scan.scan_plan import Address, Planner, ScanTask
from spark_audit.session import PANDAS_COMPLAINT
from spark_audit.snapshot.bounds import Snapshot
from tests.spark_audit.logs import Pair, scan_of, snapshot_of
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

    def numbers(self, column: str, *topics: str) -> tuple[int, ...]:
        """Return a column of the summary for these topics."""
        return tuple(self.summary[topic][column] for topic in topics)

    def of(self, planted: Planted) -> dict[str, set[PlantedFinding]]:
        """Return the findings of these topics."""
        return {topic: self.findings[topic] for topic in planted.topics}


def audit(spark: SparkSession, planted: Sequence[Planted], promotion: int | None = None) -> Audited:
    """Run one audit over all logs and return its findings and numbers."""
    pairs: dict[tuple[str, int], Pair] = {}
    for one in planted:
        assert not pairs.keys() & one.pairs.keys(), "each partition is planted once"
        pairs |= one.pairs
    snapshot = snapshot_of(pairs, promotion)
    audited = Audited()
    scan = _watched(scan_of(pairs), planted)
    with audit_flow(spark, snapshot, planner_of(snapshot), scan) as frames:
        for row in frames.summary.collect():
            audited.summary[row.topic] = row.asDict()
            audited.findings[row.topic] = set()
            audited.reasons[row.topic] = set()
        for row in frames.findings.collect():
            audited.findings[row.topic].add((row.kind, row.source_offset, row.target_offset))
            audited.reasons[row.topic].add(row.reason)
        audited.untold = frames.untold
    return audited


def planner_of(snapshot: Snapshot) -> Planner:
    """Return what plans the reading of logs in memory."""
    return Planner(snapshot, ADDRESSES)


def _watched(
    read: Callable[[SparkSession, Sequence[ScanTask]], DataFrame], planted: Sequence[Planted]
) -> Callable[[SparkSession, Sequence[ScanTask]], DataFrame]:
    number = 0

    def scan(spark: SparkSession, tasks: Sequence[ScanTask]) -> DataFrame:
        nonlocal number
        for one in planted:
            one.before_scan(number, tasks)
        rows = read(spark, tasks)
        for one in planted:
            one.after_scan(number, tasks)
        number += 1
        return rows

    return scan


@dataclass(frozen=True, slots=True, kw_only=True)
class Everything:
    """All that was planted where no site was promoted, and the one audit of it."""

    faults: Planted
    cleaned: Planted
    cleaners_at_work: Planted
    both_ways: Planted
    retention_at_work: Planted
    backlogs: Planted
    read: Counter[str]
    """How many records of a source were read for themselves, by topic."""
    audited: Audited


def audit_everything(spark: SparkSession) -> Everything:
    """Partitions do not concern each other, so many differences are found in one run as alone."""
    read: Counter[str] = Counter()
    planted = {
        "faults": plant_faults(),
        "cleaned": plant_what_cleaners_took(),
        "cleaners_at_work": plant_cleaners_at_work(),
        "both_ways": plant_both_ways(),
        "retention_at_work": plant_retention_at_work(),
        "backlogs": plant_backlogs(read),
    }
    # This runs outside the tests, where their marks do not count.
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.filterwarnings("ignore", PANDAS_COMPLAINT, FutureWarning)
        patch.setattr(flow_audit, "BACKLOG_RECORDS", BACKLOG // 2)
        audited = audit(spark, list(planted.values()))
    return Everything(**planted, read=read, audited=audited)


@dataclass(frozen=True, slots=True, kw_only=True)
class BehindPromotion:
    """What was planted behind promotion 4, and the one audit of it."""

    unmirrored: Planted
    cleaned: Planted
    audited: Audited


def audit_behind_promotion(spark: SparkSession) -> BehindPromotion:
    """Audit what has a promotion before it: the snapshot of a flow has one or none."""
    unmirrored, cleaned = plant_unmirrored_ends(), plant_behind_a_promotion()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", PANDAS_COMPLAINT, FutureWarning)
        audited = audit(spark, [unmirrored, cleaned], promotion=4)
    return BehindPromotion(unmirrored=unmirrored, cleaned=cleaned, audited=audited)

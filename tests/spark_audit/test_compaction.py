"""Compacted topics: what the cleaners took, on either side and at any time, is no finding.

And no more than that: the last record of a key is what they keep.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import TypeAlias

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_audit.flow_audit import Scan, audit_flow
from spark_audit.scan.scan_plan import Planner, ScanTask
from spark_audit.scan.sinks import KEY_BYTES
from spark_audit.session import PANDAS_COMPLAINT
from spark_audit.snapshot.origins import Brought
from spark_audit.snapshot.seals import Seal
from tests.spark_audit.logs import Log, Pair, Pairs, scan_of, snapshot_of

pytestmark = [
    pytest.mark.integration,
    # Raised by Spark where it meets Arrow; nothing of ours goes through pandas.
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

DC1_MIRROR, DC2_MIRROR = 11, 22
"""The producer ids of the mirrors out of these sites."""
Found: TypeAlias = tuple[str, int | None, int | None]
Findings: TypeAlias = dict[str, set[Found]]


def _compacted(*contents: str) -> Pair:
    """Both sides with these records, a batch each, and with cleaners."""
    pair = Pair()
    pair.source.is_compacted = pair.target.is_compacted = True
    for content in contents:
        pair.mirror(content)
    return pair


def _clean(log: Log, *offsets: int) -> None:
    """Take these records, each in a batch of its own, out of the log, as a cleaner does."""
    log.batches = [one for one in log.batches if one[0] - 1 not in offsets]


def _audit(
    spark: SparkSession, pairs: Pairs, scan: Scan | None = None, promotion: int | None = None
) -> Findings:
    snapshot = snapshot_of(pairs, promotion)
    planner = Planner(snapshot, {"dc1": (), "dc2": ()})
    found: Findings = {topic: set() for topic, _ in pairs}
    with audit_flow(spark, snapshot, planner, scan or scan_of(pairs)) as frames:
        for row in frames.findings.collect():
            found[row.topic].add((row.kind, row.source_offset, row.target_offset))
    return found


@pytest.mark.parametrize("side", ["source", "target"])
def test_what_a_cleaner_takes_while_the_audit_runs_is_no_finding(
    spark: SparkSession, side: str
) -> None:
    """It takes d@1, which a record behind the snapshot supersedes."""
    pair = _compacted("a", "b@1", "c", "d@1", "e", "b@2")
    _clean(pair.target, 1)
    pairs = {("t", 0): pair}
    read = scan_of(pairs)

    def scan(spark: SparkSession, tasks: Sequence[ScanTask]) -> DataFrame:
        rows = read(spark, tasks)
        if any(task.wants_ranges for task in tasks):
            pair.mirror("d@2")
            _clean(getattr(pair, side), 3)
        return rows

    assert _audit(spark, pairs, scan) == {"t": set()}


def different_neighbours(pair: Pair) -> set[Found]:
    """A tombstone that only the source's cleaner took, beside a record that only the target's did.

    To take the second for the first with other content would be an alteration.
    """
    pair.mirror("k@9:tombstone")
    pair.mirror("s@1")
    pair.mirror("s@2")
    _clean(pair.source, 1)
    _clean(pair.target, 2)
    return set()


def other_content(pair: Pair) -> set[Found]:
    (source,), (target,) = pair.source.append("x:is this"), pair.target.append("x:is that")
    return {("altered", source, target)}


def a_lost_last_value(pair: Pair) -> set[Found]:
    """Both cleaners took records of other keys here, so both logs have gaps with room for it."""
    (old,) = pair.target.append("k@1")
    pair.source.skip(2)
    (last,) = pair.source.append("k@2")
    pair.target.skip(1)
    return {("lost", last, None), ("phantom", None, old)}


def a_loss_beside_what_a_cleaner_took(pair: Pair) -> set[Found]:
    """The gap is as long as what was taken: it must not be too short for that because of a loss."""
    pair.source.append("s@1")
    pair.target.skip(1)
    (lost,) = pair.source.append("k@1")
    pair.mirror("s@2")
    return {("lost", lost, None)}


def a_value_that_went_with_its_tombstone(pair: Pair) -> set[Found]:
    pair.mirror("k@1")
    pair.mirror("b")
    pair.mirror("k@9:tombstone")
    _clean(pair.target, 1, 3)
    return set()


def a_lost_tombstone(pair: Pair) -> set[Found]:
    """The target's gap has room for it, but a cleaner would have taken what it stands for first."""
    pair.mirror("k@1")
    pair.mirror("b")
    pair.source.skip(1)
    (lost,) = pair.source.append("k@9:tombstone")
    pair.target.skip(1)
    return {("lost", lost, None)}


def a_value_whose_tombstone_is_not_mirrored_yet(pair: Pair) -> set[Found]:
    (lost,) = pair.source.append("k@1")
    pair.target.skip(1)
    pair.mirror("b")
    pair.source.append("k@9:tombstone")
    return {("lost", lost, None)}


def superseded_by_what_is_in_flight(pair: Pair) -> set[Found]:
    pair.mirror("k@1")
    pair.source.append("k@2")
    _clean(pair.source, 1)
    return set()


def superseded_where_only_the_source_has_a_cleaner(pair: Pair) -> set[Found]:
    pair.target.is_compacted = False
    return superseded_by_what_is_in_flight(pair)


def another_key_that_begins_the_same(pair: Pair) -> set[Found]:
    key = "k" * KEY_BYTES
    (lost,) = pair.source.append(f"{key}1@1")
    pair.target.skip(1)
    pair.mirror(f"{key}2@1")
    return {("lost", lost, None)}


def a_long_key_that_is_superseded(pair: Pair) -> set[Found]:
    key = "k" * KEY_BYTES
    pair.mirror(f"{key}1@1")
    pair.mirror(f"{key}1@2")
    _clean(pair.target, 1)
    return set()


def equal_records_of_which_the_source_has_the_second(pair: Pair) -> set[Found]:
    for content in ("k@1", "b", "k@1"):
        pair.mirror(content)
    _clean(pair.source, 1)
    return set()


SCENARIOS: dict[str, Callable[[Pair], set[Found]]] = {
    scenario.__name__: scenario
    for scenario in (
        different_neighbours,
        other_content,
        a_lost_last_value,
        a_loss_beside_what_a_cleaner_took,
        a_value_that_went_with_its_tombstone,
        a_lost_tombstone,
        a_value_whose_tombstone_is_not_mirrored_yet,
        superseded_by_what_is_in_flight,
        superseded_where_only_the_source_has_a_cleaner,
        another_key_that_begins_the_same,
        a_long_key_that_is_superseded,
        equal_records_of_which_the_source_has_the_second,
    )
}
IN_FLIGHT = {
    superseded_by_what_is_in_flight,
    superseded_where_only_the_source_has_a_cleaner,
    a_value_whose_tombstone_is_not_mirrored_yet,
}


@pytest.fixture(scope="module")
def planted() -> tuple[Pairs, Findings]:
    """A topic for each scenario, between records that are on both sides, and what is to be found"""
    pairs = {(name, 0): _compacted("first") for name in SCENARIOS}
    expected = {name: plant(pairs[name, 0]) for name, plant in SCENARIOS.items()}
    for name, plant in SCENARIOS.items():
        if plant not in IN_FLIGHT:
            pairs[name, 0].mirror("last")
    return pairs, expected


@pytest.fixture(scope="module")
def found(spark: SparkSession, planted: tuple[Pairs, Findings]) -> Findings:
    """What one audit says of all of them."""
    # This runs outside the tests, where their marks do not count.
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", PANDAS_COMPLAINT, FutureWarning)
        return _audit(spark, planted[0])


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_gap_explains_only_what_a_cleaner_may_have_taken(
    found: Findings, planted: tuple[Pairs, Findings], name: str
) -> None:
    assert found[name] == planted[1][name]


def test_behind_a_promotion_what_applications_wrote_supersedes_on_the_target_only(
    spark: SparkSession,
) -> None:
    pairs = {(name, 0): _compacted("first", "k@1", "last") for name in ("taken", "surplus")}
    for pair in pairs.values():
        pair.seal = Seal(mirrored_source_end=pair.source.stop, target_end=pair.target.stop)
        pair.target.append("k@2")
    _clean(pairs["taken", 0].target, 1)
    _clean(pairs["surplus", 0].source, 1)
    assert _audit(spark, pairs, promotion=4) == {"taken": set(), "surplus": {("phantom", None, 1)}}


def test_where_both_sites_write_what_came_from_the_other_supersedes_too(
    spark: SparkSession,
) -> None:
    """Records of dc1 that dc2's supersede; a cleaner of either side has taken what it may."""
    names = ("by value", "by tombstone", "taken on dc1", "lost")
    pairs = {(name, 0): _compacted() for name in names}
    for (name, _), pair in pairs.items():
        pair.to_source = Brought(producer_ids=frozenset({DC2_MIRROR}))
        pair.to_target = Brought(producer_ids=frozenset({DC1_MIRROR}))
        superseding = "k@9:tombstone" if name == "by tombstone" else "k@2"
        for content in ("first", "k@1", "b"):
            pair.source.append(content)
            pair.target.append(content, producer_id=DC1_MIRROR)
        if name != "lost":
            pair.target.append(superseding)
            pair.source.append(superseding, producer_id=DC2_MIRROR)
        pair.source.append("last")
        pair.target.append("last", producer_id=DC1_MIRROR)
    _clean(pairs["by value", 0].target, 1)
    _clean(pairs["by tombstone", 0].target, 1, 3)
    _clean(pairs["taken on dc1", 0].source, 1)
    _clean(pairs["lost", 0].target, 1)
    assert _audit(spark, pairs) == {
        "by value": set(),
        "by tombstone": set(),
        "taken on dc1": set(),
        "lost": {("lost", 1, None)},
    }

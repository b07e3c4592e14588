"""An audit that reads only around what is kept of both logs finds what one finds that reads all."""

from collections.abc import Mapping, Sequence

import pytest

from spark_audit.evidence.chain import Chain
from spark_audit.evidence.links import chained, whole
from spark_audit.flow_audit import FlowResult, audit_flow
from spark_audit.scan.scan_plan import ScanTask
from spark_audit.snapshot.seals import CannotTell
from spark_audit.snapshot.side import Side
from tests.spark_audit.audits import planner_of
from tests.spark_audit.logs import MemoryReader, Pair, read, snapshot_of
from tests.spark_audit.planted.backlogs import plant_backlogs
from tests.spark_audit.planted.faults import plant_faults
from tests.spark_audit.planted.planting import Planted
from wire.topic_partition import TopicPartition

SIDES = (Side.SOURCE, Side.TARGET)


def _pairs(*planted: Planted) -> dict[tuple[str, int], Pair]:
    return {place: pair for one in planted for place, pair in one.pairs.items()}


@pytest.fixture(scope="module")
def pairs() -> dict[tuple[str, int], Pair]:
    return _pairs(plant_faults(), plant_backlogs())


def _links(pairs: dict[tuple[str, int], Pair]) -> dict[tuple[Side, TopicPartition], Chain]:
    """Return all links of logs whose records need not be told apart."""
    snapshot = snapshot_of(pairs)
    planner = planner_of(snapshot)
    found: dict[tuple[Side, TopicPartition], Chain] = {}
    for bounds in snapshot.partitions:
        for side in SIDES:
            log, start, stop = bounds.side(side)
            if bounds.part(side) is None and not log.is_compacted:
                rows = read(pairs, _task(planner.stretch(bounds, side, start, stop)))
                place = TopicPartition(bounds.topic, bounds.partition)
                found[side, place] = Chain.of(whole(chained(start, rows)))
    return found


def _task(task: ScanTask) -> ScanTask:
    assert task.starts_log, "a stretch from a log's start begins it"
    return task


def _audited(
    pairs: dict[tuple[str, int], Pair],
    kept: Mapping[tuple[Side, TopicPartition], Chain],
) -> tuple[FlowResult, int]:
    """Return what an audit says, and how many offsets its first job read."""
    read_offsets = 0

    def count(number: int, tasks: Sequence[ScanTask]) -> None:
        nonlocal read_offsets
        if number == 0:
            read_offsets += sum(task.stop - task.start for task in tasks)

    snapshot = snapshot_of(pairs)
    reader = MemoryReader(pairs, before_scan=count)
    return audit_flow(reader, snapshot, planner_of(snapshot), kept=kept), read_offsets


def _said(result: FlowResult) -> object:
    rows = [
        {name: value for name, value in row.items() if not name.endswith("_remembered")}
        for row in result.summary
    ]
    return result.findings, rows, result.untold


def test_what_is_kept_of_both_logs_changes_no_finding(
    pairs: dict[tuple[str, int], Pair],
) -> None:
    """All of some logs, and a part of others."""
    kept = {
        of_log: chain[: 1 + number % 5 * len(chain) // 4]
        for number, (of_log, chain) in enumerate(_links(pairs).items())
        if len(chain)
    }
    everything, read_by_all = _audited(pairs, {})
    remembering, read_by_some = _audited(pairs, kept)
    assert _said(remembering) == _said(everything)
    known = sum(stop - start for start, stop in map(Chain.span, kept.values()))
    assert read_by_all - read_by_some == known > 0
    assert (
        sum(row[f"{side.value}_remembered"] for row in remembering.summary for side in SIDES)
        == known
    )


@pytest.fixture(scope="module")
def longest(
    pairs: dict[tuple[str, int], Pair],
) -> tuple[dict[tuple[str, int], Pair], Side, Chain]:
    """One partition alone, the side of its log of most links, and those."""
    (side, place), chain = max(_links(pairs).items(), key=lambda one: len(one[1]))
    return {place: pairs[place]}, side, chain


def test_what_is_kept_behind_a_log_that_begins_later_now_is_read_around(
    longest: tuple[dict[tuple[str, int], Pair], Side, Chain],
) -> None:
    """Retention went on since: links before the start are not asked, the one across it is read."""
    pairs, side, chain = longest
    [(topic, partition)], [pair] = pairs.keys(), pairs.values()
    log = pair.source if side is Side.SOURCE else pair.target
    before, start = log.start, chain[1].start + 1
    kept = chain.between(start, chain[-1].stop)
    assert kept[0].start == chain[2].start
    log.start = start
    try:
        remembering, _ = _audited(pairs, {(side, TopicPartition(topic, partition)): kept})
        assert _said(remembering) == _said(_audited(pairs, {})[0])
    finally:
        log.start = before


def test_a_log_that_cannot_be_read_behind_what_is_kept_is_untold(
    longest: tuple[dict[tuple[str, int], Pair], Side, Chain],
) -> None:
    pairs, side, chain = longest
    [place], [pair] = pairs.keys(), pairs.values()
    log = pair.source if side is Side.SOURCE else pair.target
    batches = list(log.batches)
    log.batches[:] = [one for one in batches if one[0] <= chain[0].stop]
    try:
        with pytest.raises(CannotTell, match="ends"):
            _audited(pairs, {(side, TopicPartition(*place)): chain[:1]})
    finally:
        log.batches[:] = batches

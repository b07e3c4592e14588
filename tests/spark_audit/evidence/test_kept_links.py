"""An audit that reads only around what is kept of both logs finds what one finds that reads all."""

from collections.abc import Collection

import pytest

from spark_audit.evidence.chain import Chain
from spark_audit.evidence.links import chained, whole
from spark_audit.flow_audit import NOTHING_KEPT, Kept
from spark_audit.scan.scan_plan import ScanTask
from spark_audit.snapshot.seals import CannotTell
from spark_audit.snapshot.side import Side
from tests.spark_audit.audits import Audited, Everything, audit, audit_with_backlogs, planner_of
from tests.spark_audit.logs import Pair, read, snapshot_of
from tests.spark_audit.planted.planting import Planted
from wire.topic_partition import TopicPartition

SIDES = (Side.SOURCE, Side.TARGET)


@pytest.fixture(scope="module")
def planted(everything: Everything) -> list[Planted]:
    """What is compared with the one audit of everything, which keeps nothing."""
    return [everything.faults, everything.backlogs]


@pytest.fixture(scope="module")
def pairs(planted: list[Planted]) -> dict[tuple[str, int], Pair]:
    return {place: pair for one in planted for place, pair in one.pairs.items()}


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


def _said(audited: Audited, topics: Collection[str]) -> object:
    """Return all that was said of these topics but how much was remembered."""
    rows = {
        part: [
            {name: value for name, value in row.items() if not name.endswith("_remembered")}
            for row in rows
            if row["topic"] in topics
        ]
        for part, rows in audited.rows.items()
    }
    return rows, {place: why for place, why in audited.untold.items() if place.topic in topics}


def test_what_is_kept_of_both_logs_changes_no_finding(
    everything: Everything, planted: list[Planted], pairs: dict[tuple[str, int], Pair]
) -> None:
    """All of some logs, and a part of others."""
    kept = {
        of_log: chain[: 1 + number % 5 * len(chain) // 4]
        for number, (of_log, chain) in enumerate(_links(pairs).items())
        if len(chain)
    }
    remembering, topics = audit_with_backlogs(planted, kept), {topic for topic, _ in pairs}
    assert _said(remembering, topics) == _said(everything.audited, topics)
    assert everything.faults.expected.items() <= remembering.findings.items()
    known = sum(stop - start for start, stop in map(Chain.span, kept.values()))
    read_by_all = sum(everything.audited.first[topic] for topic in topics)
    assert read_by_all - remembering.first.total() == known > 0
    assert (
        sum(
            row[f"{side.value}_remembered"]
            for row in remembering.summary.values()
            for side in SIDES
        )
        == known
    )


@pytest.fixture(scope="module")
def longest(
    pairs: dict[tuple[str, int], Pair],
) -> tuple[dict[tuple[str, int], Pair], Side, Chain]:
    """One partition alone, the side of its log of most links, and those."""
    (side, place), chain = max(_links(pairs).items(), key=lambda one: len(one[1]))
    return {place: pairs[place]}, side, chain


def _alone(pairs: dict[tuple[str, int], Pair], kept: Kept = NOTHING_KEPT) -> Audited:
    return audit([Planted(pairs)], kept=kept)


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
    place = (side, TopicPartition(topic, partition))
    try:
        remembering, reading = _alone(pairs, {place: kept}), _alone(pairs)
    finally:
        log.start = before
    assert _said(remembering, {topic}) == _said(reading, {topic})


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
            _alone(pairs, {(side, TopicPartition(*place)): chain[:1]})
    finally:
        log.batches[:] = batches

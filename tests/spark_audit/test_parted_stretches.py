"""Logs of which a cleaner, or retention, takes records between two stretches of one reading."""

from collections.abc import Callable, Iterator
from itertools import islice

import pytest

from spark_audit.evidence.chain import Chain
from spark_audit.evidence.links import Link, chained
from spark_audit.flow_audit import NOTHING_KEPT, FlowResult, Kept, audit_flow
from spark_audit.result.coverage import Share, coverage
from spark_audit.scan import digests, scan_plan
from spark_audit.scan.scan_plan import ScanTask
from spark_audit.scan.scan_rows import ScanRow
from spark_audit.snapshot.side import Side
from tests.spark_audit import logs
from tests.spark_audit.audits import planner_of
from tests.spark_audit.logs import Log, MemoryReader, Pair, Pairs, read, snapshot_of
from wire.topic_partition import TopicPartition

PLACE = ("t", 0)
RECORDS, KEYS = 60, 3
STRETCH = 7
SIDES = (Side.SOURCE, Side.TARGET)
BOTH = pytest.mark.parametrize("side", [Side.SOURCE, Side.TARGET])


@pytest.fixture(autouse=True)
def _short_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan_plan, "RANGE_SPLIT_OFFSETS", STRETCH)
    monkeypatch.setattr(digests, "_CUT_BELOW", b"\x40" + bytes(15))


@BOTH
def test_a_cleaner_between_two_stretches_of_a_log_leaves_no_offset_unread(side: Side) -> None:
    def clean(log: Log) -> None:
        """Take three of four records that later ones of their keys supersede."""
        log.batches = [one for one in log.batches if one[0] % 4 == 0 or one[0] > RECORDS - KEYS]

    tasks: list[ScanTask] = []
    for start in range(STRETCH, RECORDS, STRETCH):
        pair = _mirrored()
        pair.source.is_compacted = pair.target.is_compacted = True
        _assert_clean(_audited(pair, side, start, clean, tasks))
    assert any(task.stop - task.start == RECORDS for task in tasks), "one was read again in one go"


@BOTH
def test_retention_between_two_stretches_of_a_log_leaves_no_offset_unread(side: Side) -> None:
    for pair, take in _aged():
        _assert_clean(_audited(pair, side, STRETCH, take, []))


@BOTH
@pytest.mark.parametrize("kept_of", [(Side.SOURCE,), (Side.TARGET,), SIDES])
def test_retention_beside_what_is_remembered_leaves_no_offset_unread(
    side: Side, kept_of: tuple[Side, ...]
) -> None:
    """What is remembered begins behind five stretches, and the log's end is not."""
    remembered: set[int] = set()
    for pair, take in islice(_aged(), 0, None, 4):
        links = [one for one in _links(pair) if one.start > 5 * STRETCH]
        kept = {(of, TopicPartition(*PLACE)): Chain.of(links[:-1]) for of in kept_of}
        result = _audited(pair, side, STRETCH, take, [], kept=kept)
        _assert_clean(result)
        remembered |= {result.summary[0][f"{of.value}_remembered"] for of in kept_of}
    assert max(remembered) == links[-1].start - links[0].start
    assert min(remembered) == 0, "all is read again where need be"


def _links(pair: Pair) -> list[Link]:
    snapshot = snapshot_of({PLACE: pair})
    [task] = planner_of(snapshot).in_one([(snapshot.partitions[0], Side.SOURCE, 0, RECORDS)])
    return chained(0, read({PLACE: pair}, task))


def _aged() -> Iterator[tuple[Pair, Callable[[Log], None]]]:
    """Yield mirrored logs, and what takes more of the beginning of one each time."""

    def taking(start: int) -> Callable[[Log], None]:
        def take(log: Log) -> None:
            log.start = start
            log.batches = [one for one in log.batches if one[0] > start]

        return take

    for start in range(1, RECORDS - 1):
        yield _mirrored(), taking(start)


def _mirrored() -> Pair:
    pair = Pair()
    for number in range(RECORDS):
        pair.mirror(f"key {number % KEYS}@{number}")
    return pair


def _audited(
    pair: Pair,
    side: Side,
    start: int,
    take: Callable[[Log], None],
    tasks: list[ScanTask],
    kept: Kept = NOTHING_KEPT,
) -> FlowResult:
    """Audit logs of which one loses records before its stretch from this offset is read."""

    def taken_before(pairs: Pairs, task: ScanTask) -> list[ScanRow]:
        tasks.append(task)
        if (task.log.side, task.start) == (side, start):
            take(pair.source if side is Side.SOURCE else pair.target)
        return read(pairs, task)

    snapshot = snapshot_of({PLACE: pair})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logs, "read", taken_before)
        return audit_flow(MemoryReader({PLACE: pair}), snapshot, planner_of(snapshot), kept=kept)


def _assert_clean(result: FlowResult) -> None:
    [row] = result.summary
    assert result.findings == []
    assert [coverage(row, one)[Share.NOT_COMPARED] for one in ("source", "target")] == [0, 0]

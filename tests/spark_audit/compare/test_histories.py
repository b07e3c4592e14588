"""Audits of random histories, all but Spark, against a plain comparison of two lists."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_audit.compare.arrow_steps import ALIGNMENT_INPUT, ORIGINAL, align_partition, find_windows
from spark_audit.compare.outcomes import FINDINGS, Kind
from spark_audit.scan import digests, scan_plan
from spark_audit.scan.scan_plan import Planner, ScanTask
from spark_audit.scan.scan_rows import ARROW_SCAN, RowKind, arrow_batches
from spark_audit.scan.windows import Window
from spark_audit.snapshot.origins import Brought
from spark_audit.snapshot.side import Side
from tests.spark_audit.logs import Log, Pair, read, snapshot_of

PLACE = ("t", 0)
KEY = [pa.scalar("t"), pa.scalar(0)]
Row: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to the record at `place` (modulo the length) of what a mirror writes."""

    kind: Kind
    place: int
    to: int = 0


faults = st.builds(
    Fault,
    st.sampled_from([Kind.LOST, Kind.DUPLICATED, Kind.REORDERED, Kind.ALTERED, Kind.PHANTOM]),
    st.integers(0, 40),
    st.integers(0, 40),
)


def _disturbed(mirrored: Sequence[str], planted: Sequence[Fault]) -> list[str]:
    target = list(mirrored)
    for number, fault in enumerate(planted):
        place, to = (fault.place % (len(target) or 1), fault.to % (len(target) + 1))
        match fault.kind:
            case Kind.PHANTOM:
                target.insert(to, f"phantom {number}")
            case _ if not target:
                pass
            case Kind.LOST:
                del target[place]
            case Kind.DUPLICATED:
                target.insert(to, target[place])
            case Kind.REORDERED:
                moved = target.pop(place)
                target.insert(to % (len(target) + 1), moved)
            case Kind.ALTERED:
                target[place] += ":altered"
            case _:
                raise AssertionError(fault.kind)
    return target


def _append(log: Log, contents: Sequence[str], sizes: Sequence[int], producer_id: int = -1) -> None:
    """Write batches of these sizes, over and over; a size of 0 leaves a gap."""
    rest, turn = list(contents), 0
    while rest:
        size = sizes[turn % len(sizes)]
        if size == 0:
            log.skip(1)
        else:
            log.append(*rest[:size], producer_id=producer_id)
        rest, turn = rest[size:], turn + 1


def _offsets(pair: Pair) -> list[int]:
    """Return the offsets of the source's records."""
    rows = _of_kind(_scanned(pair, _planner(pair).sources([PLACE])), RowKind.RECORD)
    offsets: list[int] = rows.column("start_offset").to_pylist()
    return offsets


def _planner(pair: Pair) -> Planner:
    return Planner(snapshot_of({PLACE: pair}), {"dc1": (), "dc2": ()})


def _scanned(pair: Pair, tasks: Sequence[ScanTask]) -> pa.Table:
    batches = [
        batch for task in tasks for batch in arrow_batches(task.log, read({PLACE: pair}, task))
    ]
    return pa.Table.from_batches(batches, schema=ARROW_SCAN)


def _of_kind(table: pa.Table, kind: RowKind) -> pa.Table:
    return pa.Table.from_pylist(
        [row for row in table.to_pylist() if row["kind"] == kind.value], schema=ARROW_SCAN
    )


def _audited(pair: Pair) -> list[Row]:
    """Return the outcomes, by the steps of `flow_audit` in their order."""
    planner = _planner(pair)
    ranges = _of_kind(_scanned(pair, planner.ranges()), RowKind.RANGE)
    windows = find_windows(KEY, ranges).to_pylist()
    if not windows:
        return []
    edges = {row["window"]: _edges(row) for row in windows}
    named = [
        (*PLACE, row["window"], Window(*(row[name] for name in Window._fields))) for row in windows
    ]
    records = _of_kind(_scanned(pair, planner.records(named)), RowKind.RECORD).to_pylist()
    whole = _of_kind(_scanned(pair, planner.sources([PLACE])), RowKind.RECORD).to_pylist()
    rows = [{**row, **edges[row["window"]]} for row in records]
    rows.extend(_originals(records, whole))
    table = pa.table({name: [row.get(name) for row in rows] for name in ALIGNMENT_INPUT})
    outcomes: list[Row] = align_partition(KEY, table).to_pylist()
    return outcomes


def _edges(window: Row) -> Row:
    return {
        "source_after": window["source_start"] - 1,
        "source_before": window["source_stop"],
        "target_after": window["target_start"] - 1,
        "target_before": window["target_stop"],
        "is_last": window["is_last"],
        "is_compacted": False,
        "is_cut": False,
        "source_begin": 0,
    }


def _originals(records: Sequence[Row], whole: Sequence[Row]) -> Iterator[dict[str, Any]]:
    on_source = {row["digest"] for row in records if row["side"] == Side.SOURCE.value}
    strange = {row["digest"] for row in records} - on_source
    for row in whole:
        if row["digest"] in strange:
            strange.discard(row["digest"])
            yield {**row, "side": ORIGINAL}


@pytest.fixture(autouse=True, scope="module")
def _short_ranges() -> Iterator[None]:
    """Cut behind every fourth record, and split logs in the middle of all that."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(digests, "_CUT_BELOW", b"\x40" + bytes(15))
        patch.setattr(digests, "MAX_RANGE_RECORDS", 6)
        patch.setattr(scan_plan, "RANGE_SPLIT_OFFSETS", 7)
        patch.setattr(scan_plan, "RECORD_SPLIT_OFFSETS", 4)
        yield


contents = st.lists(st.sampled_from("abc") | st.integers(0, 300).map(str), max_size=40)
sizes = st.lists(st.integers(0, 5), min_size=1, max_size=4).filter(any)


@given(contents, st.integers(0, 40), st.lists(faults, max_size=3), sizes, sizes)
def test_an_audit_says_of_a_history_what_a_comparison_of_lists_says(
    source: list[str],
    unmirrored: int,
    planted: list[Fault],
    source_sizes: list[int],
    target_sizes: list[int],
) -> None:
    target = _disturbed(source[: max(0, len(source) - unmirrored)], planted)
    pair = Pair()
    _append(pair.source, source, source_sizes)
    _append(pair.target, target, target_sizes)
    outcomes = _audited(pair)
    kinds = Counter(Kind(row["kind"]) for row in outcomes)
    is_only_behind = source[: len(target)] == target
    assert bool(kinds.keys() & set(FINDINGS)) != is_only_behind
    missing, surplus = Counter(source) - Counter(target), Counter(target) - Counter(source)
    assert kinds[Kind.LOST] + kinds[Kind.IN_FLIGHT] + kinds[Kind.ALTERED] == missing.total()
    assert kinds[Kind.DUPLICATED] + kinds[Kind.PHANTOM] + kinds[Kind.ALTERED] == surplus.total()
    in_flight = {row["source_offset"] for row in outcomes if row["kind"] == Kind.IN_FLIGHT.value}
    behind = range(min(in_flight, default=pair.source.stop), pair.source.stop)
    assert [offset for offset in _offsets(pair) if offset in behind] == sorted(in_flight)


DC1_MIRROR, DC2_MIRROR = 11, 22
"""The producer ids of the mirrors out of these sites."""
turns = st.lists(st.tuples(st.booleans(), contents), max_size=5)


@given(turns, st.lists(faults, max_size=2), st.integers(0, 9), sizes, sizes)
def test_of_sites_that_took_turns_each_direction_is_told_by_its_own_records(
    taken: list[tuple[bool, list[str]]],
    planted: list[Fault],
    unmirrored: int,
    source_sizes: list[int],
    target_sizes: list[int],
) -> None:
    """Whatever happens to what one direction brings, the other one is as it was."""
    forth = Pair(
        to_source=Brought(producer_ids=frozenset({DC2_MIRROR})),
        to_target=Brought(producer_ids=frozenset({DC1_MIRROR})),
    )
    dc1, dc2 = forth.source, forth.target
    expected: list[str] = []
    arrived: list[str] = []
    for number, (is_of_dc1, written) in enumerate(taken):
        if is_of_dc1:
            is_last = not any(later for later, _ in taken[number + 1 :])
            kept = written[: max(0, len(written) - unmirrored)] if is_last else written
            brought = _disturbed(kept, planted)
            _append(dc1, written, source_sizes)
            _append(dc2, brought, target_sizes, DC1_MIRROR)
            expected += written
            arrived += brought
        else:
            _append(dc2, written, target_sizes)
            _append(dc1, written, source_sizes, DC2_MIRROR)
    back = Pair(source=dc2, target=dc1, to_source=forth.to_target, to_target=forth.to_source)
    assert _audited(back) == []
    kinds = Counter(Kind(row["kind"]) for row in _audited(forth))
    assert bool(kinds.keys() & set(FINDINGS)) != (expected[: len(arrived)] == arrived)
    missing, surplus = Counter(expected) - Counter(arrived), Counter(arrived) - Counter(expected)
    assert kinds[Kind.LOST] + kinds[Kind.IN_FLIGHT] + kinds[Kind.ALTERED] == missing.total()
    assert kinds[Kind.DUPLICATED] + kinds[Kind.PHANTOM] + kinds[Kind.ALTERED] == surplus.total()

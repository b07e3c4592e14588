"""Audits of random histories, all but Spark, against a plain comparison of two lists."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_audit import flow_audit
from spark_audit.compare.outcomes import FINDINGS, Kind
from spark_audit.flow_audit import audit_flow
from spark_audit.result.coverage import Share, coverage
from spark_audit.scan import digests, scan_plan
from spark_audit.scan.scan_plan import Planner
from spark_audit.snapshot.origins import Brought
from tests.spark_audit.logs import Log, MemoryReader, Pair, snapshot_of

PLACE = ("t", 0)


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


def _audited(pair: Pair) -> tuple[Counter[Kind], dict[str, Any]]:
    """Return how many records there are of each kind, and the partition's row."""
    snapshot = snapshot_of({PLACE: pair})
    planner = Planner(snapshot, {"dc1": (), "dc2": ()})
    (row,) = audit_flow(MemoryReader({PLACE: pair}), snapshot, planner).summary
    kinds: Counter[Kind] = Counter()
    kinds.update({kind: row[kind.column] for kind in Kind if kind is not Kind.HOLE})
    return +kinds, dict(row)


@pytest.fixture(autouse=True, scope="module")
def _short_ranges() -> Iterator[None]:
    """Cut behind every fourth record, and split logs in the middle of all that."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(digests, "_CUT_BELOW", b"\x40" + bytes(15))
        patch.setattr(digests, "MAX_RANGE_RECORDS", 6)
        patch.setattr(scan_plan, "RANGE_SPLIT_OFFSETS", 7)
        patch.setattr(flow_audit, "LONG_RECORDS", 12)
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
    kinds, row = _audited(pair)
    is_only_behind = source[: len(target)] == target
    assert bool(kinds.keys() & set(FINDINGS)) != is_only_behind
    missing, surplus = Counter(source) - Counter(target), Counter(target) - Counter(source)
    assert kinds[Kind.LOST] + kinds[Kind.IN_FLIGHT] + kinds[Kind.ALTERED] == missing.total()
    assert kinds[Kind.DUPLICATED] + kinds[Kind.PHANTOM] + kinds[Kind.ALTERED] == surplus.total()
    assert (row["source_records"], row["target_records"]) == (len(source), len(target))
    for side in ("source", "target"):
        shares = coverage(row, side)
        assert sum(shares.values()) == row[f"{side}_stop"] - row[f"{side}_start"]
        assert not shares[Share.NOT_COMPARED]
    assert coverage(row, "source")[Share.IN_FLIGHT] == kinds[Kind.IN_FLIGHT]


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
    assert not _audited(back)[0]
    kinds, row = _audited(forth)
    for side in ("source", "target"):
        shares = coverage(row, side)
        assert sum(shares.values()) == row[f"{side}_stop"] - row[f"{side}_start"]
        assert not shares[Share.NOT_COMPARED]
    assert bool(kinds.keys() & set(FINDINGS)) != (expected[: len(arrived)] == arrived)
    missing, surplus = Counter(expected) - Counter(arrived), Counter(arrived) - Counter(expected)
    assert kinds[Kind.LOST] + kinds[Kind.IN_FLIGHT] + kinds[Kind.ALTERED] == missing.total()
    assert kinds[Kind.DUPLICATED] + kinds[Kind.PHANTOM] + kinds[Kind.ALTERED] == surplus.total()

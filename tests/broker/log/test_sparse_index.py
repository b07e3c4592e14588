"""A sparse index finds what a search through its entries finds, wherever they are kept."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.log.sparse_index import SparseIndex, offset_index, time_index
from tests.broker.log.logs import log_folder
from tests.properties import examples

STEPS = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), max_size=40)


def entries_of(steps: list[tuple[int, int]]) -> list[tuple[int, int]]:
    found, first, second = [], 0, 0
    for more, further in steps:
        first, second = first + more, second + further
        found.append((first, second))
    return found


def check(index: SparseIndex, entries: list[tuple[int, int]]) -> None:
    assert list(index) == entries
    assert len(index) == len(entries)
    assert [index[slot] for slot in range(len(entries))] == entries
    assert index.last == (entries[-1] if entries else None)
    for column in (0, 1):
        highest = entries[-1][column] if entries else 0
        for target in range(highest + 2):
            below = [entry for entry in entries if entry[column] <= target]
            assert index.floor(column, target) == (below[-1] if below else None)


@settings(max_examples=examples(15))
@given(stored=STEPS, pending=STEPS, cut=st.integers(0, 80), by=st.integers(0, 1))
def test_lookups_equal_a_linear_search(
    stored: list[tuple[int, int]], pending: list[tuple[int, int]], cut: int, by: int
) -> None:
    entries = entries_of(stored + pending)
    for make in (offset_index, time_index):
        with log_folder() as folder:
            index = make(folder / "i")
            for entry in entries[: len(stored)]:
                index.append(entry)
            index.spill()
            for entry in entries[len(stored) :]:
                index.append(entry)
            check(index, entries)
            kept = [entry for entry in entries if entry[by] < cut]
            index.keep_below(by, cut)
            check(index, kept)
            index.append((1000, 1000))
            index.spill()
            check(make(folder / "i"), [*kept, (1000, 1000)])


def test_many_entries_are_found_without_reading_them_all(tmp_path: Path) -> None:
    index = offset_index(tmp_path / "i")
    for number in range(1, 20_001):
        index.append((3 * number, 7 * number))
    for target in (0, 2, 3, 4, 29_999, 30_000, 59_999, 60_000, 70_000):
        slot = min(target // 3, 20_000)
        assert index.floor(0, target) == ((3 * slot, 7 * slot) if slot else None)
    assert offset_index(tmp_path / "i").last is not None


@pytest.mark.parametrize("zeros", [8, 80, 8_000])
@pytest.mark.parametrize("count", [0, 1, 5, 700])
def test_a_preallocated_tail_of_zeros_is_trimmed(tmp_path: Path, count: int, zeros: int) -> None:
    entries = [(slot + 1, slot + 1) for slot in range(count)]
    index = offset_index(tmp_path / "i")
    for entry in entries:
        index.append(entry)
    index.spill()
    with (tmp_path / "i").open("ab") as file:
        file.write(bytes(zeros))
    again = offset_index(tmp_path / "i")
    assert list(again) == entries
    assert (tmp_path / "i").stat().st_size == 8 * count
    assert not again.torn


def test_a_file_that_ends_inside_an_entry_is_told(tmp_path: Path) -> None:
    (tmp_path / "i").write_bytes(bytes(range(1, 14)))
    index = offset_index(tmp_path / "i")
    assert index.torn
    assert len(index) == 1

"""Each difference between source and target that is planted is found and named."""

from tests.drill.checker import Offence
from tests.drill.mirrored import compare, compare_compacted

SOURCE = {"t-0": {number: f"c{number}" for number in range(10)}, "t-1": {5: "a", 8: "b"}}


def changed(contents: list[str]) -> list[tuple[str, int]]:
    target = {"t-0": dict(enumerate(contents)), "t-1": {0: "a", 1: "b"}}
    return [(offence.kind, offence.offset) for offence in compare(SOURCE, target)]


def all_but(*left_out: int) -> list[str]:
    return [f"c{number}" for number in range(10) if number not in left_out]


def test_the_same_records_in_order_are_no_offence_whatever_their_offsets() -> None:
    assert changed(all_but()) == []


def test_a_lost_record_is_found() -> None:
    assert changed(all_but(4)) == [("LOST", 4)]
    assert changed(all_but(9)) == [("LOST", 9)]


def test_a_duplicate_is_found() -> None:
    assert changed([*all_but(), "c3"]) == [("DUPLICATE", 10)]


def test_a_record_out_of_order_is_found() -> None:
    assert changed([*all_but(2), "c2"]) == [("REORDERED", 9)]


def test_a_record_of_nobody_is_found() -> None:
    assert changed([*all_but(), "x"]) == [("PHANTOM", 10)]


def test_an_altered_record_is_found() -> None:
    altered = all_but()
    altered[3] = "garbled c3"
    assert changed(altered) == [("LOST", 3), ("PHANTOM", 3)]


def test_a_log_that_is_missing_is_found() -> None:
    assert Offence("LOST", "t-1", 8, "b is not on the target") in compare(SOURCE, {"t-0": {}})


WRITTEN = {"t-0": {number: f"c{number} k{number % 3}" for number in range(9)}}
LEFT = {"t-0": {number: f"c{number} k{number % 3}" for number in (4, 6, 7, 8)}}
"""c4, 6, 7 and 8: the cleaner has not got to c4 yet."""


def compacted(*numbers: int, more: tuple[str, ...] = ()) -> list[tuple[str, int]]:
    contents = [*(f"c{number} k{number % 3}" for number in numbers), *more]
    found = compare_compacted(LEFT, {"t-0": dict(enumerate(contents))}, WRITTEN)
    return [(offence.kind, offence.offset) for offence in found]


def test_a_compacted_source_is_mirrored_with_or_without_what_has_gone_from_it() -> None:
    assert compacted(0, 1, 2, 3, 4, 5, 6, 7, 8) == []
    assert compacted(4, 6, 7, 8) == []
    assert compacted(1, 3, 4, 6, 7, 8) == []


def test_what_a_compacted_source_still_has_must_not_be_lost() -> None:
    assert compacted(0, 1, 2, 6, 7, 8) == [("LOST", 4)]
    assert compacted(4, 6, 7) == [("LOST", 8)]


def test_a_duplicate_of_a_compacted_source_is_found_even_if_the_source_has_it_no_longer() -> None:
    assert compacted(1, 3, 4, 6, 7, 8, 3) == [("DUPLICATE", 6)]
    assert compacted(4, 6, 7, 8, 8) == [("DUPLICATE", 4)]


def test_records_of_a_compacted_source_out_of_order_are_found_even_if_it_has_them_no_longer() -> (
    None
):
    assert compacted(3, 1, 4, 6, 7, 8) == [("REORDERED", 1)]
    assert compacted(4, 6, 7, 8, 5) == [("REORDERED", 4)]


def test_a_record_that_a_compacted_source_never_had_is_found() -> None:
    assert compacted(4, 6, 7, 8, more=("x k9",)) == [("PHANTOM", 4)]


def test_a_record_of_an_unknown_offset_counts_where_a_later_one_has_its_key() -> None:
    assert compacted(4, 6, 7, 8, more=("unacknowledged k1",)) == []

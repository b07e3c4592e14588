"""Each difference between source and target that is planted is found and named."""

from tests.drill.checker import Offence
from tests.drill.mirrored import compare

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

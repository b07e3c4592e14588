"""Tables: columns as wide as they must be, numbers at the right edge, names kept in their line."""

import pytest

from runtime.program.table import duration, table_of

TITLES = {"name": "NAME", "count": "COUNT", "flag": "FLAG", "parts": "PARTS"}


def row(name: str, count: int | None, *parts: int) -> dict[str, object]:
    return {"name": name, "count": count, "flag": bool(parts), "parts": list(parts), "more": 1}


def test_numbers_stand_at_the_right_edge_and_everything_else_at_the_left() -> None:
    assert list(table_of([row("a", 5, 1, 2), row("longer", 1_234)], TITLES).lines()) == [
        "NAME    COUNT  FLAG  PARTS",
        "a           5  yes   1,2",
        "longer   1234  no    -",
    ]


def test_what_is_not_known_is_no_number_and_stays_in_its_column() -> None:
    assert list(table_of([row("a", None)], TITLES).lines())[1] == "a         ?  no    -"
    assert list(table_of([row("a", None)], TITLES, none="-").lines())[1] == "a         -  no    -"


def test_a_name_from_outside_stays_in_its_line_and_its_column() -> None:
    _, shown = table_of([row("a\x1b[2Jb\nc", 1)], TITLES).lines()
    assert shown.startswith("a\\x1b[2Jb\\nc      1")


def test_no_records_make_no_table() -> None:
    assert list(table_of([], TITLES).lines()) == []


@pytest.mark.parametrize(
    ("value", "shown"), [(2e6, "2000000"), (0.5, "0.5"), (1e15, "1" + "0" * 15)]
)
def test_rates_are_told_without_exponents(value: float, shown: str) -> None:
    assert list(table_of([{"rate": value}], {"rate": "R"}).lines())[1] == shown


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (-5, "0 s"),
        (0, "0 s"),
        (1_240, "1.2 s"),
        (59_999, "59 s"),
        (184_000, "3 m 4 s"),
        (7_800_000, "2 h 10 m"),
        (442_800_000, "5 d 3 h"),
    ],
)
def test_durations_are_told_in_two_units(milliseconds: int, text: str) -> None:
    assert duration(milliseconds) == text

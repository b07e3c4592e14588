"""What a run of the interop tests comes to, and what the quick one leaves out."""

from pathlib import Path
from typing import Final

import pytest

from tests.interop import compatibility
from tests.interop.__main__ import BROKEN, NOT_TOLD, SHOWN, told, verdict
from tests.interop.matrix import FAILED, PASSED, Row, read_rows, write_rows
from tests.interop.peers import PeerFailed, PeerLost, why_not_run
from tests.interop.selection import QUICK_CASES, QUICK_FILES, QUICK_PAIR, is_quick
from tests.interop.sites import PAIRS

HERE: Final = Path(__file__).parent


def row(outcome: str) -> Row:
    return Row(subject="s", behaviour="b", against="p", outcome=outcome)


def row_of(behaviour: str) -> Row:
    return Row(subject="s", behaviour=behaviour, against="p", outcome=PASSED)


UNKNOWN: Final = row("not run: no registry")


def test_the_page_of_files_that_were_run_one_by_one_has_the_rows_of_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    write_rows([row(FAILED), row_of("other")], first)
    write_rows([row(PASSED)], second)
    monkeypatch.setattr(compatibility, "PAGE", tmp_path / "page.md")
    assert compatibility.main([first, second, tmp_path / "away.json"]) == 0
    assert "Rows: 2 yes, 0 differs, 0 FAILED" in (tmp_path / "page.md").read_text()
    assert compatibility.main([tmp_path / "away.json"]) == compatibility.NO_RUN


def test_a_run_of_several_days_says_so() -> None:
    assert compatibility.days([0.0, 60.0]) == "1970-01-01"
    assert compatibility.days([200_000.0, 0.0]) == "1970-01-01 to 1970-01-03"


@pytest.mark.parametrize(
    ("pytest_status", "rows", "status"),
    [
        (0, [row(PASSED), row("n/a: x"), row("differs: y")], SHOWN),
        (0, [row(PASSED), UNKNOWN], NOT_TOLD),
        (1, [row(PASSED), UNKNOWN], BROKEN),
        (2, [row(PASSED)], BROKEN),
        (0, [], BROKEN),
        (5, [], BROKEN),
    ],
)
def test_a_failure_weighs_more_than_what_is_unknown(
    pytest_status: int, rows: list[Row], status: int
) -> None:
    assert verdict(pytest_status, rows) == status


def test_a_peer_that_never_came_up_is_no_failure_and_one_that_was_lost_is() -> None:
    failed, lost = PeerFailed("no port"), PeerLost("no log")
    assert why_not_run(failed) is failed
    assert why_not_run(ExceptionGroup("a nursery", [failed])) is failed
    assert why_not_run(lost) is None
    assert why_not_run(ExceptionGroup("a nursery", [lost])) is None
    assert why_not_run(AssertionError()) is None
    assert why_not_run(None) is None


def test_every_reason_is_told_once_with_its_rows() -> None:
    assert told([UNKNOWN, row(PASSED), UNKNOWN, row("not run: no Go")]) == [
        "not run: no Go (1 rows)",
        "not run: no registry (2 rows)",
    ]


def test_rows_are_read_back_as_they_were_written(tmp_path: Path) -> None:
    write_rows([UNKNOWN, row(PASSED)], tmp_path / "build" / "rows.json")
    assert read_rows(tmp_path / "build" / "rows.json") == [UNKNOWN, row(PASSED)]


def test_the_quick_selection_names_files_tests_and_a_pair_that_exist() -> None:
    assert all((HERE / file).exists() for file in QUICK_FILES)
    assert QUICK_PAIR in PAIRS
    for file, tests in QUICK_CASES.items():
        assert all(f"def {test}(" in (HERE / file).read_text() for test in tests)
        assert all(is_quick(file, test, {"sites": QUICK_PAIR}) for test in tests)
        assert not any(is_quick(file, test, {"sites": PAIRS[0]}) for test in tests)

"""Pages: plain for whatever is no terminal, and fitted to a terminal, whatever names hold."""

import os
import pty
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from runtime.program.page import page_text
from runtime.program.table import Table
from runtime.program.terminal_page import fitted, shortened, terminal_text
from tests.terminals import shown_by

CHECKOUT = Path(__file__).parents[3]
HOSTILE = ("\x1b[2J\x9b1A", "a\nb", "\u202egnp", "[red]x[/red]", ":smile:", "x" * 249)
TABLE = Table(
    head=("TOPIC", "SOURCE END", "REASON"),
    rows=[(name, "9876543210", "because of this and that, and much more") for name in HOSTILE],
    left={"TOPIC", "REASON"},
    indent="  ",
    marked={0},
)
SCRIPT = """
import sys
from runtime.program.page import show_page
from runtime.program.table import Table
show_page(["a line", Table(head=("NAME", "N"), rows=[("x", "1")], left={"NAME"}, marked={0})])
print("rich" in sys.modules)
"""


def shown_on_a_terminal(**environment: str) -> str:
    """Return what the script prints where its standard output is a terminal."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    variables = {**os.environ, "TERM": "xterm-256color", **environment}
    subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=CHECKOUT, stdout=theirs, env=variables, check=True
    )
    os.close(theirs)
    return shown_by(ours)


def test_a_terminal_gets_its_tables_by_rich_and_a_dumb_one_plain_lines() -> None:
    assert shown_on_a_terminal() == (
        "a line\n\x1b[1mNAME\x1b[0m\x1b[1m  \x1b[0m\x1b[1mN\x1b[0m\n\x1b[1mx   \x1b[0m"
        "\x1b[1m  \x1b[0m\x1b[1m1\x1b[0m\nTrue\n"
    )
    assert shown_on_a_terminal(TERM="dumb") == "a line\nNAME  N\nx     1\nFalse\n"


def test_a_pipe_gets_a_line_for_each_row_without_rich() -> None:
    piped = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=CHECKOUT, capture_output=True, check=True
    )
    assert piped.stdout == b"a line\nNAME  N\nx     1\nFalse\n"


@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_name_breaks_out_of_its_table_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = terminal_text([TABLE]).split("\n")
    assert all(line.isprintable() and len(line) <= width for line in lines)
    text = "".join(lines)
    assert "[red]x[/red]" in text
    assert ":smile:" in text
    assert text.count("9876543210") == len(HOSTILE)
    assert "x" * 61 not in text


def test_a_long_name_moves_only_what_stands_behind_it_in_its_own_line() -> None:
    table = Table(head=("GROUP", "N"), rows=[("g" * 9_000, "1"), ("a", "2")], left={"GROUP"})
    lines = page_text([table]).splitlines()
    assert [len(line) for line in lines] == [252, 9_003, 252]


def test_columns_that_can_give_way_do_and_the_widest_first() -> None:
    assert fitted([10, 40, 30], [10, 8, 8], 60) == [10, 25, 25]
    assert fitted([10, 40], [10, 16], 5) == [10, 16]
    assert fitted([3, 4], [3, 4], 80) == [3, 4]


def test_what_is_too_long_for_a_terminal_is_cut_in_its_middle() -> None:
    assert shortened("a" * 60) == "a" * 60
    assert shortened("begin" + "a" * 240 + "end").startswith("begin")
    assert len(shortened("a" * 249)) == 59


def test_a_narrow_terminal_does_without_what_can_be_spared(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table(
        head=("NAME", "SPARED", "KEPT"), rows=[("n" * 10, "1" * 9, "2" * 9)], left={"NAME"},
        spare=("SPARED",),
    )  # fmt: skip
    monkeypatch.setenv("COLUMNS", "40")
    assert "SPARED" in terminal_text([table])
    monkeypatch.setenv("COLUMNS", "30")
    assert terminal_text([table]).split() == ["NAME", "KEPT", "n" * 10, "2" * 9]

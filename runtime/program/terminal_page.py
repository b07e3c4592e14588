"""Pages on a terminal, by Rich: tables as wide as the terminal, and pages that are shown anew.

NO_COLOR takes the styles away, as Rich has it. What a name from outside holds is text: no markup of
Rich's, no control character.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from rich.cells import cell_len
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table as RichTable
from rich.text import Text

from runtime.process.output import escaped
from runtime.program.page import Part
from runtime.program.table import Table
from wire.values import frozen

GAP: Final = 2
"""Columns between two columns of a table."""
LEAST_TEXT: Final = 12
"""A column of text is not made narrower than this."""
LONGEST_NAME: Final = 60
LONGEST_TEXT: Final = 400


def terminal_text(parts: Iterable[Part]) -> str:
    """Return a page as this terminal shows it."""
    console = _console()
    with console.capture() as captured:
        for part in parts:
            console.print(_renderable(part, console.width), soft_wrap=isinstance(part, str))
    return captured.get()


@contextmanager
def live_page() -> Iterator[Callable[[Iterable[Part]], None]]:
    """Give a function that shows a page in place of the one before; the screen is restored then.

    What does not fit on the screen is cut off at its lower edge.
    """
    console = _console()
    with Live(
        console=console,
        screen=True,
        auto_refresh=False,
        redirect_stdout=False,
        redirect_stderr=False,
    ) as live:

        def show(parts: Iterable[Part]) -> None:
            found = [_renderable(part, console.width) for part in parts]
            live.update(Group(*found), refresh=True)

        yield show


def _console() -> Console:
    return Console(file=sys.stdout, markup=False, highlight=False, emoji=False)


def _renderable(part: Part, width: int) -> Text | RichTable:
    return Text(escaped(part)) if isinstance(part, str) else _table(part, width)


def _table(table: Table, width: int) -> RichTable:
    cells = [[shortened(escaped(cell)) for cell in row] for row in table.rows]
    table = replace(table, rows=cells)
    columns = _columns(table)
    for title in table.spare:
        if sum(column.least + GAP for column in columns) <= width:
            break
        table = table.without(title)
        columns = _columns(table)
    widths = fitted(
        [column.natural for column in columns],
        [column.least for column in columns],
        width - GAP * len(columns),
    )
    shown = RichTable(box=None, pad_edge=bool(table.indent), padding=(0, 0, 0, GAP))
    for title, of_column in zip(table.head, widths, strict=True):
        side = "left" if title in table.left else "right"
        shown.add_column(Text(title), width=of_column, justify=side, overflow="fold")  # type: ignore[arg-type]
    for number, row in enumerate(table.rows):
        style = "bold" if number in table.marked else None
        shown.add_row(*map(Text, row), style=style)
    return shown


@frozen
class ColumnRoom:
    """How wide a column is by itself, and how narrow it may become."""

    natural: int
    least: int


def _columns(table: Table) -> list[ColumnRoom]:
    """Return the room of each column: a title breaks between words, and no number does."""
    found = []
    for title, *cells in zip(table.head, *table.rows, strict=True):
        words = max(map(cell_len, title.split()), default=0)
        longest = max(map(cell_len, cells), default=0)
        least = max(words, min(longest, LEAST_TEXT) if title in table.left else longest)
        found.append(ColumnRoom(natural=max(cell_len(title), longest), least=least))
    return found


def fitted(natural: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """Return the widths of columns that share this room: what can give way does, the widest first.

    A room too small for what all need at least is not kept.
    """
    widths = list(natural)
    while sum(widths) > room:
        able = [place for place, width in enumerate(widths) if width > least[place]]
        if not able:
            break
        widest = max(able, key=lambda place: widths[place])
        widths[widest] -= 1
    return widths


def shortened(text: str) -> str:
    """Return a name, or a sentence, cut in its middle where it would fill the terminal."""
    most = LONGEST_TEXT if " " in text else LONGEST_NAME
    if len(text) <= most:
        return text
    half = (most - 1) // 2
    return f"{text[:half]}…{text[-half:]}"

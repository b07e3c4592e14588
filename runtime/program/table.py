"""Rows as a terminal shows them: columns as wide as they must be, names from outside escaped."""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from runtime.process.output import escaped
from wire.values import frozen

UNKNOWN: Final = "?"
NOTHING: Final = "-"
MOST_PADDED: Final = 249
"""The length of the longest name of a topic; a group's may have 32,767 characters."""


@frozen
class Table:
    """Rows below their titles; columns whose titles are in `left` begin at one edge.

    `marked` are the rows, by number, that need somebody: a terminal shows them in bold. `spare` are
    the titles of columns that a narrow terminal does without, the first one first.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: Container[str]
    indent: str = ""
    marked: Container[int] = frozenset()
    spare: Sequence[str] = ()

    def lines(self) -> Iterator[str]:
        """Yield the lines for a pipe, one a row, none without rows; names from outside escaped.

        A cell beyond MOST_PADDED moves what stands behind it in its own line, and in no other.
        """
        if not self.rows:
            return
        rows = [[escaped(cell) for cell in row] for row in self.rows]
        widths = [
            min(max(map(len, column)), MOST_PADDED) for column in zip(self.head, *rows, strict=True)
        ]
        for row in (self.head, *rows):
            cells = (
                cell.ljust(width) if title in self.left else cell.rjust(width)
                for title, cell, width in zip(self.head, row, widths, strict=True)
            )
            yield f"{self.indent}{'  '.join(cells)}".rstrip()

    def without(self, title: str) -> "Table":
        """Return the table without a column."""
        place = list(self.head).index(title)
        rows = [[*row[:place], *row[place + 1 :]] for row in self.rows]
        return replace(self, head=[*self.head[:place], *self.head[place + 1 :]], rows=rows)


def table_of(
    rows: Sequence[Mapping[str, object]], titles: Mapping[str, str], *, none: str = UNKNOWN
) -> Table:
    """Return the table of records.

    `titles` names the fields that are shown, in their order. Numbers stand at the right edge, and
    `none` where a record has None.
    """
    left = {
        title
        for field, title in titles.items()
        if not all(row[field] is None or _is_number(row[field]) for row in rows)
    }
    cells = [[cell(row[field], none) for field in titles] for row in rows]
    return Table(head=tuple(titles.values()), rows=cells, left=left)


def cell(value: object, none: str = UNKNOWN) -> str:
    """Return a value as it stands in a table; unless `none` is given, None is what is not known."""
    if value is None:
        return none
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}" if abs(value) < 1e6 else f"{value:.0f}"
    if isinstance(value, list | tuple):
        return ",".join(map(cell, value)) or NOTHING
    return str(value) or NOTHING


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def duration(milliseconds: int) -> str:
    """Return a length of time in at most two units: 0 s, 1.2 s, 3 m 4 s, 2 h 10 m, 5 d 3 h."""
    if milliseconds < 10_000:
        return f"{max(0, milliseconds) / 1000:.1f} s" if milliseconds > 0 else "0 s"
    seconds = milliseconds // 1000
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} m {seconds % 60} s"
    if seconds < 86400:
        return f"{seconds // 3600} h {seconds % 3600 // 60} m"
    return f"{seconds // 86400} d {seconds % 86400 // 3600} h"

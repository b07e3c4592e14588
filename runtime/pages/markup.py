"""Pieces of HTML: names from outside as text, links, times, rows of numbers. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Final

MOST_TEXT: Final = 300
"""So many characters of one text from outside are shown: a key may be a megabyte."""
MOST_OPEN: Final = 20
"""So many lines of a list are open to see; others are folded away."""


def shown(text: str, most: int = MOST_TEXT) -> str:
    """Return a text from outside as HTML, within its line, and its beginning if it is long."""
    cut = text[:most]
    more = "" if len(text) <= most else f"... ({len(text):,} characters)"
    return escape("".join(one if one.isprintable() else f"\\x{ord(one):02x}" for one in cut) + more)


def link(docs: str, page: str, text: str) -> str:
    """Return a link to a page of the documentation at this address."""
    return f'<a href="{escape(docs.rstrip("/"))}/{page}">{shown(text)}</a>'


def moment(at_ms: int) -> str:
    """Return a time in words for people; a number of milliseconds that is none is told as it is."""
    try:
        return datetime.fromtimestamp(at_ms / 1_000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return f"{at_ms} ms since 1970"


def heads(*names: str, numbers: Sequence[str] = ()) -> str:
    """Return the first row of a table; the names in `numbers` stand above numbers."""
    cells = (
        f'<th class="number">{one}</th>' if one in numbers else f"<th>{one}</th>" for one in names
    )
    return f"<tr>{''.join(cells)}</tr>"


def numbers_of(numbers: Iterable[int | None]) -> str:
    """Return cells of a table with these numbers."""
    return "".join(
        f'<td class="number">{"-" if one is None else f"{one:,}"}</td>' for one in numbers
    )


def folded(what: str, lines: Sequence[str], *, tag: str = "ul") -> Iterator[str]:
    """Yield a list of which the first lines are open to see, and others under `what`."""
    first, rest = lines[:MOST_OPEN], lines[MOST_OPEN:]
    if first:
        yield f"<{tag}>{''.join(first)}</{tag}>"
    if rest:
        yield f"<details><summary>{len(rest):,} more {what}</summary>"
        yield f"<{tag}>{''.join(rest)}</{tag}></details>"

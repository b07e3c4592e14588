"""What a command shows: lines and tables, for a terminal as for a pipe.

A terminal gets tables that fit into its width, by Rich. A pipe, a file and a dumb terminal get
plain text, one line a row, whose columns `grep` and `awk` find again. Rich is imported for a
terminal alone.
"""

import sys
from collections.abc import Iterable
from typing import TypeAlias

from runtime.process.output import escaped, is_terminal
from runtime.program.table import Table

Part: TypeAlias = str | Table
"""A line, or a table."""


def show_page(parts: Iterable[Part]) -> None:
    """Print lines and tables on standard output at once; names from outside are escaped."""
    if is_terminal():
        from runtime.program.terminal_page import terminal_text

        text = terminal_text(parts)
    else:
        text = page_text(parts)
    sys.stdout.write(text)
    sys.stdout.flush()


def page_text(parts: Iterable[Part]) -> str:
    """Return a page as a pipe gets it."""
    return "".join(f"{line}\n" for part in parts for line in _lines(part))


def _lines(part: Part) -> Iterable[str]:
    return part.lines() if isinstance(part, Table) else (escaped(part),)

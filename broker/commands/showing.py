"""What a command prints: a table for a terminal, or JSON with the same fields and more."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from runtime.process.output import print_line
from runtime.program.command import Options
from runtime.program.page import show_page
from runtime.program.table import UNKNOWN, table_of

Row = Mapping[str, object]


def show_rows(
    rows: Sequence[Row],
    titles: Mapping[str, str],
    options: Options,
    *,
    empty: str,
    none: str = UNKNOWN,
) -> None:
    """Print records as a table, or all their fields as JSON; `empty` is said where there is none.

    `none` stands in the table where a record has None.
    """
    if options.json:
        show_json(rows)
        return
    show_table(rows, titles, empty=empty, none=none)


def show_table(
    rows: Sequence[Row], titles: Mapping[str, str], *, empty: str, none: str = UNKNOWN
) -> None:
    """Print records as a table."""
    show_page([table_of(rows, titles, none=none) if rows else empty])


def show_json(value: Any) -> None:  # noqa: ANN401 - whatever goes into JSON
    """Print one JSON document."""
    print_line(json.dumps(value, ensure_ascii=True))

"""Lay the rows of `mirror offsets` out as a table. Pure."""

from collections.abc import Sequence
from typing import Final

from mirror.commands.group_rows import GroupRow
from mirror.commands.status_table import number, table
from runtime.program.table import Table, duration

HEAD: Final = (
    "TOPIC", "PART", "SOURCE POS", "LAG", "TARGET POS", "TRANSLATED", "RE-READ", "AGE", "STATE",
)  # fmt: skip


def rows_table(rows: Sequence[GroupRow], now_ms: int) -> Table:
    """Return the table; AGE is how long ago the mirror applied a position."""
    return table(HEAD, [_cells(row, now_ms) for row in rows])


def _cells(row: GroupRow, now_ms: int) -> Sequence[str]:
    state = row.exactness.value
    if row.gone:
        state = f"{state}: {row.gone} offsets are gone there"
    elif row.skipped:
        state = f"{row.skipped} further on the target"
    return (
        row.topic,
        str(row.partition),
        str(row.source_offset) + (" (last known)" if row.is_last_known else ""),
        number(row.source_lag),
        "none" if row.target_offset is None else str(row.target_offset),
        number(row.translated),
        number(row.reread),
        "never" if row.applied_ms is None else duration(max(0, now_ms - row.applied_ms)),
        state,
    )

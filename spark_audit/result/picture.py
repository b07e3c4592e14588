"""A picture of one partition's logs, as SVG: what was compared, what waits, what differs. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

WIDTH: Final = 1_000
_LEFT, _HEIGHT, _GAP = 58, 16, 8
_SPAN: Final = WIDTH - _LEFT - 10
_LEAST: Final = 2.0
"""A mark is at least so wide: one record of a million must be seen."""


def partition_picture(row: Mapping[str, Any], findings: Sequence[Mapping[str, Any]]) -> str:
    """Return both logs, one below the other, to one scale of offsets, with a mark a finding."""
    stop = max(row["source_stop"], row["target_stop"], 1)
    lines: list[str] = []
    for number, side in enumerate(("source", "target")):
        top = number * (_HEIGHT + _GAP) + 2
        lines.append(f'<text x="0" y="{top + 12}">{side}</text>')
        lines += _log(row, side, top, stop)
        lines += _marks(findings, f"{side}_offset", top, stop)
    height = 2 * (_HEIGHT + _GAP) + 14
    lines.append(f'<text x="{_LEFT}" y="{height - 3}">offset 0</text>')
    lines.append(f'<text x="{WIDTH - 10}" y="{height - 3}" text-anchor="end">{stop:,}</text>')
    words = (
        f"{row['source_records']:,} source and {row['target_records']:,} target records, "
        f"{len(findings):,} findings"
    )
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{words}">'
        f"<title>{words}</title>{''.join(lines)}</svg>"
    )


def _log(row: Mapping[str, Any], side: str, top: int, stop: int) -> Iterator[str]:
    start, end = row[f"{side}_start"], row[f"{side}_stop"]
    if start:
        yield _bar("gone", 0, start, top, stop)
    if end > start:
        yield _bar("log", start, end, top, stop)
    first = row["first_in_flight"]
    if side == "source" and first is not None:
        yield _bar("late" if row["overdue"] else "wait", first, end, top, stop)
    if row[f"not_compared_{side}"]:
        yield _bar("unsure", start, start + row[f"not_compared_{side}"], top, stop)


def _marks(
    findings: Sequence[Mapping[str, Any]], offset: str, top: int, stop: int
) -> Iterator[str]:
    """Yield a mark for each finding; those that would lie on each other are one."""
    bars = {
        _bar("mark", one[offset], one[offset] + one["records"], top, stop): None
        for one in findings
        if one[offset] is not None
    }
    yield from bars


def _bar(name: str, start: int, end: int, top: int, stop: int) -> str:
    left = _LEFT + _SPAN * min(start, stop) / stop
    width = max(_LEAST, _SPAN * (min(end, stop) - min(start, stop)) / stop)
    return (
        f'<rect class="{name}" x="{left:.0f}" y="{top}" width="{width:.0f}" height="{_HEIGHT}" '
        'rx="2"/>'
    )

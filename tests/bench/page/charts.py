"""A bar chart as SVG for each bench: horizontal bars, one group per workload. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, Final

from tests.bench.measure.results import (
    APACHE,
    CONNECTOR,
    DIRECT,
    LIMITS,
    MM2_DEFAULT,
    MM2_TUNED,
    OURS,
    OURS_EARLIER,
    OURS_IN_PYTHON,
    READER,
    RELAY,
    has_no_figure,
)

COLOURS: Final[Mapping[str, str]] = {
    OURS: "#1a7f5a",
    OURS_IN_PYTHON: "#7fbf9f",
    OURS_EARLIER: "#7fbf9f",
    MM2_TUNED: "#c4622d",
    MM2_DEFAULT: "#e0a27e",
    APACHE: "#c4622d",
    RELAY: "#9aa0a6",
    CONNECTOR: "#c4622d",
    READER: "#9aa0a6",
    DIRECT: "#9aa0a6",
}
INK: Final = "#24292f"
PALE: Final = "#57606a"
WIDTH: Final = 760
LEFT: Final = 110
BARS: Final = 520
ROW: Final = 18
BAR: Final = 12
GROUP_GAP: Final = 12
HEADING: Final = 22
LEAST: Final = 1.0
"""Of a bar that is not nothing."""


def chart(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a chart of one bench's rows; bars are medians, the thin lines minimum to maximum.

    All bars have one scale, which begins at zero and ends at the largest row of a real system:
    the bar of a limit is cut off there.
    """
    ran = [row for row in rows if not has_no_figure(row)]
    scale = BARS / (_top(ran) or 1)
    parts: list[str] = []
    y = GROUP_GAP
    for workload in dict.fromkeys(row["workload"] for row in rows):
        parts.append(_text(8, y + ROW - 5, workload, weight="600"))
        y += HEADING
        for row in rows:
            if row["workload"] == workload:
                parts += _bar(row, y, scale)
                y += ROW
        y += GROUP_GAP
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y}" '
        f'viewBox="0 0 {WIDTH} {y}" font-family="sans-serif" font-size="12">'
    )
    return "\n".join(
        [head, '<rect width="100%" height="100%" fill="#ffffff"/>', *parts, "</svg>\n"]
    )


def _top(rows: Iterable[Mapping[str, Any]]) -> float:
    rows = list(rows)
    real = [row["max"] for row in rows if row["system"] not in LIMITS]
    return max(real or [row["max"] for row in rows], default=0.0)


def _bar(row: Mapping[str, Any], y: int, scale: float) -> list[str]:
    label = _text(LEFT - 8, y + BAR - 2, row["system"], anchor="end")
    if has_no_figure(row):
        return [label, _text(LEFT, y + BAR - 2, str(row["median"]), colour=PALE)]
    full, low, high = (row[key] * scale for key in ("median", "min", "max"))
    is_cut = full > BARS
    length = min(BARS, max(full, LEAST if row["median"] > 0 else 0.0))
    shown = number(row["median"]) + (" (beyond this scale)" if is_cut else "")
    colour = COLOURS[row["system"]]
    size = f'width="{length:.1f}" height="{BAR}"'
    parts = [label, f'<rect x="{LEFT}" y="{y}" {size} fill="{colour}"/>']
    if high > low and not is_cut:
        middle = y + BAR / 2
        parts.append(
            f'<line x1="{LEFT + low:.1f}" x2="{LEFT + min(high, BARS):.1f}" '
            f'y1="{middle}" y2="{middle}" stroke="{INK}" stroke-width="1"/>'
        )
    end = LEFT + max(length, 0.0 if is_cut else min(high, BARS)) + 6
    if is_cut:
        parts.append(_text(LEFT + 8, y + BAR - 2, shown, colour="#ffffff"))
    else:
        parts.append(_text(end, y + BAR - 2, shown))
    return parts


def _text(
    x: float, y: float, text: str, *, anchor: str = "start", colour: str = INK, weight: str = "400"
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y}" text-anchor="{anchor}" fill="{colour}" '
        f'font-weight="{weight}">{escape(text)}</text>'
    )


def number(value: float) -> str:
    """Return three digits that matter; whole above a hundred, with thousands apart."""
    if value == round(value) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"

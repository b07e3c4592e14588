"""A flow's lag over the last while, as a picture. Pure."""

from collections.abc import Sequence
from typing import Final

from runtime.console.flow_summary import LagSample
from runtime.console.tables import count, seconds
from runtime.pages.markup import moment

WIDTH: Final = 900
HEIGHT: Final = 110
_TOP: Final = 16
_BOTTOM: Final = HEIGHT - 18


def lag_picture(history: Sequence[LagSample]) -> str:
    """Return bars of the lag in records; times at which it was not known are a gap with a tint."""
    if len(history) < 2:
        return '<p class="soft">The lag over time is drawn once there are two samples of it.</p>'
    first, last = history[0].at_ms, history[-1].at_ms
    known = [one.records for one in history if one.records is not None]
    most, span = max(known, default=0), max(1, last - first)
    width = WIDTH / len(history)
    shapes = []
    for one in history:
        left = (one.at_ms - first) * (WIDTH - width) / span
        place = f'x="{left:.1f}" width="{max(width, 0.8):.1f}"'
        if one.records is None:
            shapes.append(f'<rect class="gap" {place} y="{_TOP}" height="{_BOTTOM - _TOP}"/>')
        elif one.records:
            height = max(1.0, one.records * (_BOTTOM - _TOP) / most)
            top = _BOTTOM - height
            shapes.append(f'<rect class="bar" {place} y="{top:.1f}" height="{height:.1f}"/>')
    worst = max((one.seconds for one in history if one.seconds is not None), default=None)
    label = (
        f"Lag from {moment(first)} to {moment(last)}: at most {count(most if known else None)}"
        f" records, {seconds(worst)}"
    )
    unknown = len(history) - len(known)
    gaps = f"; not known at {unknown} of {len(history)} times (tinted)" if unknown else ""
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}{gaps}">'
        f'<text x="0" y="11">{count(most if known else None)} records at most{gaps}</text>'
        f'<line x1="0" x2="{WIDTH}" y1="{_BOTTOM}" y2="{_BOTTOM}" stroke="currentColor"'
        f' stroke-opacity=".3"/>{"".join(shapes)}'
        f'<text x="0" y="{HEIGHT - 4}">{moment(first)[11:]}</text>'
        f'<text x="{WIDTH}" y="{HEIGHT - 4}" text-anchor="end">{moment(last)[11:]}</text></svg>'
    )

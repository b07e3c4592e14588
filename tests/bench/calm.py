"""Spans of time in which nobody else slowed the machine down. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final, TypeAlias

SLOW: Final = 1.35
"""Times the usual: between a processor's two speeds there is hardly anything."""
TOGETHER: Final = 5
"""The median of so many pulses counts: one alone may have been interrupted."""
Span: TypeAlias = tuple[float, float]
"""From and to, in seconds of one clock."""
ALWAYS: Final[Sequence[Span]] = ((float("-inf"), float("inf")),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulse:
    """When the small computation began, and how long it took, in seconds."""

    at_s: float
    took_s: float


def slow_spans(pulses: Sequence[Pulse], usual_s: float) -> list[Span]:
    """Return when a processor was slower than usual, from one pulse before to one behind."""
    last = len(pulses) - 1
    return [
        (pulses[max(0, place - 1)].at_s, pulses[min(last, place + 1)].at_s)
        for place in range(len(pulses))
        if median(each.took_s for each in _around(pulses, place)) > SLOW * usual_s
    ]


def _around(pulses: Sequence[Pulse], place: int) -> Sequence[Pulse]:
    first = max(0, min(place - TOGETHER // 2, len(pulses) - TOGETHER))
    return pulses[first : first + TOGETHER]


def outside(slow: Iterable[Span], began: float, ended: float) -> list[Span]:
    """Return what of a time is in none of these spans."""
    found, free_from = [], began
    for start, end in sorted(slow):
        if start > free_from:
            found.append((free_from, min(start, ended)))
        free_from = max(free_from, end)
        if free_from >= ended:
            return found
    return [*found, (free_from, ended)] if free_from < ended else found


def is_within(calm: Sequence[Span], began: float, ended: float) -> bool:
    """Return whether all of a time lies in one of these spans."""
    return any(start <= began and ended <= end for start, end in calm)


def share_of(calm: Iterable[Span], began: float, ended: float) -> float:
    """Return how much of a time lies in these spans, which do not overlap."""
    if ended <= began:
        return 1.0
    held = sum(max(0.0, min(end, ended) - max(start, began)) for start, end in calm)
    return held / (ended - began)

"""When records came, and the longest time in which none did. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """A record that a reader was given, by the machine's clock in seconds."""

    value: str
    sent_s: float
    at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """What one reader was given between two moments, and how long after it was sent."""

    records: int
    longest_gap_s: float
    half_within_s: float
    most_within_s: float
    """99 of 100 records came within so long."""
    slowest_s: float


def flow_of(arrivals: Sequence[Arrival], from_s: float, until_s: float) -> Flow:
    """Sum up; a reader who was given nothing had a gap from the beginning to the end."""
    within = [one for one in arrivals if from_s <= one.at_s <= until_s]
    times = sorted(one.at_s for one in within)
    gaps = (late - early for early, late in pairwise([from_s, *times, until_s]))
    took = sorted(one.at_s - one.sent_s for one in within) or [until_s - from_s]
    return Flow(
        records=len(within),
        longest_gap_s=max(gaps),
        half_within_s=_quantile(took, 0.5),
        most_within_s=_quantile(took, 0.99),
        slowest_s=took[-1],
    )


def _quantile(rising: Sequence[float], part: float) -> float:
    return rising[max(ceil(part * len(rising)) - 1, 0)]

"""From samples to figures: rates over the turns of a run, percentiles, spreads. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from statistics import median
from typing import Final

from tests.bench.measure.workloads import GIB

MEGABYTE: Final = 1_000_000
RAMP_S: Final = 0.05
"""Behind the beginning of a turn: what lay in buffers meanwhile comes at once."""


class TooFewSamples(ValueError):
    """A run was over so soon behind its start that nothing can be said of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One look at a running process and at how far its work has come."""

    at_s: float
    records: int
    cpu_s: float
    resident_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """One run's figures; MB are 10^6 bytes and GiB 2^30 bytes of record values."""

    mb_s: float
    cpu_s_per_gib: float
    """From the start of the process until all was moved."""
    warm_cpu_s_per_gib: float
    """Over the last half of the records."""
    peak_resident_mb: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """What several runs gave."""

    minimum: float
    median: float
    maximum: float


def throughput(
    turns: Sequence[Sequence[Sample]],
    *,
    records: int,
    record_bytes: int,
    peak_resident_bytes: int,
    ramp_s: float = RAMP_S,
) -> Throughput:
    """Return the figures of turns in which all `records` were moved; raises TooFewSamples.

    The rate is that of all turns, behind their ramps and before the end.
    """
    pairs = [pair for turn in turns for pair in pairwise(_counted(turn, records, ramp_s))]
    moved = sum(b.records - a.records for a, b in pairs) * record_bytes
    looks = [look for turn in turns for look in turn]
    last = next((look for look in looks if look.records >= records), None)
    half = next((look for look in looks if look.records >= records / 2), last)
    if not moved or last is None or half is None or half.records >= last.records:
        raise TooFewSamples(f"it was over within {len(looks)} looks")
    warm = (last.cpu_s - half.cpu_s) / (last.records - half.records)
    return Throughput(
        mb_s=moved / MEGABYTE / sum(b.at_s - a.at_s for a, b in pairs),
        cpu_s_per_gib=last.cpu_s / last.records * GIB / record_bytes,
        warm_cpu_s_per_gib=warm * GIB / record_bytes,
        peak_resident_mb=peak_resident_bytes / MEGABYTE,
    )


def _counted(turn: Sequence[Sample], records: int, ramp_s: float) -> Sequence[Sample]:
    steady = [look for look in turn if look.at_s >= turn[0].at_s + ramp_s]
    at_end = next((place for place, look in enumerate(steady) if look.records >= records), None)
    return steady if at_end is None else steady[: at_end + 1]


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least this share of all values does not exceed.

    Raises TooFewSamples for no value at all.
    """
    if not values:
        raise TooFewSamples("nothing arrived of what was to be measured")
    ordered = sorted(values)
    return ordered[max(0, ceil(share * len(ordered)) - 1)]


def spread(values: Sequence[float]) -> Spread:
    """Return minimum, median and maximum of at least one value."""
    return Spread(minimum=min(values), median=median(values), maximum=max(values))


def duplicates(found: Iterable[int]) -> int:
    """Return how many records are there once more than they should be."""
    return sum(count - 1 for count in Counter(found).values())


def reread(*, position: int, translated: int | None) -> int:
    """Return how many records a group reads again that goes on at `translated`.

    `position` is where it would go on by rights. Without a translated position it starts at the
    beginning. A negative result would be records that it never sees.
    """
    return position if translated is None else position - translated

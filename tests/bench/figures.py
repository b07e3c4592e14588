"""From samples to figures: rates over the steady part of a run, percentiles, spreads. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from statistics import median
from typing import Final

from tests.bench.calm import ALWAYS, Span, is_within, share_of
from tests.bench.workloads import GIB

MEGABYTE: Final = 1_000_000
STEADY_FROM: Final = 0.5
"""What comes before is start-up: connections, topic creation, and Java compiling what it sees
often, which costs it seconds of processor time, more or less by luck."""
LEAST_CALM: Final = 0.1
"""With less than this share of a run undisturbed, all of it counts."""


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
    peak_resident_mb: float
    calm_share: float = 1.0
    """How much of the run nobody else slowed down: what the first two are taken from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """What several runs gave."""

    minimum: float
    median: float
    maximum: float


def throughput(
    samples: Sequence[Sample], *, records: int, value_bytes: int, calm: Sequence[Span] = ALWAYS
) -> Throughput:
    """Return the figures of what is calm of the last half of the records.

    Both systems are judged by the same window, so that neither a slow start nor a cheap one
    counts: a daemon runs for months. Raises TooFewSamples.
    """
    steady = [sample for sample in samples if sample.records >= records * STEADY_FROM]
    last = next((place for place, each in enumerate(steady) if each.records >= records), None)
    if last is None or last == 0:
        raise TooFewSamples(f"{len(steady)} of {len(samples)} samples behind the start")
    window = steady[: last + 1]
    share = share_of(calm, window[0].at_s, window[-1].at_s)
    spans = calm if share >= LEAST_CALM else ALWAYS
    pairs = [(a, b) for a, b in pairwise(window) if is_within(spans, a.at_s, b.at_s)]
    moved = sum(b.records - a.records for a, b in pairs) * value_bytes / records
    cpu_s = sum(b.cpu_s - a.cpu_s for a, b in pairs)
    if not (moved and cpu_s):
        raise TooFewSamples("it took no processor time")
    return Throughput(
        mb_s=moved / MEGABYTE / sum(b.at_s - a.at_s for a, b in pairs),
        cpu_s_per_gib=cpu_s / (moved / GIB),
        peak_resident_mb=max(sample.resident_bytes for sample in samples) / MEGABYTE,
        calm_share=share,
    )


def typical(found: Sequence[Throughput]) -> Throughput:
    """Return the median of each figure of at least one pass."""
    return Throughput(
        mb_s=median(each.mb_s for each in found),
        cpu_s_per_gib=median(each.cpu_s_per_gib for each in found),
        peak_resident_mb=median(each.peak_resident_mb for each in found),
        calm_share=median(each.calm_share for each in found),
    )


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least this share of all values does not exceed."""
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

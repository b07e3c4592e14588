"""The measurements of a flow at work: plain numbers, exported when somebody scrapes.

The hot path adds to them for every batch; a counter of prometheus_client takes a lock each time.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from prometheus_client.core import (
    CounterMetricFamily,
    Exemplar,
    HistogramMetricFamily,
    Metric,
)

LATENCY_MS: Final = (
    1,
    2,
    5,
    10,
    25,
    50,
    100,
    250,
    500,
    1_000,
    2_500,
    5_000,
    10_000,
    30_000,
    60_000,
)
MAX_EXEMPLAR_CHARACTERS: Final = 128
"""OpenMetrics' limit for the labels of one exemplar; a topic's name may be longer."""
PLAUSIBLE_AGE_MS: Final = 3_600_000
"""Records older than this when they pass are a replay; their age says nothing of the mirror."""


class LatencyHistogram:
    """A histogram of milliseconds."""

    __slots__ = ("counts", "exemplars", "total_ms")

    def __init__(self) -> None:
        self.counts = [0] * (len(LATENCY_MS) + 1)
        self.total_ms = 0
        self.exemplars: dict[int, Exemplar] = {}
        """By bucket what was measured last there, and where."""

    def note(self, milliseconds: int, times: int = 1) -> None:
        """Take one measurement, or several that are alike."""
        self.counts[bisect_left(LATENCY_MS, milliseconds)] += times
        self.total_ms += milliseconds * times

    def show(self, milliseconds: int, now_ms: int, slowest: "Slowest") -> None:
        """Keep which batch took so long, for readers of OpenMetrics."""
        labels = {"topic": slowest.topic, "partition": str(slowest.partition)}
        if sum(map(len, (*labels, *labels.values()))) <= MAX_EXEMPLAR_CHARACTERS:
            self.exemplars[bisect_left(LATENCY_MS, milliseconds)] = Exemplar(
                labels, milliseconds / 1000, now_ms / 1000
            )

    def buckets(self) -> list[tuple[str, float] | tuple[str, float, Exemplar]]:
        """Return the cumulated counts by upper bound in seconds, as Prometheus wants them."""
        bounds = [*(str(bound / 1000) for bound in LATENCY_MS), "+Inf"]
        total = 0
        buckets: list[tuple[str, float] | tuple[str, float, Exemplar]] = []
        for slot, (bound, count) in enumerate(zip(bounds, self.counts, strict=True)):
            total += count
            shown = self.exemplars.get(slot)
            buckets.append((bound, float(total)) if shown is None else (bound, float(total), shown))
        return buckets


class Slowest(NamedTuple):
    """The batch of an answer that was fetched first."""

    arrived_ms: int
    topic: str
    partition: int


@dataclass(slots=True)
class FlowMeasurements:
    """The numbers of one flow, counted since the process began."""

    flow: str
    records: int = 0
    bytes: int = 0
    batches: int = 0
    rebuilt: int = 0
    left_out: int = 0
    group_commits: int = 0
    forward: LatencyHistogram = field(default_factory=LatencyHistogram)
    record_age: LatencyHistogram = field(default_factory=LatencyHistogram)
    produce_errors: Counter[str] = field(default_factory=Counter)
    fetch_errors: Counter[str] = field(default_factory=Counter)
    group_commit_errors: Counter[str] = field(default_factory=Counter)
    malformed: Counter[str] = field(default_factory=Counter)

    def count_fetch_error(self, error: str) -> None:
        """Count a Fetch that was refused or not answered, by the error's name."""
        self.fetch_errors[error] += 1

    def count_produce_error(self, error: str) -> None:
        """Count a Produce that was refused or not answered, by the error's name."""
        self.produce_errors[error] += 1

    def count_group_commit(self) -> None:
        """Count a group position that was committed on the target."""
        self.group_commits += 1

    def count_group_commit_error(self, error: str) -> None:
        """Count a group position that the target refused, by the error's name."""
        self.group_commit_errors[error] += 1

    def count_malformed(self, topic: str) -> None:
        """Count a record of an internal topic that makes no sense."""
        self.malformed[topic] += 1

    def note_routed(self, *, rebuilt: int, left_out: int) -> None:
        """Take the batches of a chunk that were built anew, and those that are not sent on."""
        self.rebuilt += rebuilt
        self.left_out += left_out

    def note_acknowledged(
        self,
        now_ms: int,
        arrived_ms: Mapping[int, int],
        max_timestamps: Mapping[int, int],
        *,
        records: int,
        size_bytes: int,
        slowest: Slowest | None = None,
    ) -> None:
        """Take what the batches of an answer took here, and how old their newest records are."""
        if slowest is not None:
            self.forward.show(max(0, now_ms - slowest.arrived_ms), now_ms, slowest)
        self.records += records
        self.bytes += size_bytes
        for time_ms, batches in arrived_ms.items():
            self.batches += batches
            self.forward.note(max(0, now_ms - time_ms), batches)
        for time_ms, batches in max_timestamps.items():
            if 0 <= now_ms - time_ms <= PLAUSIBLE_AGE_MS:
                self.record_age.note(now_ms - time_ms, batches)


_COUNTERS: Final = (
    ("mirror_records", "Records that the target has acknowledged", "records"),
    ("mirror_bytes", "Bytes of batches that the target has acknowledged", "bytes"),
    ("mirror_batches", "Batches that the target has acknowledged", "batches"),
    ("mirror_batches_rebuilt", "Batches that were decoded and built anew", "rebuilt"),
    (
        "mirror_batches_left_out",
        "Markers, aborted batches, and batches that came from the target",
        "left_out",
    ),
    ("mirror_group_commits", "Group positions committed on the target", "group_commits"),
)
_LABELLED: Final = (
    (
        "mirror_produce_errors",
        "Produce requests that were refused or not answered",
        "error",
        "produce_errors",
    ),
    (
        "mirror_fetch_errors",
        "Fetch requests that were refused or not answered",
        "error",
        "fetch_errors",
    ),
    (
        "mirror_group_commit_errors",
        "Group positions that the target refused",
        "error",
        "group_commit_errors",
    ),
    (
        "mirror_malformed_records",
        "Records of internal topics that make no sense and were left out",
        "topic",
        "malformed",
    ),
)
_HISTOGRAMS: Final = (
    (
        "mirror_forward_duration_seconds",
        "From the fetch of a batch to its acknowledgement by the target: the time in the mirror",
        "forward",
    ),
    (
        "mirror_added_latency_seconds",
        "From a batch's newest timestamp to the acknowledgement; none older than an hour",
        "record_age",
    ),
)


def export(flows: Sequence[FlowMeasurements]) -> Iterable[Metric]:
    """Yield the families of all flows."""
    for name, text, attribute in _COUNTERS:
        counter = CounterMetricFamily(name, text, labels=("flow",))
        for flow in flows:
            counter.add_metric((flow.flow,), getattr(flow, attribute))
        yield counter
    for name, text, label, attribute in _LABELLED:
        counter = CounterMetricFamily(name, text, labels=("flow", label))
        for flow in flows:
            counts: Counter[str] = getattr(flow, attribute)
            for value, count in sorted(counts.items()):
                counter.add_metric((flow.flow, value), count)
        yield counter
    for name, text, attribute in _HISTOGRAMS:
        histogram = HistogramMetricFamily(name, text, labels=("flow",))
        for flow in flows:
            latency: LatencyHistogram = getattr(flow, attribute)
            histogram.add_metric((flow.flow,), latency.buckets(), latency.total_ms / 1000)
        yield histogram

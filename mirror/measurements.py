"""What the daemon counts while it works; gauges are read off the flows when somebody scrapes."""

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.registry import REGISTRY

_LATENCY_S: Final = (
    0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
)  # fmt: skip
PLAUSIBLE_AGE_S: Final = 3600.0
"""Records older than this when they pass are a replay; their age says nothing of the mirror."""


class Measurements:
    """The metric families of the process; one instance per registry."""

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        """Register the families."""
        self.records = Counter(
            "mirror_records", "Records on the target, acknowledged", ["flow"], registry=registry
        )
        self.bytes = Counter(
            "mirror_bytes", "Bytes of acknowledged batches", ["flow"], registry=registry
        )
        self.batches = Counter(
            "mirror_batches", "Batches acknowledged", ["flow"], registry=registry
        )
        self.rebuilt = Counter(
            "mirror_batches_rebuilt", "Batches that went the slow way", ["flow"], registry=registry
        )
        self.left_out = Counter(
            "mirror_batches_left_out",
            "Batches not forwarded: markers, aborted, mirrored here",
            ["flow"],
            registry=registry,
        )
        self.forward_seconds = Histogram(
            "mirror_forward_seconds",
            "From fetched to acknowledged by the target",
            ["flow"],
            buckets=_LATENCY_S,
            registry=registry,
        )
        self.record_age_seconds = Histogram(
            "mirror_record_age_seconds",
            "From a batch's newest timestamp to acknowledged by the target",
            ["flow"],
            buckets=_LATENCY_S,
            registry=registry,
        )
        self.produce_errors = Counter(
            "mirror_produce_errors", "Refused or unanswered", ["flow", "error"], registry=registry
        )
        self.fetch_errors = Counter(
            "mirror_fetch_errors", "Refused or unanswered", ["flow", "error"], registry=registry
        )
        self.group_commits = Counter(
            "mirror_group_commits", "Positions committed on the target", ["flow"], registry=registry
        )
        self.group_commit_errors = Counter(
            "mirror_group_commit_errors", "Refused", ["flow", "error"], registry=registry
        )
        self.malformed = Counter(
            "mirror_malformed_records",
            "Records of internal topics that make no sense, left out",
            ["flow", "topic"],
            registry=registry,
        )

    def of_flow(self, flow: str) -> "FlowMeasurements":
        """Return the children of one flow."""
        return FlowMeasurements(self, flow)


class FlowMeasurements:
    """One flow's children, looked up once: the hot path pays an addition each."""

    def __init__(self, families: Measurements, flow: str) -> None:
        """Look the children up."""
        self._families = families
        self._flow = flow
        self.records = families.records.labels(flow)
        self.bytes = families.bytes.labels(flow)
        self.batches = families.batches.labels(flow)
        self.rebuilt = families.rebuilt.labels(flow)
        self.left_out = families.left_out.labels(flow)
        self.forward_seconds = families.forward_seconds.labels(flow)
        self.record_age_seconds = families.record_age_seconds.labels(flow)
        self.group_commits = families.group_commits.labels(flow)

    def note_latency(self, now_ms: int, arrived_ms: int, max_timestamp: int) -> None:
        """Take what one acknowledged batch took here, and how old its newest record is."""
        self.forward_seconds.observe((now_ms - arrived_ms) / 1000)
        age_s = (now_ms - max_timestamp) / 1000
        if 0 <= age_s <= PLAUSIBLE_AGE_S:
            self.record_age_seconds.observe(age_s)

    def produce_error(self, error: str) -> None:
        """Count a produce that failed."""
        self._families.produce_errors.labels(self._flow, error).inc()

    def fetch_error(self, error: str) -> None:
        """Count a fetch that failed."""
        self._families.fetch_errors.labels(self._flow, error).inc()

    def group_commit_error(self, error: str) -> None:
        """Count a group position that was refused."""
        self._families.group_commit_errors.labels(self._flow, error).inc()

    def malformed(self, topic: str, count: int = 1) -> None:
        """Count records that make no sense."""
        self._families.malformed.labels(self._flow, topic).inc(count)

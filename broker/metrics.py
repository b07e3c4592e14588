"""A broker's metrics: plain numbers, gathered when Prometheus asks."""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from broker.log.cleaner_metrics import CleanerState
from broker.partition_gauges import HeldCounts
from broker.replication.isr_changes import IsrCounts
from wire.values import frozen

BUCKETS_S: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)


@dataclass(slots=True)
class ApiLatency:
    """How long the requests of one API took: a count per bucket, the last one is beyond all."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS_S) + 1))
    total_s: float = 0.0

    def observe(self, seconds: float, requests: int = 1) -> None:
        """Count requests of which each took so many seconds."""
        self.counts[bisect_left(BUCKETS_S, seconds)] += requests
        self.total_s += seconds * requests

    def cumulative(self) -> list[tuple[str, float]]:
        """Return the buckets as Prometheus wants them: each counts all below it too."""
        buckets, so_far = [], 0
        for bound, count in zip([*map(str, BUCKETS_S), "+Inf"], self.counts, strict=True):
            so_far += count
            buckets.append((bound, float(so_far)))
        return buckets


@dataclass(slots=True)
class RequestMetrics:
    """Counted by the connections and handlers of one broker."""

    latency: dict[str, ApiLatency] = field(default_factory=dict)
    received_bytes: int = 0
    sent_bytes: int = 0
    connections: int = 0
    records_in: int = 0
    record_bytes_in: int = 0
    record_bytes_out: int = 0
    fenced_batches: int = 0
    failed_tls_handshakes: int = 0
    authentications: int = 0
    failed_authentications: int = 0

    def observe(self, api: str, seconds: float, requests: int = 1) -> None:
        """Count answered requests, one unless it says more."""
        found = self.latency.get(api)
        if found is None:
            found = self.latency[api] = ApiLatency()
        found.observe(seconds, requests)


@frozen
class BrokerState:
    """The broker's present state as a scrape shows it."""

    held: HeldCounts
    offline_partitions: int
    offline_log_folders: int
    is_controller: bool
    isr: IsrCounts
    cleaner: CleanerState | None = None
    """None where log.cleaner.enable=false."""


class BrokerCollector(Collector):
    """Gives one broker's numbers to Prometheus."""

    def __init__(self, requests: RequestMetrics, state: Callable[[], BrokerState]) -> None:
        self._requests = requests
        self._state = state

    def describe(self) -> list[Metric]:
        """Name nothing beforehand: there is one collector per process."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics of this broker, as they are now."""
        yield from self._request_metrics()
        yield from self._state_metrics()

    def _request_metrics(self) -> Iterator[Metric]:
        counted = self._requests
        latency = HistogramMetricFamily(
            "broker_request_duration_seconds",
            "Time from a whole request to its answer",
            labels=["api"],
        )
        for api, measured in list(counted.latency.items()):
            latency.add_metric([api], measured.cumulative(), measured.total_s)
        yield latency
        for name, text, value in (
            ("received_bytes", "Bytes received from clients", counted.received_bytes),
            ("sent_bytes", "Bytes sent to clients", counted.sent_bytes),
            ("appended_records", "Records that producers appended", counted.records_in),
            ("appended_bytes", "Bytes of batches that producers appended", counted.record_bytes_in),
            ("fetched_bytes", "Bytes of batches given to fetchers", counted.record_bytes_out),
            ("fenced_batches", "Batches refused by the write fence", counted.fenced_batches),
            (
                "failed_tls_handshakes",
                "Connections that came to no TLS",
                counted.failed_tls_handshakes,
            ),
            ("authentications", "Times that SASL let a client in", counted.authentications),
            (
                "failed_authentications",
                "Times that SASL let a client not in",
                counted.failed_authentications,
            ),
        ):
            yield CounterMetricFamily(f"broker_{name}", text, value=value)
        yield GaugeMetricFamily(
            "broker_connections", "Open client connections", value=counted.connections
        )

    def _state_metrics(self) -> Iterator[Metric]:
        state = self._state()
        for name, text, value in (
            ("leaders", "Partitions led by this broker", state.held.led),
            ("replicas", "Partitions held by this broker", state.held.held),
            (
                "offline_partitions",
                "Partitions of the cluster without a leader",
                state.offline_partitions,
            ),
            (
                "offline_log_folders",
                "Log folders of this broker that failed; what lies there is offline",
                state.offline_log_folders,
            ),
            ("is_controller", "1 on the controller, else 0", int(state.is_controller)),
        ):
            yield GaugeMetricFamily(f"broker_{name}", text, value=value)
        yield from _replication_metrics(state.held, state.isr)
        if state.cleaner is not None:
            yield from _cleaner_metrics(state.cleaner)


def _replication_metrics(held: HeldCounts, isr: IsrCounts) -> Iterator[Metric]:
    for name, text, value in (
        (
            "under_replicated_partitions",
            "Partitions led by this broker with a replica that is not in sync",
            held.under_replicated,
        ),
        (
            "under_min_isr_partitions",
            "Partitions led by this broker that refuse acks=all for min.insync.replicas",
            held.under_min_isr,
        ),
    ):
        yield GaugeMetricFamily(f"broker_{name}", text, value=value)
    yield CounterMetricFamily(
        "broker_isr_shrinks", "Times that replicas left an ISR", value=isr.shrinks
    )
    yield CounterMetricFamily(
        "broker_isr_expands", "Times that replicas joined an ISR", value=isr.expands
    )


def _cleaner_metrics(state: CleanerState) -> Iterator[Metric]:
    """Kafka's gauges of LogCleaner and LogCleanerManager, in seconds and ratios."""
    for name, kafkas, scale in (
        ("max_buffer_utilization_ratio", "max_buffer_utilization_percent", 100),
        ("cleaner_recopy_ratio", "cleaner_recopy_percent", 100),
        ("max_clean_time_seconds", "max_clean_time_secs", 1),
        ("max_compaction_delay_seconds", "max_compaction_delay_secs", 1),
        ("max_dirty_ratio", "max_dirty_percent", 100),
        ("time_since_last_run_seconds", "time_since_last_run_ms", 1_000),
    ):
        text = f"Kafka's {kafkas.replace('_', '-')} of the log cleaner"
        value = state.gauges[kafkas] / scale
        yield GaugeMetricFamily(f"broker_log_cleaner_{name}", text, value=value)
    for slot, (name, text) in enumerate(
        (
            ("uncleanable_partitions", "Partitions not compacted until a restart"),
            ("uncleanable_bytes", "Dirty bytes of partitions not compacted until a restart"),
        )
    ):
        family = GaugeMetricFamily(f"broker_log_cleaner_{name}", text, labels=["log_directory"])
        for folder, counted in state.uncleanable.items():
            family.add_metric([str(folder)], counted[slot])
        yield family

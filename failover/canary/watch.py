"""A canary for each flow that mirrors its topic, and what they have seen, as metrics."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Final, TypeAlias

import trio
from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from failover.canary.flow_canary import FlowCanary, Works
from failover.canary.ledger import CanaryLedger
from runtime.configuration.config import ClusterConfig, Configuration, FlowConfig
from runtime.process.clock import monotonic_ms
from runtime.process.fault_note import FaultNote
from runtime.process.unforeseen import keep_at_work
from wire.net import Cluster, NetworkFault, open_cluster

CLIENT_ID: Final = "failover-canary"
"""No fence lets it through: it stands for applications."""
REQUEST_TIMEOUT_MS: Final = 5_000

Work: TypeAlias = Callable[[Cluster, Works], Awaitable[None]]

BUCKETS_S: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
AGAIN_S: Final = 1.0
COUNTS: Final[Mapping[str, tuple[Callable[[CanaryLedger], int], str]]] = {
    "failover_canary_sent": (
        attrgetter("sent"),
        "Records that canaries have sent on the source",
    ),
    "failover_canary_refused": (
        attrgetter("refused"),
        "Records that the source has not acknowledged",
    ),
    "failover_canary_arrived": (
        attrgetter("arrived"),
        "Records that have arrived on the target",
    ),
    "failover_canary_lost": (
        attrgetter("lost"),
        "Acknowledged records that a later one has overtaken, or that a switch has left behind",
    ),
    "failover_canary_out_of_order": (
        attrgetter("out_of_order"),
        "Records that have arrived again, or behind a later one",
    ),
    "failover_canary_unknown": (
        attrgetter("unknown"),
        "Acknowledged records that could not be looked for",
    ),
}
"""What is counted of a ledger, by the name of the metric."""


class CanaryCollector(Collector):
    """The counts of all canaries."""

    def __init__(self, canaries: Sequence[FlowCanary] = ()) -> None:
        self._canaries = canaries

    def collect(self) -> Iterator[Metric]:
        """Yield the counts of each flow."""
        for name, (counted, text) in COUNTS.items():
            count = CounterMetricFamily(name, text, labels=["flow"])
            for one in self._canaries:
                count.add_metric([one.flow.name], counted(one.ledger))
            yield count
        oldest = GaugeMetricFamily(
            "failover_canary_oldest_seconds",
            "For how long the oldest acknowledged record has been on its way; 0 for none",
            labels=["flow"],
        )
        for one in self._canaries:
            oldest.add_metric([one.flow.name], one.ledger.oldest_ms(monotonic_ms()) / 1_000)
        yield oldest


def latency_histogram(registry: CollectorRegistry) -> Histogram:
    """Return the metric of how long records take."""
    return Histogram(
        "failover_canary_latency_seconds",
        "From sending on the source to finding on the target",
        labelnames=["flow"],
        buckets=BUCKETS_S,
        registry=registry,
    )


async def watch_canaries(
    configuration: Configuration, registry: CollectorRegistry, active: Callable[[], str | None]
) -> None:
    """Run the canaries until cancelled; `active` tells the active site, None while unknown."""
    config = configuration.failover.canary
    if config is None:
        return
    latency = latency_histogram(registry)
    canaries = [
        FlowCanary(
            flow=flow,
            config=config,
            may_send=partial(_may_send, flow, active),
            told=partial(_observe, latency, flow),
        )
        for flow in configuration.flows
        if flow.mirrors(config.topic)
    ]
    registry.register(CanaryCollector(canaries))
    note = FaultNote("the canary")
    if not canaries:
        note.note(f"no flow mirrors {config.topic} (failover.canary.topic)")
        return
    async with trio.open_nursery() as nursery:
        for one in canaries:
            for work, site in ((one.send, one.flow.source), (one.read, one.flow.target)):
                where = f"{one.flow.name} on {site}"
                half = partial(_keep, configuration.clusters[site], work, note, where)
                nursery.start_soon(keep_at_work, half, note, where)


async def _keep(cluster: ClusterConfig, work: Work, note: FaultNote, where: str) -> None:
    """Do one half of a canary's work on a site, again after each fault."""
    while True:
        async with open_cluster(
            cluster.bootstrap,
            client_id=CLIENT_ID,
            request_timeout_ms=REQUEST_TIMEOUT_MS,
            security=cluster.security,
        ) as opened:
            try:
                await work(opened, partial(note.clear, where))
            except NetworkFault as fault:
                note.note(f"{where}: {fault}", where)
        await trio.sleep(AGAIN_S)


def _may_send(flow: FlowConfig, active: Callable[[], str | None]) -> bool | None:
    """Tell whether the flow runs now: where it heeds promotions, its source has to be active.

    None while nobody knows which site is active.
    """
    if not flow.heeds_promotions:
        return True
    site = active()
    return None if site is None else site == flow.source


def _observe(latency: Histogram, flow: FlowConfig, took_ms: int) -> None:
    latency.labels(flow.name).observe(took_ms / 1_000)

"""What an endpoint does, as metrics."""

from collections.abc import Iterator
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from failover.bootstrap.active_site import FollowedSite
from failover.bootstrap.forwarding import Forwarding, ForwardingCounts

NO_SITE: Final = "no-site"
UNREACHABLE: Final = "unreachable"
NOT_THE_WAY: Final = "other-request"
FULL: Final = "full"
"""It was let go for a new one: there were as many as there may be."""
HANDSHAKE: Final = "handshake"
PRODUCER_ID: Final = "producer-id"
"""A batch whose producer has its id from a broker itself."""
REASONS: Final = (NO_SITE, UNREACHABLE, NOT_THE_WAY, FULL, HANDSHAKE, PRODUCER_ID)


class EndpointCollector(Collector):
    """What one endpoint does; `forwarding` is None where clients are only shown the way."""

    def __init__(self, followed: FollowedSite, forwarding: Forwarding | None = None) -> None:
        self._followed = followed
        self._forwarding = forwarding
        self.open = 0
        self.carried = 0
        self.moved = 0
        self.refused = dict.fromkeys(REASONS, 0)

    def collect(self) -> Iterator[Metric]:
        """Yield what is known now."""
        up = GaugeMetricFamily("failover_bootstrap_witness_up", "1 while the witness can be read")
        up.add_metric([], int(self._followed.is_witness_up))
        yield up
        site = GaugeMetricFamily(
            "failover_bootstrap_site", "1 for the site that clients are shown", labels=["site"]
        )
        if self._followed.answer.site is not None:
            site.add_metric([self._followed.answer.site], 1)
        yield site
        connections = GaugeMetricFamily(
            "failover_bootstrap_connections", "Connections that are carried, or held, now"
        )
        connections.add_metric([], self.open)
        yield connections
        for name, text, value in (
            ("failover_bootstrap_carried", "Connections carried to a broker", self.carried),
            ("failover_bootstrap_moved", "Connections ended by a switch", self.moved),
        ):
            counter = CounterMetricFamily(name, text)
            counter.add_metric([], value)
            yield counter
        refused = CounterMetricFamily(
            "failover_bootstrap_refused", "Connections that were not carried on", labels=["reason"]
        )
        for reason, count in self.refused.items():
            refused.add_metric([reason], count)
        yield refused
        if self._forwarding is None:
            yield from _forwarded(ForwardingCounts(), held_bytes=0)
        else:
            yield from _forwarded(self._forwarding.counts, self._forwarding.budget.held)


def _forwarded(counts: ForwardingCounts, held_bytes: int) -> Iterator[Metric]:
    for name, text, now in (
        ("failover_bootstrap_held_bytes", "Bytes in large requests under way", held_bytes),
        ("failover_bootstrap_held_requests", "Requests held for a promotion", counts.held),
    ):
        gauge = GaugeMetricFamily(name, text)
        gauge.add_metric([], now)
        yield gauge
    moved = CounterMetricFamily(
        "failover_bootstrap_forwarded_bytes", "Bytes forwarded", labels=["direction"]
    )
    moved.add_metric(["to-brokers"], counts.requests_bytes)
    moved.add_metric(["to-clients"], counts.answers_bytes)
    yield moved
    refused = CounterMetricFamily(
        "failover_bootstrap_not_spoken",
        "Requests for what does not go through, transactions or new-groups; the log names a client",
        labels=["what"],
    )
    for what, count in counts.not_spoken.items():
        refused.add_metric([what], count)
    yield refused
    for name, text, value in (
        (
            "failover_bootstrap_softened",
            "Answers in which a refused right was made a refusal for the moment",
            counts.softened,
        ),
        (
            "failover_bootstrap_left_out",
            "Brokers without a port that answers did not show; the log names them",
            counts.left_out,
        ),
        (
            "failover_bootstrap_unanswered",
            "Produce requests that a switch left without an answer; they may be there twice",
            counts.unanswered,
        ),
    ):
        counter = CounterMetricFamily(name, text)
        counter.add_metric([], value)
        yield counter

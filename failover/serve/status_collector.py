"""Role, epoch, fences and the last promotion of a set of topics as metrics.

A value that cannot be asked for is not zero: a site's gauges disappear while the site does not
answer, and all gauges disappear while the witness does not answer or its nodes cannot be read.
"""

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from failover.journal.steps import PromotionState
from failover.view.status import Status


class StatusCollector(Collector):
    """The last status as metrics."""

    def __init__(self) -> None:
        self.status: Status | None = None
        """What was seen last; None while it is not known."""
        self.why_not = "the first look is under way"
        """Why it is not known."""
        self._is_contradicted = False

    def active_site(self) -> str | None:
        """Return the active site, None while it is not known."""
        return None if self.status is None else self.status.active.site

    def know(self, status: Status) -> None:
        """Show this status."""
        self.status, self.why_not = status, ""
        self._is_contradicted = False

    def know_nothing(self, why: str, *, is_contradicted: bool = False) -> None:
        """Show no status, why, and whether the clusters contradict the witness."""
        self.status, self.why_not = None, why
        self._is_contradicted = is_contradicted

    def collect(self) -> Iterator[Metric]:
        """Yield what is known now."""
        status = self.status
        up = GaugeMetricFamily("failover_witness_up", "1 while the witness can be read")
        up.add_metric([], int(status is not None or self._is_contradicted))
        yield up
        contradicted = GaugeMetricFamily(
            "failover_pair_contradicted", "1 while the clusters contradict the witness"
        )
        contradicted.add_metric([], int(self._is_contradicted))
        yield contradicted
        if status is not None:
            yield from _roles(status)
            yield from _sites(status)
            yield from _promotions(status)


def _roles(status: Status) -> Iterator[Metric]:
    epoch = GaugeMetricFamily("failover_epoch", "Epoch of the active site; grows with a switch")
    epoch.add_metric([], status.active.epoch)
    yield epoch
    role = GaugeMetricFamily("failover_role", "1 for the active site", labels=["site"])
    moving = GaugeMetricFamily(
        "failover_moving", "1 for the site that a promotion is moving to", labels=["site"]
    )
    for site in status.sites:
        role.add_metric([site.name], int(site.is_active))
        moving.add_metric([site.name], int(site.name == status.active.moving_to))
    yield role
    yield moving


def _sites(status: Status) -> Iterator[Metric]:
    up = GaugeMetricFamily("failover_site_up", "1 while the site answers", labels=["site"])
    fenced = GaugeMetricFamily(
        "failover_fenced_topics", "Topics closed for writes on the site", labels=["site"]
    )
    for site in status.sites:
        up.add_metric([site.name], int(site.fault is None))
        if site.fault is None:
            fenced.add_metric([site.name], len(site.fenced_topics))
    yield up
    yield fenced
    runs = GaugeMetricFamily("failover_flow_runs", "1 while the flow runs", labels=["flow"])
    for flow in status.flows:
        runs.add_metric([flow.name], int(flow.state == "runs"))
    yield runs


def _promotions(status: Status) -> Iterator[Metric]:
    unfinished = GaugeMetricFamily("failover_unfinished", "1 while a promotion is unfinished")
    unfinished.add_metric([], int(status.unfinished is not None))
    yield unfinished
    held = GaugeMetricFamily("failover_held", "1 while somebody holds promotions: `failover hold`")
    held.add_metric([], int(status.hold is not None))
    yield held
    last = status.last
    if last is None:
        return
    labels = ["site", "kind", "state"]
    values = [last.site, last.kind.value, last.state.value]
    ended = GaugeMetricFamily(
        "failover_last_promotion_start_timestamp_seconds", "Unix time of its command", labels=labels
    )
    ended.add_metric(values, last.started_ms / 1000)
    yield ended
    if last.state is PromotionState.DONE and last.rto_ms is not None:
        rto = GaugeMetricFamily(
            "failover_last_promotion_rto_seconds", "From command to switch", labels=labels
        )
        rto.add_metric(values, last.rto_ms / 1000)
        yield rto

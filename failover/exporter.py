"""`failover serve`: role, epoch, fences and the last promotion as metrics, asked for every 2 s.

It also closes a lost site for writes as soon as that is back, and keeps it so (`failover.guard`).

A value that cannot be asked for is not zero: a site's gauges disappear while the site does not
answer, and all gauges disappear while the witness does not answer or its nodes cannot be read.
"""

import logging
from collections.abc import Iterator
from functools import partial
from typing import Final

import trio
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from failover.guard import close_breach, find_wrong
from failover.journal import JournalUnreadable
from failover.journals import JournalReader
from failover.status import Status, read_status
from failover.steps import PromotionState
from runtime.config import Configuration
from runtime.fault_note import FaultNote
from runtime.metrics import serve_metrics
from runtime.tasks import background_tasks
from runtime.witness import WitnessGarbled, WitnessPaths
from runtime.zookeeper import ZooKeeperFault, open_zookeeper

_LOG = logging.getLogger(__name__)

ASK_EVERY_S: Final = 2.0


class StatusCollector(Collector):
    """The last status as metrics."""

    def __init__(self) -> None:
        self.status: Status | None = None

    def collect(self) -> Iterator[Metric]:
        """Yield what is known now."""
        status = self.status
        up = GaugeMetricFamily("failover_witness_up", "1 while the witness can be read")
        up.add_metric([], 0 if status is None else 1)
        yield up
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
    last = status.last
    if last is None:
        return
    labels = ["site", "kind", "state"]
    values = [last.site, last.kind.value, last.state.value]
    ended = GaugeMetricFamily(
        "failover_last_promotion_start_seconds", "Unix time of its command", labels=labels
    )
    ended.add_metric(values, last.started_ms / 1000)
    yield ended
    if last.state is PromotionState.DONE and last.rto_ms is not None:
        rto = GaugeMetricFamily(
            "failover_last_promotion_rto_seconds", "From command to switch", labels=labels
        )
        rto.add_metric(values, last.rto_ms / 1000)
        yield rto


async def serve(
    configuration: Configuration, *, task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED
) -> None:
    """Serve metrics until cancelled; report the port. Raises runtime.metrics.AddressInUse."""
    collector = StatusCollector()
    registry = CollectorRegistry()
    registry.register(collector)
    metrics = configuration.metrics
    async with background_tasks() as tasks:
        tasks.start_soon(_follow, configuration, collector)
        port = await tasks.start(
            partial(
                serve_metrics,
                metrics.host,
                metrics.failover_port,
                ready=lambda: collector.status is not None,
                registry=registry,
            )
        )
        _LOG.info("metrics at http://%s:%d/metrics", metrics.host, port)
        task_status.started(port)
        await trio.sleep_forever()


async def _follow(configuration: Configuration, collector: StatusCollector) -> None:
    coordination = configuration.coordination
    witness, fences = FaultNote("the witness"), FaultNote("fences")
    read_in: int | None = None
    while True:
        try:
            async with open_zookeeper(
                coordination.zookeeper, session_timeout_ms=coordination.session_timeout_ms
            ) as zookeeper:
                reader = JournalReader(zookeeper, WitnessPaths(root=coordination.path))
                while True:
                    collector.status = await read_status(configuration, zookeeper, reader)
                    witness.clear()
                    if read_in is None:
                        read_in = collector.status.active.epoch
                    if find_wrong(collector.status, read_in=read_in) is None:
                        fences.clear()
                    else:
                        await close_breach(configuration, zookeeper, fences, read_in=read_in)
                    await trio.sleep(ASK_EVERY_S)
        except (ZooKeeperFault, WitnessGarbled, JournalUnreadable) as error:
            collector.status = None
            witness.note(f"cannot be read: {error}")
            await trio.sleep(ASK_EVERY_S)

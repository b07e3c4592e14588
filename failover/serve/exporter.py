"""`failover serve`: role, epoch, fences and the last promotion as metrics, asked for every 2 s.

It also closes a lost site for writes as soon as that is back, and keeps it so
(`failover.serve.guard`), ends promotions whose controller is gone (`failover.serve.orphans`), and
votes where promotions begin by themselves (`failover.serve.voter`).

A value that cannot be asked for is not zero: a site's gauges disappear while the site does not
answer, and all gauges disappear while the witness does not answer or its nodes cannot be read.
"""

import logging
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

import trio
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from failover.canary.watch import watch_canaries
from failover.journal.journal import Journal, JournalUnreadable
from failover.journal.journals import JournalReader
from failover.journal.steps import PromotionState
from failover.serve.automatic_metrics import AutomaticCollector
from failover.serve.console.pages import FailoverConsole
from failover.serve.guard import (
    Breach,
    StrayFence,
    add_due_replicas,
    close_breach,
    find_wrong,
    look_for_another_file,
    write_due_evidence,
)
from failover.serve.orphans import OrphanWatch, take_over_orphan
from failover.serve.readiness import ReadinessCollector, follow_readiness
from failover.serve.rehearsal_metrics import RehearsalCollector
from failover.serve.rehearsals import follow_rehearsals
from failover.serve.voter import configured, vote
from failover.view.status import Status, read_status
from runtime.configuration.config import Configuration
from runtime.configuration.topic_sets import DEFAULT_SET
from runtime.configuration.witness_session import open_witness
from runtime.coordination.witness import WitnessGarbled
from runtime.coordination.zookeeper import ZooKeeper, ZooKeeperFault
from runtime.pages.exposition import program_registry
from runtime.pages.metrics import serve_metrics
from runtime.pages.set_metrics import SetsCollector
from runtime.pair.evidence import Agreed, judge
from runtime.pair.opening import (
    PairContradicted,
    PairUnknown,
    begin_pair,
    open_clusters,
    require_pair,
)
from runtime.process.clock import now_ms
from runtime.process.fault_note import FaultNote
from runtime.process.tasks import background_tasks
from runtime.process.unforeseen import described, keep_at_work
from wire.net import Cluster

_LOG = logging.getLogger(__name__)

ASK_EVERY_S: Final = 2.0
LOOKING: Final = "looking at the pair"
SHUT_OUT_AGAIN_MS: Final = 600_000
"""So often closing a site is tried again that would shut the mirror out."""
REPLICAS_AGAIN_MS: Final = 600_000
"""So often a cluster is asked again for replicas of the evidence that it lacks."""


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


async def serve(
    configuration: Configuration,
    voter: str | None = None,
    *,
    task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve metrics until cancelled, and vote under this name; report the port.

    Raises runtime.pages.metrics.AddressInUse, and ConfigurationError for a voter that is not known.
    """
    automatic = configured(configuration, voter)
    by_set = configuration.by_set()
    collectors = {name: StatusCollector() for name in by_set}
    readiness = {name: ReadinessCollector() for name in configuration.sets.of_applications}
    registry = program_registry("failover")
    registry.register(
        SetsCollector(
            {
                name: (one, readiness[name]) if name in readiness else (one,)
                for name, one in collectors.items()
            }
        )
    )
    metrics = configuration.metrics
    console = FailoverConsole(configuration, collectors, readiness)
    async with background_tasks() as tasks:
        tasks.start_soon(console.run)
        for name, of_set in by_set.items():
            keeper = SiteKeeper(of_set, collectors[name])
            tasks.start_soon(keep_at_work, keeper.run, keeper.trouble, LOOKING)
            if name in readiness:
                tasks.start_soon(follow_readiness, of_set, readiness[name])
        active_site = collectors[DEFAULT_SET].active_site
        tasks.start_soon(watch_canaries, configuration, registry, active_site)
        if (rehearsal := configuration.failover.rehearsal) is not None:
            rehearsals = RehearsalCollector(rehearsal)
            registry.register(rehearsals)
            tasks.start_soon(follow_rehearsals, configuration, rehearsal, rehearsals)
        if automatic is not None and voter is not None:
            votes = AutomaticCollector(automatic.voters)
            registry.register(votes)
            tasks.start_soon(vote, configuration.of_set(DEFAULT_SET), automatic, voter, votes)
        port = await tasks.start(
            partial(
                serve_metrics,
                metrics.host,
                metrics.failover_port,
                ready=lambda: all(one.status is not None for one in collectors.values()),
                registry=registry,
                door=metrics.door,
                browse=console.browse,
            )
        )
        address = f"{metrics.door.scheme}://{metrics.host}:{port}"
        _LOG.info("console at %s/, metrics at %s/metrics", address, address)
        task_status.started(port)
        await trio.sleep_forever()


class SiteKeeper:
    """Looks again and again, and sets right what it may: fences, and evidence that is older."""

    def __init__(self, configuration: Configuration, collector: StatusCollector) -> None:
        self._configuration = configuration
        self._collector = collector
        self.trouble = FaultNote("failover serve")
        """What nobody has foreseen, until a look succeeds."""
        self._witness = FaultNote("the witness")
        self._pair = FaultNote("the pair")
        self._fences = FaultNote("fences")
        self._file = FaultNote("fences follow this file")
        self._evidence = FaultNote("evidence")
        self._replicas = FaultNote("replicas of the evidence")
        self._may_add_at_ms = 0
        self._orphan = FaultNote("a promotion without a controller")
        self._orphans = OrphanWatch(configuration.failover.orphan_after_ms)
        self._shut_out: Breach | StrayFence | None = None
        """What could not be set right; all else is, without waiting."""
        self._may_close_at_ms = 0
        self._read_in: int | None = None
        """The epoch in which the configuration was read."""

    async def run(self) -> None:
        """Look until cancelled, in a new session whenever one has failed."""
        while True:
            try:
                await self._look_until_fault()
            except (ZooKeeperFault, WitnessGarbled, JournalUnreadable) as error:
                self._collector.know_nothing(f"the witness cannot be read: {error}")
                self._witness.note(f"cannot be read: {error}")
            except PairUnknown as error:
                self._collector.know_nothing(str(error))
                self._pair.note(str(error))
            except PairContradicted as error:
                self._collector.know_nothing(str(error), is_contradicted=True)
                self._pair.note(str(error))
            except Exception as error:
                self._collector.know_nothing(described(error))
                raise
            await trio.sleep(ASK_EVERY_S)

    async def _look_until_fault(self) -> None:
        """Follow the pair; raises what looking raises."""
        coordination = self._configuration.coordination
        async with (
            open_witness(coordination) as zookeeper,
            open_clusters(self._configuration) as clusters,
        ):
            reader = JournalReader(zookeeper, coordination.paths)
            await begin_pair(self._configuration, zookeeper, clusters)
            while True:
                await self._look(zookeeper, clusters, reader)
                self.trouble.clear(LOOKING)
                await trio.sleep(ASK_EVERY_S)

    async def _look(
        self, zookeeper: ZooKeeper, clusters: Mapping[str, Cluster], reader: JournalReader
    ) -> None:
        seen = await require_pair(self._configuration, zookeeper, clusters)
        status = await read_status(self._configuration, zookeeper, seen.known_active, reader)
        self._collector.know(status)
        self._witness.clear()
        self._pair.clear()
        if self._read_in is None:
            self._read_in = status.active.epoch
        opens_more = await self._opens_more(zookeeper)
        wrong = find_wrong(status, read_in=self._read_in, opens_more=opens_more)
        if wrong is None:
            self._fences.clear()
        elif (wrong != self._shut_out or now_ms() >= self._may_close_at_ms) and not (
            await close_breach(
                self._configuration, zookeeper, clusters, self._fences, read_in=self._read_in
            )
        ):
            self._shut_out, self._may_close_at_ms = wrong, now_ms() + SHUT_OUT_AGAIN_MS
        if status.unfinished is not None:
            await self._end_orphan(zookeeper, status.unfinished)
        if judge(seen) != Agreed() and status.unfinished is None:
            await write_due_evidence(self._configuration, zookeeper, clusters, self._evidence)
        few = [name for name, site in sorted(seen.sites.items()) if site.missing_replicas]
        if few and status.unfinished is None and now_ms() >= self._may_add_at_ms:
            self._may_add_at_ms = now_ms() + REPLICAS_AGAIN_MS
            await add_due_replicas(self._configuration, zookeeper, clusters, few, self._replicas)
        elif not few:
            self._replicas.clear()

    async def _opens_more(self, zookeeper: ZooKeeper) -> bool:
        """Note how this file differs from the mirror's; return whether it opens more sites."""
        other = await look_for_another_file(self._configuration, zookeeper)
        if other is None:
            self._file.clear()
            return False
        self._file.note(other.why)
        return other.opens_more

    async def _end_orphan(self, zookeeper: ZooKeeper, unfinished: Journal) -> None:
        """End a promotion that has had no controller for too long."""
        paths = self._configuration.coordination.paths
        is_led = await zookeeper.exists(paths.lease)
        remedy = self._orphans.look(unfinished, is_led=is_led, now_ms=now_ms())
        if remedy is not None:
            await take_over_orphan(self._configuration, unfinished, remedy, self._orphan)

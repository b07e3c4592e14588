"""Keeps the sites of a set of topics as the witness says they are, for as long as it is read."""

from collections.abc import Mapping
from typing import Final

import trio

from failover.journal.journal import Journal, JournalUnreadable
from failover.journal.journals import JournalReader
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
from failover.serve.status_collector import StatusCollector
from failover.view.status import read_status
from runtime.configuration.config import Configuration
from runtime.configuration.witness_session import open_witness
from runtime.coordination.witness import WitnessGarbled
from runtime.coordination.zookeeper import ZooKeeper, ZooKeeperFault
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
from runtime.process.unforeseen import described
from wire.net import Cluster

ASK_EVERY_S: Final = 2.0
LOOKING: Final = "looking at the pair"
"""What is under way where something unforeseen happens."""
SHUT_OUT_AGAIN_MS: Final = 600_000
"""So often closing a site is tried again that would shut the mirror out."""
REPLICAS_AGAIN_MS: Final = 600_000
"""So often a cluster is asked again for replicas of the evidence that it lacks."""


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

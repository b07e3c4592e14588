"""One flow at work: discovery, positioning, a fetcher per source and a writer per target broker.

    discovery ─► positioning ─► SourceFetcher ─► route ─► MapLog (holes only) ─► TargetWriter
                      ▲                                                               │
                      └────────────── interrupted, once all is answered ◄─────────────┘

An engine is made anew whenever the flow starts; everything it knows it reads off the two clusters.
It mirrors the share of the partitions that the assignment gives to this worker. One worker leads:
it alone shapes the target's topics and translates group positions.
"""

from collections.abc import Awaitable, Callable
from typing import Final

import trio

from mirror.clusters.links import Links
from mirror.clusters.malformed_records import OddRecords
from mirror.flow.flow_state import FlowState
from mirror.forward.fetchers import SourceFetchers
from mirror.forward.open_transactions import OpenTransactions
from mirror.forward.source import RecordWay
from mirror.forward.writers import TargetWriters
from mirror.groups.group_lags import GroupLags
from mirror.groups.sync import GroupSync
from mirror.map.map_log import MapLog
from mirror.map.reached import ReachedKeeper
from mirror.map.reverse_map import ReverseMapReader
from mirror.map.trimming import MapTrimmer
from mirror.map.unbelieved_watch import UnbelievedRecordsWatch
from mirror.mirrormaker.internal_topics import MirrorMakerTopics
from mirror.start.positioning import Positioning
from mirror.state.measurements import FlowMeasurements
from mirror.topics.acl_sync import AclFollower
from mirror.topics.discovery import Discovery
from mirror.workers.peer_progress import PeerProgress
from mirror.workers.share import ShareFollower
from offset_translation.map_records import map_topic_name
from runtime.configuration.config import FlowConfig
from runtime.coordination.map_writers import Writers
from runtime.process.clock import now_ms
from runtime.process.fault_note import FaultNote
from runtime.process.unforeseen import keep_at_work
from wire.net.errors import AuthenticationFailed, NetworkFault
from wire.values import frozen

RETRY_S: Final = 0.5


@frozen
class MapRegistries:
    """Who may write the map of this flow, that of the other direction, and the checkpoints."""

    forward: Writers
    backward: Writers
    checkpoints: Writers


class Engine:
    """The tasks of one flow and what they share."""

    def __init__(
        self,
        config: FlowConfig,
        links: Links,
        measurements: FlowMeasurements,
        writers: MapRegistries,
    ) -> None:
        """Make the parts; ``run`` starts them."""
        self.flow = flow = FlowState(config=config, measurements=measurements)
        self.map_log = MapLog(
            links.target_admin,
            config.source,
            config.replication_factor,
            writers.forward,
            OddRecords(measurements, map_topic_name(config.source)),
            flow.mirrors,
        )
        self.groups = GroupSync(flow.for_groups, links, writers.checkpoints)
        self.group_lags = GroupLags(self.groups.groups, flow.partitions)
        self.discovery = Discovery(flow.for_discovery, links, self.map_log)
        self.acls = AclFollower(flow.live_config, flow.share, links)
        self.mirrormaker = MirrorMakerTopics(flow.live_config, flow.partitions, flow.gate, links)
        self.starting_fault = FaultNote(f"{config.name}: start")
        """What keeps the flow from starting."""
        self.task_fault = FaultNote(f"{config.name}: tasks")
        """The tasks that an error has ended, and that have begun anew."""
        self.is_started = False
        self.share = ShareFollower(
            config.name,
            share=flow.share,
            partitions=flow.partitions,
            wakeups=flow.wakeups,
            map_log=self.map_log,
            take=self.discovery.take_share,
        )
        self.peer_progress = PeerProgress(
            flow.live_config,
            partitions=flow.partitions,
            share=flow.share,
            progress=flow.progress,
            links=links,
            map_log=self.map_log,
        )
        self._loaded = trio.Event()
        self._leading = trio.Event()
        self._links = links
        reverse_map = ReverseMapReader(config, flow.reverse, links, writers.backward, flow.mirrors)
        self._reverse_map = reverse_map
        self.unbelieved_watch = UnbelievedRecordsWatch(
            config, self.map_log, reverse_map, self.groups.checkpoints
        )
        self.open_transactions = OpenTransactions(flow.partitions.own, links.source_admin)
        self._registries = writers
        self._writers = TargetWriters(flow.for_producing, links)
        way = RecordWay(reverse_map, self.map_log, self._writers)
        self._trimmer = MapTrimmer(config, flow.partitions.own, links, self.map_log)
        self._fetchers = SourceFetchers(flow.for_fetching, links, way)

    async def run(self) -> None:
        """Work until cancelled."""
        await self._load()
        flow = self.flow
        positioning = Positioning(
            flow.for_positioning, self._links, self.map_log, self._registries.backward
        )
        await self._retry(self._reverse_map.catch_up)
        async with trio.open_nursery() as nursery:
            await nursery.start(self._writers.run)
            reached = ReachedKeeper(flow.live_config, flow.partitions, flow.reverse, self.map_log)
            for task in (
                self.discovery.run,
                positioning.run,
                self._reverse_map.run,
                self.share.run,
                reached.run,
                self._trimmer.run,
                self._fetchers.run,
                self.open_transactions.run,
            ):
                nursery.start_soon(keep_at_work, task, self.task_fault)
            of_all = (
                *(self.peer_progress, self.groups, self.group_lags, self.acls, self.mirrormaker),
                self.unbelieved_watch,
            )
            for part in of_all:
                nursery.start_soon(self._when_leading, part.run)
            self.is_started = True
            self._loaded.set()

    async def wait_loaded(self) -> None:
        """Return when partitions can be taken."""
        await self._loaded.wait()

    async def wait_leading(self) -> None:
        """Return when this worker leads; until its end it does."""
        await self._leading.wait()

    def lead(self) -> None:
        """Do from now on the work that one worker does for all."""
        self.flow.share.lead()
        self._leading.set()
        self.flow.wakeups.refresh.wake()

    async def _when_leading(self, task: Callable[[], Awaitable[None]]) -> None:
        await self._leading.wait()
        await keep_at_work(task, self.task_fault)

    async def drain(
        self,
        *,
        settle_s: float,
        apply_s: float,
        others: Callable[[], Awaitable[None]] | None = None,
    ) -> bool:
        """Stop fetching, let what is under way be answered, apply group positions a last time.

        ``others`` waits until the other workers have stopped as well, where the whole flow stops.
        Return whether all was settled in time.
        """
        self.flow.gate.close()
        with trio.move_on_after(settle_s) as limit:
            await self.flow.wait_settled()
            if others is not None and self.flow.share.leads:
                await others()
                await self.peer_progress.read_progress()
        is_settled = not limit.cancelled_caught
        if self.is_started:
            with trio.move_on_after(apply_s):
                await self.groups.apply_now()
        now = now_ms()
        for partition in self.flow.partitions.own.values():
            partition.pause("the flow is stopped", now)
        return is_settled

    def hold(self) -> None:
        """Stop writing at once, without forgetting where we are: the witness is out of reach."""
        self.flow.gate.close()
        now = now_ms()
        for partition in self.flow.partitions.own.values():
            self.flow.interruptions.interrupt(
                partition, "the witness is out of reach", now, at_once=True
            )

    def let_go(self) -> None:
        """Go on after ``hold``."""
        self.flow.gate.open()

    async def _load(self) -> None:
        """Read the map, however long the target stays away."""
        await self._retry(self.map_log.load)

    async def _retry(self, step: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await step()
            except NetworkFault as fault:
                is_refusal = isinstance(fault, AuthenticationFailed)
                self.starting_fault.note(str(fault), is_refusal=is_refusal)
                await trio.sleep(RETRY_S)
            else:
                self.starting_fault.clear()
                return

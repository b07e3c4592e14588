"""`failover serve --voter NAME`: looks at the sites, votes, and promotes what a majority agrees on.

Two tasks share a session with the witness. One looks and publishes its vote, an ephemeral node that
goes with the session. The other counts all votes, and where they agree for long enough it takes the
controller's lease and does what `failover promote --source-lost` does, by the same code.
"""

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

import trio

from failover.automatic.hold import read_hold
from failover.automatic.last_promotion import Clocks, LastPromotion
from failover.automatic.mirror_view import MirrorView
from failover.automatic.quorum import (
    Agreement,
    Ballots,
    Circumstances,
    InTheWay,
    Obstacle,
    Verdict,
    judge,
)
from failover.automatic.votes import Polling, Sight, Vote, read_votes
from failover.journal.commands_given import BY_SERVE
from failover.journal.execute import RollbackStuck, StepFailed
from failover.journal.journal import Journal, JournalUnreadable
from failover.journal.journals import JournalReader, find_unfinished
from failover.journal.lease import LeaseHeld, LeaseLost
from failover.journal.steps import PromotionKind
from failover.journal.store import Superseded
from failover.moving.flow import FlowControl
from failover.planning.plan import PromotionRequest
from failover.promote import PromotionRefused, open_controller
from failover.serve.automatic_metrics import AutomaticCollector
from failover.sites.site import brief
from failover.view.report import summary
from runtime.configuration.automatic_section import AutomaticConfig
from runtime.configuration.config import Configuration, ConfigurationError, FlowConfig
from runtime.configuration.witness_session import open_witness
from runtime.coordination.witness import ActiveSite, WitnessGarbled
from runtime.coordination.zookeeper import (
    BadVersion,
    NodeExists,
    NoNode,
    ZooKeeper,
    ZooKeeperFault,
)
from runtime.pair.opening import PairContradicted, PairUnknown, open_clusters
from runtime.process.clock import now_ms, uptime_ms, wall_ms
from runtime.process.fault_note import FaultNote
from runtime.process.unforeseen import keep_at_work
from wire.net import (
    AuthenticationFailed,
    BrokerUnreachable,
    Cluster,
    ConnectionClosed,
    NetworkFault,
)

_LOG = logging.getLogger(__name__)

LOOK_EVERY_S: Final = 2.0
LOOK_TIMEOUT_S: Final = 3.0
COUNT_EVERY_S: Final = 1.0
REFUSED_AGAIN_MS: Final = 30_000
"""A promotion that its plan has refused is tried again after this long."""


class VoterTaken(Exception):
    """Another process votes under this name; the message says so."""


def configured(configuration: Configuration, voter: str | None) -> AutomaticConfig | None:
    """Return by what this process votes, None where it does not; raises ConfigurationError."""
    config = configuration.failover.automatic
    if voter is None:
        if config is not None:
            _LOG.warning(
                "failover.automatic has voters, and this process is none of them: it was started"
                " without --voter"
            )
        return None
    if config is None:
        raise ConfigurationError(f"--voter {voter}: {configuration.file} has no failover.automatic")
    if voter not in config.voters:
        raise ConfigurationError(
            f"--voter {voter}: failover.automatic.voters has {', '.join(config.voters)}"
        )
    return config


async def look_at_active(cluster: Cluster) -> tuple[Sight, str]:
    """Return whether any broker of the active site answers anything, and what there was instead.

    One that does not believe us, or that we do not, is not known: our own files may be wrong, and
    another may answer in its place. It is never called gone.
    """
    with trio.move_on_after(LOOK_TIMEOUT_S):
        try:
            await cluster.wait_answer()
        except AuthenticationFailed as fault:
            return Sight.UNKNOWN, brief(fault)
        except (BrokerUnreachable, ConnectionClosed) as fault:
            return Sight.GONE, brief(fault)
        except NetworkFault as fault:
            return Sight.UNKNOWN, brief(fault)
        return Sight.ANSWERS, "it answers"
    return Sight.GONE, f"no answer within {LOOK_TIMEOUT_S:g} s"


async def why_not_healthy(cluster: Cluster, flow: FlowConfig) -> str | None:
    """Return why a flow's target should not take over; None where each moved partition is led."""
    with trio.move_on_after(LOOK_TIMEOUT_S):
        try:
            view = await cluster.metadata(refresh=True)
        except NetworkFault as fault:
            return brief(fault)
        leaderless = sorted(
            (topic.name, number)
            for topic in view.topics.values()
            if flow.moves_at(flow.target, topic.name)
            for number, partition in topic.partitions.items()
            if partition.leader < 0
        )
        if not leaderless:
            return None
        topic, number = leaderless[0]
        return f"{len(leaderless)} partitions have no leader, as {topic}-{number}"
    return f"no answer within {LOOK_TIMEOUT_S:g} s"


class Voter:
    """One voter: what it sees, what it counts, and what it does about that."""

    def __init__(
        self,
        configuration: Configuration,
        config: AutomaticConfig,
        name: str,
        collector: AutomaticCollector,
    ) -> None:
        self._configuration = configuration
        self._config = config
        self._name = name
        self._collector = collector
        self._paths = configuration.coordination.paths
        self._polling = Polling(place=config.voters[name])
        self._ballots = Ballots()
        self._last_promotion = LastPromotion()
        self._since_last_ms: int | None = None
        """How long ago that was, as counted last."""
        self._has_voted = trio.Event()
        """The vote's node tells what time it is for the witness."""
        self._mirror = MirrorView()
        self._verdict: Verdict | None = None
        self._refused: str | None = None
        """Why the promotion that was agreed on could not begin."""
        self._again_at_ms = 0
        self.trouble = FaultNote(f"voter {name}")

    async def run(self) -> None:
        """Vote and count until cancelled. Raises ZooKeeperFault where the witness is not there.

        What fails later is tried again; each task goes on beside the other, as the promotion does.
        """
        async with (
            open_witness(self._configuration.coordination) as zookeeper,
            open_clusters(self._configuration) as clusters,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(self._vote, zookeeper, clusters)
            nursery.start_soon(self._count, zookeeper)

    async def _vote(self, zookeeper: ZooKeeper, clusters: Mapping[str, Cluster]) -> None:
        while True:
            try:
                await self._vote_once(zookeeper, clusters)
            except (ZooKeeperFault, WitnessGarbled, VoterTaken) as fault:
                self.trouble.note(f"no vote: {fault}", "vote")
            else:
                self.trouble.clear("vote")
            await trio.sleep(LOOK_EVERY_S)

    async def _vote_once(self, zookeeper: ZooKeeper, clusters: Mapping[str, Cluster]) -> None:
        active = await self._active(zookeeper)
        sees, why = await self._look(zookeeper, clusters, active)
        in_the_way = self._verdict.reason if isinstance(self._verdict, Obstacle) else ""
        vote = self._polling.vote(
            sees,
            why,
            epoch=active.epoch,
            in_the_way=in_the_way,
            since_last_ms=self._since_last_ms,
        )
        await self._publish(zookeeper, vote)

    async def _look(
        self, zookeeper: ZooKeeper, clusters: Mapping[str, Cluster], active: ActiveSite
    ) -> tuple[Sight, str]:
        """Return what this voter sees; the standby and the mirror are asked where it matters."""
        sees, why = await look_at_active(clusters[active.site])
        flow = self._flow_from(active.site)
        if sees is not Sight.GONE or flow is None:
            return sees, f"{active.site}: {why}"
        unhealthy = await why_not_healthy(clusters[flow.target], flow)
        if unhealthy is not None:
            return Sight.UNKNOWN, f"{flow.target}: {unhealthy}"
        known = await FlowControl(zookeeper, self._paths, flow).known_ends()
        if self._mirror.hears(known, uptime_ms()):
            return Sight.ANSWERS, f"{active.site}: the mirror of {flow.name} hears it"
        return Sight.GONE, f"{active.site}: {why}"

    async def _publish(self, zookeeper: ZooKeeper, vote: Vote) -> None:
        """Write our vote; raises VoterTaken where another process has the name."""
        path, data = self._paths.vote(self._name), vote.encode()
        node = await zookeeper.get(path)
        if node is not None and node.ephemeral_owner != zookeeper.session_id:
            raise VoterTaken(
                f"another process votes as {self._name}, or did until a moment ago: this one waits"
            )
        try:
            if node is None:
                await zookeeper.create(path, data, ephemeral=True, make_parents=True)
            else:
                await zookeeper.set(path, data, version=node.version)
        except (NodeExists, NoNode, BadVersion) as raced:
            raise VoterTaken(f"somebody else writes the vote of {self._name}") from raced
        self._has_voted.set()

    async def _count(self, zookeeper: ZooKeeper) -> None:
        reader = JournalReader(zookeeper, self._paths)
        await self._has_voted.wait()
        while True:
            try:
                verdict = await self._judge(zookeeper, reader)
                if isinstance(verdict, Agreement):
                    await self._promote(verdict, zookeeper, reader)
            except (ZooKeeperFault, WitnessGarbled, JournalUnreadable) as fault:
                self._verdict = None
                self._ballots.forget()
                self._collector.know_nothing()
                self.trouble.note(f"votes cannot be counted: {fault}", "count")
            else:
                self.trouble.clear("count")
            await trio.sleep(COUNT_EVERY_S)

    async def _judge(self, zookeeper: ZooKeeper, reader: JournalReader) -> Verdict:
        """Count the votes as they are now; raises what reading the witness raises."""
        active = await self._active(zookeeper)
        votes = await read_votes(zookeeper, self._paths, self._config.voters)
        journals = await reader.read(active.epoch)
        unfinished = find_unfinished(journals)
        flow = self._flow_from(active.site)
        now = uptime_ms()
        self._ballots.see(votes, now)
        others = (vote for name, vote in votes.items() if name != self._name)
        counted = (vote.since_last_ms for vote in others if vote.epoch == active.epoch)
        self._since_last_ms = self._last_promotion.see(
            journals,
            active.epoch,
            clocks=await self._clocks(zookeeper, journals),
            now_ms=now,
            counted_ms=[one for one in counted if one is not None],
        )
        circumstances = Circumstances(
            active=active,
            target=None if flow is None else flow.target,
            hold=await read_hold(zookeeper, self._paths),
            unfinished=None
            if unfinished is None
            else f"the {unfinished.kind} promotion of {unfinished.site} (epoch {unfinished.epoch})",
            since_last_ms=self._since_last_ms,
        )
        verdict = judge(self._ballots, self._config, circumstances, now)
        if isinstance(verdict, Agreement) and self._refused and now < self._again_at_ms:
            verdict = Obstacle(cause=InTheWay.REFUSED, reason=self._refused)
        self._verdict = verdict
        self._collector.know(self._ballots.fresh(active.epoch, now), verdict)
        return verdict

    async def _clocks(self, zookeeper: ZooKeeper, journals: Sequence[Journal]) -> Clocks:
        """Return what time it is; of a vote that is gone, as of a session that ended, long ago."""
        last = max((journal.epoch for journal in journals), default=0)
        ours = await zookeeper.get(self._paths.vote(self._name))
        written = await zookeeper.get(self._paths.journal(last)) if last else None
        return Clocks(
            wall_ms=wall_ms(),
            witness_ms=0 if ours is None else ours.modified_ms,
            journal_ms=0 if written is None else written.modified_ms,
        )

    async def _promote(
        self, agreed: Agreement, zookeeper: ZooKeeper, reader: JournalReader
    ) -> None:
        """Promote as a person would; what is in the way is noted, and tried again later."""
        voters = " ".join(agreed.voters)
        _LOG.warning("voters %s agree that %s is to be promoted", voters, agreed.site)
        try:
            async with open_controller(
                self._configuration,
                _LOG.info,
                name=f"{BY_SERVE} automatic, voters {voters}:",
                why_stop=self._why_stop,
            ) as controller:
                again = await self._judge(zookeeper, reader)
                if not (isinstance(again, Agreement) and again.site == agreed.site):
                    return  # while the lease was waited for, somebody came back, holds, or promoted
                request = PromotionRequest(site=agreed.site, kind=PromotionKind.SOURCE_LOST)
                journal = await controller.promote(request, now_ms())
        except LeaseHeld as held:
            _LOG.info("%s is promoted by somebody else: %s", agreed.site, held)
            return
        except (
            LeaseLost,
            PromotionRefused,
            PairContradicted,
            PairUnknown,
            RollbackStuck,
            StepFailed,
            Superseded,
        ) as fault:
            self._refused = f"{agreed.site} could not be promoted: {fault}"
            self._again_at_ms = uptime_ms() + REFUSED_AGAIN_MS
            self.trouble.note(self._refused, "promotion")
            return
        self._refused = None
        self.trouble.clear("promotion")
        for line in summary(journal, self._configuration.topic_set):
            _LOG.warning("%s", line)

    async def _why_stop(self, zookeeper: ZooKeeper) -> str | None:
        """Return why a promotion that nobody has commanded must not go on."""
        hold = await read_hold(zookeeper, self._paths)
        if hold is not None:
            return f"promotions are {hold}"
        active = await self._active(zookeeper)
        votes = await read_votes(zookeeper, self._paths, self._config.voters)
        for name, vote in votes.items():
            if vote.epoch == active.epoch and vote.sees is Sight.ANSWERS:
                return f"voter {name} is answered: {vote.why}"
        return None

    async def _active(self, zookeeper: ZooKeeper) -> ActiveSite:
        """Return the active site; raises WitnessGarbled where there is none of ours."""
        node = await zookeeper.get(self._paths.active)
        if node is None:
            raise WitnessGarbled(f"the witness has no active site at {self._paths.active} yet")
        active = self._paths.read_active(node.data)
        if active.site not in self._configuration.clusters:
            raise WitnessGarbled(f"the active site {active.site} is not in the file")
        return active

    def _flow_from(self, site: str) -> FlowConfig | None:
        """Return the one flow that leads from a site and moves with promotions."""
        flows = (flow for flow in self._configuration.flows if flow.heeds_promotions)
        return next((flow for flow in flows if flow.source == site), None)


async def vote(
    configuration: Configuration, config: AutomaticConfig, name: str, collector: AutomaticCollector
) -> None:
    """Vote until cancelled."""
    voter = Voter(configuration, config, name, collector)
    await keep_at_work(partial(_follow, voter), voter.trouble, "voting")


async def _follow(voter: Voter) -> None:
    while True:
        try:
            await voter.run()
        except ZooKeeperFault as fault:
            voter.trouble.note(str(fault))
        await trio.sleep(LOOK_EVERY_S)

"""A rehearsal from its beginning to its verdict: there and back under load.

The set is promoted by the code of `failover promote`, and nothing but that set is. Whoever dies on
the way leaves a promotion that `failover serve` ends as any other, and a set that may be on the
wrong site: the next rehearsal takes it back first.
"""

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import trio

from failover.automatic.hold import read_hold
from failover.journal.commands_given import given_here
from failover.journal.journal import Journal
from failover.journal.journals import find_unfinished, read_journals
from failover.moving.flow import FlowControl
from failover.promote import CANNOT_PROMOTE, UNREADABLE
from failover.rehearsal.judgement import LoadVerdict, Numbers, judge_load
from failover.rehearsal.kept import DIED, open_store
from failover.rehearsal.load import LoadFailed, RehearsalLoad, run_load
from failover.rehearsal.logs import count_of, load_ends, make_load_topic, read_load, wait_load_ends
from failover.rehearsal.obstacles import CannotRehearse, RehearsalView, find_obstacles
from failover.rehearsal.outcome import (
    Rehearsal,
    RehearsalState,
    RehearsedLeg,
    SetOutlook,
    leg_of,
    why_not_passed,
)
from failover.rehearsal.rehearsed_set import RehearsalFailed, RehearsedSet
from failover.rehearsal.seen import LoadSeen
from failover.sites.opening import flow_between
from failover.view.readiness import look_at_readiness
from runtime.configuration.config import Configuration
from runtime.configuration.rehearsal_section import RehearsalConfig
from runtime.configuration.topic_sets import REHEARSAL_SET
from runtime.configuration.witness_session import open_witness
from runtime.coordination.zookeeper import ZooKeeper
from runtime.pair.evidence import PairSeen
from runtime.pair.opening import open_clusters, require_pair
from runtime.process.clock import monotonic_ms, now_ms
from wire.net import Cluster, NetworkFault
from wire.values import frozen

Show = Callable[[str], None]

PATIENCE_MS: Final = 60_000
"""So long the topic's copy, the first records, and copies of the last ones are waited for."""
LOOK_AGAIN_S: Final = 0.5


@frozen
class RehearsalRequest:
    """What is asked for: `what` is the command, for the record."""

    site: str
    what: str
    behind: int | None = None
    """The number of the last rehearsal that whoever asks knows of, where a newer one would do."""


async def rehearse(
    configuration: Configuration, request: RehearsalRequest, show: Show, *, wait_ms: int
) -> Rehearsal:
    """Rehearse the promotion of a site; return what came of it, as it is kept in the witness.

    `wait_ms` bounds the wait for another rehearsal to end. Raises CannotRehearse, RehearsalRuns,
    RehearsalUnreadable, LeaseLost, and what looking at the pair raises.
    """
    site = request.site
    config, home = require_rehearsable(configuration, site)
    given = given_here(request.what, now_ms())
    async with (
        open_witness(configuration.coordination) as zookeeper,
        open_store(zookeeper, configuration.coordination.paths, wait_ms=wait_ms) as store,
        open_clusters(configuration) as clusters,
    ):
        pairs = {
            name: await require_pair(of_set, zookeeper, clusters)
            for name, of_set in configuration.by_set().items()
        }
        begun, left = await store.begin(site, home, given, behind=request.behind)
        for one in left:
            show(f"rehearsal {one.number} of {one.site} was interrupted: {DIED}")
        rehearser = Rehearser(
            configuration=configuration,
            config=config,
            zookeeper=zookeeper,
            clusters=clusters,
            moved=RehearsedSet(
                configuration=configuration.of_set(REHEARSAL_SET), zookeeper=zookeeper, show=show
            ),
            site=site,
            home=home,
        )
        ended = await rehearser.carry_out(begun, pairs)
        await store.save(ended)
    return ended


def require_rehearsable(configuration: Configuration, site: str) -> tuple[RehearsalConfig, str]:
    """Return how to rehearse, and the site that is not promoted; raises CannotRehearse."""
    config = configuration.failover.rehearsal
    if config is None:
        raise CannotRehearse(
            f"{configuration.file} has no `failover.rehearsal`: with it, empty or not, the file"
            " has a set of topics to rehearse with"
        )
    if site not in configuration.clusters:
        known = ", ".join(sorted(configuration.clusters))
        raise CannotRehearse(f"unknown site {site} (the file has {known})")
    [home] = (name for name in configuration.clusters if name != site)
    return config, home


@dataclass(slots=True, kw_only=True)
class Rehearser:
    """One program that rehearses, with the right to do so in its hands."""

    configuration: Configuration
    config: RehearsalConfig
    zookeeper: ZooKeeper
    clusters: Mapping[str, Cluster]
    moved: RehearsedSet
    site: str
    home: str
    _legs: list[RehearsedLeg] = field(default_factory=list)

    async def carry_out(self, begun: Rehearsal, pairs: Mapping[str, PairSeen]) -> Rehearsal:
        """Return the rehearsal as it ended."""
        applications = await self._look_ahead(pairs)
        found = replace(begun, applications=applications)
        obstacles = tuple(find_obstacles(await self._view(pairs)))
        if obstacles:
            why = "; ".join(obstacles)
            return replace(found, state=RehearsalState.REFUSED, reason=why, ended_ms=now_ms())
        load: LoadVerdict | None = None
        reason: str | None = None
        try:
            await self.moved.bring_to(self.home)
            seen, active, other = await self._there_and_back()
            load = judge_load(seen, active, other)
            reason = why_not_passed(tuple(self._legs), load)
        except (RehearsalFailed, LoadFailed, NetworkFault, *UNREADABLE) as fault:
            reason = f"{fault}{await self.moved.where_left(self.home)}"
        return replace(
            found,
            state=RehearsalState.PASSED if reason is None else RehearsalState.FAILED,
            reason=reason,
            ended_ms=now_ms(),
            legs=tuple(self._legs),
            load=load,
        )

    async def _look_ahead(self, pairs: Mapping[str, PairSeen]) -> tuple[SetOutlook, ...]:
        """Return what would refuse a promotion of each set of applications now."""
        found: list[SetOutlook] = []
        for name in self.configuration.sets.of_applications:
            try:
                ready = await look_at_readiness(self.configuration.of_set(name), self.zookeeper)
            except CANNOT_PROMOTE as fault:
                sites = self.configuration.clusters
                [idle] = (one for one in sites if one != pairs[name].known_active.site)
                found.append(SetOutlook(set=name, site=idle, ready=None, reason=str(fault)))
            else:
                found += [
                    SetOutlook(set=name, site=one.site, ready=one.is_ready, reason=one.reason)
                    for one in ready
                ]
        return tuple(found)

    async def _view(self, pairs: Mapping[str, PairSeen]) -> RehearsalView:
        """Look at what the beginning depends on."""
        unfinished: dict[str, Journal] = {}
        for name, of_set in self.configuration.by_set().items():
            left = find_unfinished(await read_journals(self.zookeeper, of_set.coordination.paths))
            if left is not None:
                unfinished[name] = left
        active = {name: seen.known_active.site for name, seen in pairs.items()}
        unmirrored: tuple[str, ...] = ()
        start = active[REHEARSAL_SET]
        [target] = (name for name in self.configuration.clusters if name != start)
        flow = flow_between(self.moved.configuration, start, target)
        assert flow is not None, "the file has flows both ways"
        control = FlowControl(self.zookeeper, self.moved.configuration.coordination.paths, flow)
        if REHEARSAL_SET not in unfinished and await control.worker() is None:
            unmirrored = (flow.name,)
        return RehearsalView(
            site=self.site,
            home=self.home,
            active=active,
            unfinished=unfinished,
            silent={
                name: one.fault
                for seen in pairs.values()
                for name, one in seen.sites.items()
                if one.fault is not None
            },
            unmirrored=unmirrored,
            hold=await read_hold(self.zookeeper, self.configuration.coordination.paths),
        )

    async def _there_and_back(self) -> tuple[LoadSeen, Numbers, Numbers]:
        """Promote and take back under load; return what was seen, and what both sites have."""
        home, away = self.clusters[self.home], self.clusters[self.site]
        count = await make_load_topic(home, self.config.partitions)
        await self.moved.wait_plan(self.site)
        starts = (
            await load_ends(home, count),
            await wait_load_ends(away, count, PATIENCE_MS),
        )
        async with run_load(
            self.moved.configuration,
            partition_count=count,
            records_per_second=self.config.records_per_second,
            run=uuid.uuid4().hex,
        ) as load:
            await load.wait_both_on(self.home, PATIENCE_MS)
            if load.seen.sites_seen() != (self.home, self.home):
                raise RehearsalFailed(f"nothing is written to {self.home} and read from it")
            await load.last(self.config.load_ms)
            await self._go(self.site, load)
            await self._go(self.home, load)
            await load.finish()
        active = await read_load(home, starts[0], load.seen)
        until_ms = monotonic_ms() + PATIENCE_MS
        other = await read_load(away, starts[1], load.seen)
        while count_of(other) < count_of(active) and monotonic_ms() < until_ms:
            await trio.sleep(LOOK_AGAIN_S)
            other = await read_load(away, starts[1], load.seen)
        return load.seen, active, other

    async def _go(self, site: str, load: RehearsalLoad) -> None:
        began_ms = monotonic_ms()
        journal = await self.moved.promote(site)
        await load.wait_both_on(site, PATIENCE_MS)
        await load.last(self.config.load_ms)
        self._legs.append(leg_of(journal, load.seen, began_ms))

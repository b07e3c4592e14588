"""One look at the witness and at both sites, as a promotion's plan needs it."""

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final

import trio

from failover.journal.journals import find_unfinished, read_journals
from failover.journal.lease import Lease
from failover.moving.flow import FlowControl
from failover.moving.leaving import count_followers, plain_members
from failover.moving.standstill import find_standstill
from failover.planning.loss import estimate
from failover.planning.plan import SitesView, SiteView
from failover.sites.fence import why_unfenceable
from failover.sites.map_follower import MapFollower
from failover.sites.mirrored_ends import find_mirrored_ends
from failover.sites.other_log import find_other_logs, first_of
from failover.sites.site import CLIENT_ID, REQUEST_TIMEOUT_MS, Site, brief
from offset_translation.target_scan import MirroredEnd
from runtime.configuration.config import ClusterConfig, Configuration, FlowConfig
from runtime.configuration.running_flow import explain, find_differences
from runtime.coordination.known_ends import KnownEnds
from runtime.coordination.map_registry import WitnessWriters
from runtime.coordination.map_writers import Writers
from runtime.coordination.witness import WitnessGarbled, WitnessPaths, WorkerInfo
from runtime.coordination.zookeeper import ZooKeeper
from runtime.pair.opening import open_clusters, require_pair
from runtime.process.clock import now_ms
from runtime.rights.outlook import Outlook, ask_site, look_ahead, silent_site
from runtime.rights.refused import Seen
from wire.net import NetworkFault, open_cluster
from wire.net.connection import always
from wire.net.transport import SYSTEMS_OWN
from wire.topic_partition import TopicPartition

_LOG = logging.getLogger(__name__)

LOOK_TIMEOUT_S: Final = 3.0
REFUSED_FOR_S: Final = 5.0
"""A site whose hosts refuse every connection for so long is lost sooner than a silent one. A broker
that is started again is back before."""
BETWEEN_LOOKS_S: Final = 0.4
SOON_S: Final = 1.0
"""A fault that comes sooner is a refusal by the host, not silence."""
MAP_TIMEOUT_S: Final = 60.0
"""A map has room for a million holes; whether the target answers at all is known before."""


@asynccontextmanager
async def open_site(cluster: ClusterConfig, lease: Lease | None = None) -> AsyncIterator[Site]:
    """Open a cluster under its site's name; a dead one is found out by the first request.

    A caller that changes anything there gives its lease: without the right to act nothing is sent.
    """
    async with open_cluster(
        cluster.bootstrap,
        client_id=CLIENT_ID,
        request_timeout_ms=REQUEST_TIMEOUT_MS,
        security=cluster.security,
        may_send=always if lease is None else lease.may_send,
        undelivered_ms=SYSTEMS_OWN if lease is None else lease.undelivered_ms,
    ) as opened:
        yield Site(name=cluster.name, cluster=opened)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """Both ends of a flow, open."""

    flow: FlowConfig
    source: Site
    target: Site


@asynccontextmanager
async def open_ends(
    configuration: Configuration, flow: FlowConfig, lease: Lease | None = None
) -> AsyncIterator[Ends]:
    """Open both clusters of a flow, as `open_site` does."""
    clusters = configuration.clusters
    async with AsyncExitStack() as stack:
        source = await stack.enter_async_context(open_site(clusters[flow.source], lease))
        target = await stack.enter_async_context(open_site(clusters[flow.target], lease))
        yield Ends(flow=flow, source=source, target=target)


def flow_between(configuration: Configuration, source: str, target: str) -> FlowConfig | None:
    """Return the flow of this direction, None when none is configured."""
    for flow in configuration.flows:
        if (flow.source, flow.target) == (source, target):
            return flow
    return None


async def take_snapshot(
    configuration: Configuration, zookeeper: ZooKeeper, site: str, *, is_source_lost: bool = False
) -> SitesView:
    """Look at everything that promoting `site` depends on.

    A source that is said to be lost is looked at for `failover.source_lost_after_ms`.

    Writes nothing. A cluster that does not answer is part of the picture. Raises PairContradicted
    and PairUnknown, and what reading the witness raises.
    """
    paths = WitnessPaths(root=configuration.coordination.path)
    async with open_clusters(configuration) as clusters:
        active = (await require_pair(configuration, zookeeper, clusters)).known_active
    journals = await read_journals(zookeeper, paths)
    flow = flow_between(configuration, active.site, site)
    seen = SitesView(
        sites=frozenset(configuration.clusters),
        active=active.site,
        last_epoch=max([active.epoch, *(journal.epoch for journal in journals)]),
        unfinished=find_unfinished(journals),
        flow=None,
        worker=None,
        source=None,
        target=None,
        mirrored={},
    )
    if flow is None:
        return replace(seen, differing=await _why_not_to_go_on(configuration, zookeeper, seen))
    return await _look_along(configuration, zookeeper, flow, seen, is_source_lost=is_source_lost)


async def _why_not_to_go_on(
    configuration: Configuration, zookeeper: ZooKeeper, seen: SitesView
) -> str | None:
    """Return how the file differs from what the mirror ran when a promotion began that is left.

    Behind its switch no flow leads from the active site to the promoted one.
    """
    left = seen.unfinished
    flow = None if left is None else flow_between(configuration, left.source, left.site)
    if flow is None:
        return None
    paths = WitnessPaths(root=configuration.coordination.path)
    differing = await find_differences(zookeeper, paths, flow)
    return explain(flow, differing) if differing else None


async def _look_along(
    configuration: Configuration,
    zookeeper: ZooKeeper,
    flow: FlowConfig,
    seen: SitesView,
    *,
    is_source_lost: bool,
) -> SitesView:
    """Return what was seen with what a flow, its two sites and its groups add to it."""
    paths = WitnessPaths(root=configuration.coordination.path)
    control = FlowControl(zookeeper, paths, flow)
    worker = await control.worker()
    differing = await find_differences(zookeeper, paths, flow)
    writers = WitnessWriters(zookeeper, paths, flow.source, flow.target)
    async with open_ends(configuration, flow) as ends:
        lost_after_s = configuration.failover.source_lost_after_ms / 1000
        views = await _look_at_both(ends, lost_after_s if is_source_lost else None)
        # Not beside the looks: a map of many holes keeps us busy, and the sites would seem silent.
        mirrored = Mirrored(ends={}, other_log=None)
        is_there = views[flow.target].fault is None
        if is_there and is_source_lost:
            mirrored = await read_mirrored_of_lost(ends.target, flow.source, writers)
        elif is_there:
            mirrored = await _read_mirrored(ends, views[flow.source], writers)
        unfenceable = await _why_unfenceable(ends.source, views[flow.source])
        outlook = await _look_ahead(ends, views)
    members = views[flow.source].groups
    loss = standing = None
    if not is_source_lost and worker is not None:
        standing = await find_standstill(control.standing, frozenset(views[flow.source].ends))
    if is_source_lost:
        # Behind the looks: the mirror has written meanwhile that it hears nothing any more.
        known = await _known_ends(control)
        loss = estimate(known, mirrored.ends, views[flow.target].ends, now_ms())
    return replace(
        seen,
        flow=flow.name,
        is_prefixed=flow.is_prefixed,
        is_active_active=flow.is_active_active,
        worker=None if worker is None else _describe(worker),
        source=views[flow.source],
        target=views[flow.target],
        mirrored=mirrored.ends,
        differing=explain(flow, differing) if differing else None,
        unfenceable=unfenceable,
        other_log=mirrored.other_log,
        standing=standing,
        plain=plain_members(members, await count_followers(zookeeper, paths, members)),
        loss=loss,
        loss_budget=configuration.failover.loss_budget,
        outlook=outlook,
    )


async def _look_ahead(ends: Ends, views: Mapping[str, SiteView]) -> Outlook | None:
    """Return who would be refused on the target; None where the target does not tell.

    A source that does not answer is one that does not tell its rights.
    """
    source, target = views[ends.source.name], views[ends.target.name]
    used = target if source.fault is not None or not source.ends else source
    topics = {topic: topic for topic, _ in used.ends}
    try:
        with trio.fail_after(LOOK_TIMEOUT_S):
            theirs = await ask_site(ends.target.cluster, target.name)
            if source.fault is None:
                ours = await ask_site(ends.source.cluster, source.name)
            else:
                ours = silent_site(source.name, source.fault)
    except (NetworkFault, trio.TooSlowError) as fault:
        _LOG.info("who would be refused on %s is not known: %s", target.name, fault)
        return None
    return look_ahead(ours, theirs, Seen(topics=topics, groups=used.groups))


async def _known_ends(control: FlowControl) -> KnownEnds | None:
    """Return what the mirror knew of the source; garbage in the witness holds no disaster up."""
    try:
        return await control.known_ends()
    except WitnessGarbled as fault:
        _LOG.warning("what would be lost is not known: %s", fault)
        return None


async def _look_at_both(ends: Ends, lost_after_s: float | None) -> dict[str, SiteView]:
    """Return both sites by name; with a time, the source only as to whether it is lost."""
    views: dict[str, SiteView] = {}

    async def look(site: Site) -> None:
        if lost_after_s is not None and site is ends.source:
            views[site.name] = await look_whether_lost(site, lost_after_s)
        else:
            views[site.name] = await _look_at(site, ends.flow)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(look, ends.source)
        nursery.start_soon(look, ends.target)
    return views


async def _look_at(site: Site, flow: FlowConfig) -> SiteView:
    fault = f"no answer within {LOOK_TIMEOUT_S:g} s"
    with trio.move_on_after(LOOK_TIMEOUT_S):
        try:
            ends = await site.ends(await site.partitions(flow))
            groups = await site.members(flow.groups)
        except NetworkFault as error:
            fault = brief(error)
        else:
            return SiteView(name=site.name, fault=None, ends=ends, groups=groups)
    return SiteView(name=site.name, fault=fault, ends={}, groups={})


async def look_whether_lost(site: Site, after_s: float) -> SiteView:
    """Return a site without a fault as soon as a broker of it answers anything at all.

    A slow site is not a lost one: it may take writes. A site is lost that has kept silent for the
    whole time, or whose hosts have refused all connections for REFUSED_FOR_S.
    """
    fault, refused_since = f"no answer within {after_s:g} s", trio.current_time()
    with trio.move_on_after(after_s):
        while trio.current_time() - refused_since < REFUSED_FOR_S:
            began = trio.current_time()
            try:
                await site.cluster.metadata((), refresh=True)
            except NetworkFault as error:
                fault = brief(error)
                if trio.current_time() - began >= SOON_S:
                    refused_since = trio.current_time()
                await trio.sleep(BETWEEN_LOOKS_S)
            else:
                return SiteView(name=site.name, fault=None, ends={}, groups={})
    return SiteView(name=site.name, fault=fault, ends={}, groups={})


async def _why_unfenceable(site: Site, view: SiteView) -> str | None:
    """Return why these topics cannot be closed; None also where the site does not tell."""
    if view.fault is not None:
        return None
    with trio.move_on_after(LOOK_TIMEOUT_S):
        try:
            return await why_unfenceable(site.cluster, {topic for topic, _ in view.ends})
        except NetworkFault:
            return None  # what the source does not tell, the steps find out
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mirrored:
    """The mirrored end of each partition, and the partitions whose map speaks of another log."""

    ends: Mapping[TopicPartition, int]
    other_log: str | None


async def _read_mirrored(ends: Ends, source: SiteView, writers: Writers) -> Mirrored:
    """Return how far each partition is mirrored; nothing where the target does not tell."""
    follower = MapFollower(ends.target, ends.flow.source, writers)
    with trio.move_on_after(MAP_TIMEOUT_S):
        try:
            await follower.refresh()
        except NetworkFault:
            return Mirrored(ends={}, other_log=None)  # the steps find out
        reached = {partition: follower.mirrored_end(partition) for partition in follower.partitions}
        return Mirrored(
            ends={partition: end for partition, end in reached.items() if end is not None},
            other_log=await _find_other_log(ends.source, follower, source),
        )
    return Mirrored(ends={}, other_log=None)


async def read_mirrored_of_lost(target: Site, source_name: str, writers: Writers) -> Mirrored:
    """Return how far a lost source is mirrored by the target's batches, whoever wrote others.

    A partition of which they do not tell is left out, and so is what the target does not tell: the
    loss is not known there.
    """
    follower = MapFollower(target, source_name, writers)
    found: Mapping[TopicPartition, MirroredEnd] = {}
    with trio.move_on_after(MAP_TIMEOUT_S):
        try:
            await follower.refresh()
            found = await find_mirrored_ends(follower, sorted(follower.target_ends))
        except NetworkFault as fault:
            _LOG.warning("how far %s is mirrored is not known: %s", source_name, fault)
    return Mirrored(
        ends={partition: end.source_end for partition, end in found.items() if not end.untold},
        other_log=None,
    )


async def _find_other_log(site: Site, follower: MapFollower, view: SiteView) -> str | None:
    """Return of which partition the map does not speak of the source's log; None if not known."""
    if view.fault is not None:
        return None
    with trio.move_on_after(LOOK_TIMEOUT_S):
        try:
            return first_of(await find_other_logs(site, follower, view.ends))
        except NetworkFault:
            return None  # what the source does not tell, the steps find out
    return None


def _describe(worker: WorkerInfo) -> str:
    return f"process {worker.pid} on {worker.host}"

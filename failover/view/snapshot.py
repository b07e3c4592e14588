"""One look at the witness and at both sites, as a promotion's plan needs it."""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field, replace
from typing import Final

import trio

from failover.automatic.hold import read_hold
from failover.journal.journals import find_unfinished, read_journals
from failover.moving.flow import FlowControl
from failover.moving.leaving import count_followers, plain_members
from failover.moving.left_behind import begun_behind, find_left_behind
from failover.moving.standstill import find_standstill
from failover.planning.before_start import KeptOnSource, at_most
from failover.planning.loss import Loss, estimate
from failover.planning.plan import SitesView, SiteView
from failover.sites.fence import read_fence
from failover.sites.map_follower import MapFollower
from failover.sites.mirrored_ends import find_mirrored_ends
from failover.sites.one_way_topics import find_one_way_topics
from failover.sites.opening import Ends, flow_between, open_ends
from failover.sites.other_log import find_other_logs, find_recreated_copies, first_of
from failover.sites.set_groups import cut_line, groups_of_set
from failover.sites.site import LogUnavailable, Site, SiteUnclear, brief
from failover.sites.unbelieved import find_unsure_seals
from offset_translation.target_scan import MirroredEnd
from runtime.configuration.config import Configuration, FlowConfig
from runtime.configuration.running_flow import explain, find_differences
from runtime.coordination.known_ends import KnownEnds
from runtime.coordination.map_registry import WitnessWriters
from runtime.coordination.map_writers import WitnessOutdated, Writers
from runtime.coordination.witness import WitnessGarbled, WorkerInfo
from runtime.coordination.zookeeper import ZooKeeper
from runtime.pair.opening import open_clusters, require_pair
from runtime.process.clock import now_ms
from runtime.rights.closable import why_creatable, why_unfenceable
from runtime.rights.creation import bars
from runtime.rights.outlook import Outlook, ask_site, look_ahead, silent_site
from runtime.rights.refused import Seen
from runtime.rights.withheld import find_withheld
from runtime.topic_patterns import moving_patterns
from wire.net import AuthenticationFailed, NetworkFault
from wire.topic_partition import TopicPartition
from wire.values import frozen

_LOG = logging.getLogger(__name__)

LOOK_TIMEOUT_S: Final = 3.0
REFUSED_FOR_S: Final = 5.0
"""A site whose hosts refuse every connection for so long is lost sooner than a silent one. A broker
that is started again is back before."""
BETWEEN_LOOKS_S: Final = 0.4
SOON_S: Final = 1.0
"""A fault that comes sooner is a refusal by the host, not silence."""
OTHERS_NAMED: Final = 5
MAP_TIMEOUT_S: Final = 60.0
"""A map has room for a million holes; whether the target answers at all is known before."""


async def take_snapshot(
    configuration: Configuration, zookeeper: ZooKeeper, site: str, *, is_source_lost: bool = False
) -> SitesView:
    """Look at everything that promoting `site` depends on.

    A source that is said to be lost is looked at for `failover.source_lost_after_ms`.

    Writes nothing. A cluster that does not answer is part of the picture. Raises PairContradicted
    and PairUnknown, and what reading the witness raises.
    """
    paths = configuration.coordination.paths
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
        topic_set=configuration.topic_set,
    )
    if flow is None:
        differing = await _why_not_to_go_on(configuration, zookeeper, seen)
        seen = replace(seen, differing=differing)
    else:
        seen = await _look_along(
            configuration, zookeeper, flow, seen, is_source_lost=is_source_lost
        )
    # Last: somebody may hold while the sites are looked at.
    return replace(seen, hold=await read_hold(zookeeper, paths))


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
    paths = configuration.coordination.paths
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
    paths = configuration.coordination.paths
    control = FlowControl(zookeeper, paths, flow)
    worker = await control.worker()
    differing = await find_differences(zookeeper, paths, flow)
    writers = WitnessWriters(zookeeper, paths, flow.source, flow.target)
    async with open_ends(configuration, flow) as ends:
        lost_after_s = configuration.failover.source_lost_after_ms / 1000
        views = await _look_at_both(ends, configuration, lost_after_s if is_source_lost else None)
        # Not beside the looks: a map of many holes keeps us busy, and the sites would seem silent.
        mirrored = await _mirrored(ends, views, writers, is_source_lost=is_source_lost)
        unfenceable = await _why_unfenceable(ends.source, views[flow.source])
        creatable = await _why_creatable(ends.source, views[flow.source], flow)
        outlook = await _look_ahead(ends, views)
        one_way = await _one_way(ends, views, configuration)
        others_closed = await _closed_by_others(ends, views, configuration, one_way or ())
    members = views[flow.source].groups
    loss = standing = None
    if not is_source_lost and worker is not None:
        standing = await find_standstill(control.standing, frozenset(views[flow.source].ends))
    if is_source_lost:
        # Behind the looks: the mirror has written meanwhile that it hears nothing any more.
        loss = _loss(await _known_ends(control), mirrored, views[flow.target])
    return replace(
        seen,
        flow=flow.name,
        renamed=_renamed(flow, views),
        is_prefixed=flow.is_prefixed,
        is_active_active=flow.is_active_active,
        worker=None if worker is None else _describe(worker),
        source=views[flow.source],
        target=views[flow.target],
        mirrored=mirrored.ends,
        left_behind=mirrored.left_behind,
        differing=explain(flow, differing) if differing else None,
        unfenceable=unfenceable,
        creatable=creatable,
        other_log=mirrored.other_log,
        outdated=mirrored.outdated,
        map_refused=mirrored.refused,
        unbelieved=mirrored.unbelieved,
        others_closed=others_closed,
        one_way=one_way,
        unsure_seal=mirrored.unsure_seal,
        standing=standing,
        plain=plain_members(members, await count_followers(zookeeper, paths, members)),
        loss=loss,
        loss_budget=configuration.failover.loss_budget,
        outlook=outlook,
    )


def _renamed(flow: FlowConfig, views: Mapping[str, SiteView]) -> dict[str, str]:
    """Return the topics that either site has and that have another name on the target."""
    topics = {partition.topic for view in views.values() for partition in view.ends}
    names = {topic: flow.names.on_target(topic) for topic in sorted(topics)}
    return {topic: name for topic, name in names.items() if topic != name}


async def _one_way(
    ends: Ends, views: Mapping[str, SiteView], configuration: Configuration
) -> tuple[str, ...] | None:
    if views[ends.target.name].fault is not None:
        return ()
    return await find_one_way_topics(
        ends,
        flow_between(configuration, ends.target.name, ends.source.name),
        has=configuration.has,
        is_source_there=views[ends.source.name].fault is None,
    )


async def _closed_by_others(
    ends: Ends,
    views: Mapping[str, SiteView],
    configuration: Configuration,
    one_way: Collection[str],
) -> tuple[str, ...]:
    """Return a line for each site that another pair's fence closes topics of.

    What the fence closes of other sets of topics stays closed.
    """

    def has(topic: str) -> bool:
        return configuration.has(topic) and topic not in one_way

    lines = [
        await _others_closed(site, views, ends.flow, has=has) for site in (ends.source, ends.target)
    ]
    return tuple(line for line in lines if line is not None)


async def _look_ahead(ends: Ends, views: Mapping[str, SiteView]) -> Outlook | None:
    """Return who would be refused on the target; None where the target does not tell.

    A source that does not answer is one that does not tell its rights.
    """
    source, target = views[ends.source.name], views[ends.target.name]
    used = target if source.fault is not None or not source.ends else source
    names = ends.flow.names
    seen = Seen(
        topics={topic: names.on_target(topic) for topic, _ in used.ends}, groups=used.groups
    )
    try:
        with trio.fail_after(LOOK_TIMEOUT_S):
            theirs = await ask_site(ends.target.cluster, target.name)
            if source.fault is None:
                ours = await ask_site(ends.source.cluster, source.name)
            else:
                ours = silent_site(source.name, source.fault)
            kept = await find_withheld(ends.flow, seen, ours, theirs, ends.target.cluster)
    except (NetworkFault, trio.TooSlowError) as fault:
        _LOG.info("who would be refused on %s is not known: %s", target.name, fault)
        return None
    return replace(look_ahead(ours, theirs, seen), withheld=kept)


async def _known_ends(control: FlowControl) -> KnownEnds | None:
    """Return what the mirror knew of the source; garbage in the witness holds no disaster up."""
    try:
        return await control.known_ends()
    except WitnessGarbled as fault:
        _LOG.warning("what would be lost is not known: %s", fault)
        return None


async def _look_at_both(
    ends: Ends, configuration: Configuration, lost_after_s: float | None
) -> dict[str, SiteView]:
    """Return both sites by name; with a time, the source only as to whether it is lost."""
    views: dict[str, SiteView] = {}

    async def look(site: Site) -> None:
        if lost_after_s is not None and site is ends.source:
            views[site.name] = await look_whether_lost(site, lost_after_s)
        else:
            views[site.name] = await look_at_site(site, configuration, ends.flow)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(look, ends.source)
        nursery.start_soon(look, ends.target)
    return views


async def look_at_site(site: Site, configuration: Configuration, flow: FlowConfig) -> SiteView:
    """Return the ends of a site's logs and the members of its groups, or why they are not known.

    Each question may take LOOK_TIMEOUT_S: a site that answers is slow or large, and not silent.
    """
    wanted = "its topics"
    fault = None

    def ask(what: str) -> None:
        nonlocal wanted
        wanted, limit.deadline = what, trio.current_time() + LOOK_TIMEOUT_S

    with trio.move_on_after(LOOK_TIMEOUT_S) as limit:
        try:
            partitions = await site.partitions(flow)
            ask("the ends of its logs")
            ends = await site.ends(partitions)
            ask("which groups there are")
            of_set = await groups_of_set(site, configuration, flow)
            ask("who is in its groups")
            groups = await site.members(of_set.chosen)
        except NetworkFault as error:
            fault = brief(error)
    if fault is None and limit.cancelled_caught:
        fault = f"{wanted}: no answer within {LOOK_TIMEOUT_S:g} s"
    if fault is not None:
        return SiteView(name=site.name, fault=fault, ends={}, groups={})
    cut = cut_line(of_set.cut) if of_set.cut else None
    return SiteView(name=site.name, fault=None, ends=ends, groups=groups, cut=cut)


async def look_whether_lost(site: Site, after_s: float) -> SiteView:
    """Return a site without a fault as soon as a broker of it answers anything at all.

    A slow site is not a lost one: it may take writes. A site is lost that has kept silent for the
    whole time, or whose hosts have refused all connections for REFUSED_FOR_S. Of one that does not
    believe us nobody can tell.
    """
    fault, refused_since = f"no answer within {after_s:g} s", trio.current_time()
    with trio.move_on_after(after_s):
        while trio.current_time() - refused_since < REFUSED_FOR_S:
            began = trio.current_time()
            try:
                await site.cluster.wait_answer()
            except AuthenticationFailed as error:
                unsure = brief(error)
                return SiteView(name=site.name, fault=unsure, ends={}, groups={}, is_unsure=True)
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


async def _others_closed(
    site: Site, views: Mapping[str, SiteView], flow: FlowConfig, *, has: Callable[[str], bool]
) -> str | None:
    """Return what a fence closes that no promotion of this flow moves; None where nothing is told.

    Of the topics that this set `has`: those of others stay closed.

    A cluster has one fence, so this promotion replaces what another pair of sites has closed.
    """
    if views[site.name].fault is not None:
        return None
    with trio.move_on_after(LOOK_TIMEOUT_S):
        try:
            fence = await read_fence(site.cluster)
        except NetworkFault:
            return None  # what the site does not tell, the steps find out
        others = [topic for topic in fence.topics if has(topic) and site.moved(flow, topic) is None]
        return describe_others_closed(site.name, others) if others else None
    return None


def describe_others_closed(site: str, topics: Sequence[str]) -> str:
    """Return the warning about topics that another pair's fence closes."""
    more = len(topics) - OTHERS_NAMED
    named = ", ".join([*topics[:OTHERS_NAMED], *([f"and {more} more"] if more > 0 else [])])
    return (
        f"{site} is closed for writes to {named} as well, which this flow does not move (another"
        " pair's fence, or one by an earlier file): the promotion lifts it, until that pair's"
        " `failover serve` closes these topics again; let it run"
    )


async def _why_creatable(site: Site, view: SiteView, flow: FlowConfig) -> str | None:
    """Return why topics can be made behind the fence; None also where the site does not tell."""
    if view.fault is not None:
        return None
    with trio.move_on_after(LOOK_TIMEOUT_S):
        try:
            wanted = bars(moving_patterns(flow, site.name), is_moving=True)
            return await why_creatable(site.cluster, wanted)
        except NetworkFault:
            return None  # a site without rights cannot be closed by them, which is told already
    return None


@frozen
class Mirrored:
    """The mirrored end of each partition, and the partitions whose map speaks of another log."""

    ends: Mapping[TopicPartition, int]
    other_log: str | None = None
    unbelieved: str | None = None
    """What of the map is not believed."""
    unsure_seal: str | None = None
    """Of which partition of a lost source that decides where it would be sealed."""
    outdated: str | None = None
    """Why the map is not known, where the witness is older than it."""
    refused: str | None = None
    """Why nothing of the map is believed, whoever asks again."""
    left_behind: Mapping[TopicPartition, KeptOnSource] = field(default_factory=dict)
    """What stays on the source on purpose, because it was there before the flow's start."""


NOTHING_SEEN: Final = Mirrored(ends={})


async def _mirrored(
    ends: Ends, views: Mapping[str, SiteView], writers: WitnessWriters, *, is_source_lost: bool
) -> Mirrored:
    """Return what the map says; nothing where the target does not answer."""
    flow = ends.flow
    if views[flow.target].fault is not None:
        return NOTHING_SEEN
    if is_source_lost:
        ours = views[flow.target].ends
        return await read_mirrored_of_lost(ends.target, flow, writers, ours)
    return await _read_mirrored(ends, views[flow.source], writers)


def _loss(known: KnownEnds | None, mirrored: Mirrored, target: SiteView) -> Loss:
    """Return what is lost with the source, as far as anybody knows."""
    found = estimate(known, mirrored.ends, target.ends, now_ms())
    return replace(found, before_start=at_most(mirrored.left_behind))


async def _read_mirrored(ends: Ends, source: SiteView, writers: Writers) -> Mirrored:
    """Return how far each partition is mirrored; nothing where the target does not tell."""
    flow = ends.flow
    follower = MapFollower(
        ends.target, flow.source, writers, flow.mirrors, topic_set=flow.topic_set
    )
    with trio.move_on_after(MAP_TIMEOUT_S):
        try:
            await follower.refresh()
        except WitnessOutdated as fault:
            return Mirrored(ends={}, outdated=str(fault))
        except SiteUnclear as fault:
            return (
                NOTHING_SEEN
                if isinstance(fault, LogUnavailable)
                else Mirrored(ends={}, refused=brief(fault))
            )
        except NetworkFault:
            return NOTHING_SEEN  # the steps find out
        reached = {partition: follower.mirrored_end(partition) for partition in follower.partitions}
        return Mirrored(
            ends={partition: end for partition, end in reached.items() if end is not None},
            other_log=await _find_other_log(ends.source, follower, source),
            unbelieved=follower.unbelieved,
            left_behind=await find_left_behind(ends.source, follower, source.ends),
        )
    return NOTHING_SEEN


async def read_mirrored_of_lost(
    target: Site, flow: FlowConfig, writers: Writers, partitions: Collection[TopicPartition]
) -> Mirrored:
    """Return how far a lost source is mirrored by the target's batches, whoever wrote others.

    A partition of which they do not tell is left out, and so is what the target does not tell, and
    what would be sealed elsewhere by records of the map that are not believed: the loss is not
    known there.
    """
    topics = {partition.topic for partition in partitions}
    follower = MapFollower(
        target, flow.source, writers, topics.__contains__, topic_set=flow.topic_set
    )
    found: Mapping[TopicPartition, MirroredEnd] = {}
    unsure: Mapping[TopicPartition, str] = {}
    with trio.move_on_after(MAP_TIMEOUT_S):
        try:
            await follower.refresh(partitions)
            unsure = await find_unsure_seals(follower, partitions)
            known = sorted(partition for partition in partitions if follower.knows(partition))
            found = await find_mirrored_ends(follower, known)
        except WitnessOutdated as fault:
            return Mirrored(ends={}, outdated=str(fault))
        except NetworkFault as fault:
            _LOG.warning("how far %s is mirrored is not known: %s", flow.source, fault)
    return Mirrored(
        ends={
            partition: end.source_end
            for partition, end in found.items()
            if not end.untold and partition not in unsure
        },
        unbelieved=follower.unbelieved,
        unsure_seal=first_of(unsure),
        left_behind=begun_behind(follower, partitions),
    )


async def _find_other_log(site: Site, follower: MapFollower, view: SiteView) -> str | None:
    """Return of which partition the map speaks of another log than there is; None if not known."""
    if view.fault is not None:
        return None
    with trio.move_on_after(LOOK_TIMEOUT_S):
        try:
            return first_of(
                await find_other_logs(site, follower, view.ends)
                or await find_recreated_copies(follower, view.ends)
            )
        except NetworkFault:
            return None  # what the source does not tell, the steps find out
    return None


def _describe(worker: WorkerInfo) -> str:
    return f"process {worker.pid} on {worker.host}"

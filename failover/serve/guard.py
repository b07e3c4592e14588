"""Keep the idle site closed for writes, and the active one open.

A promotion that gave its source up could not fence it. When the site answers again, it would take
writes as before, also to topics made there later, and no mirror would carry them anywhere. A broker
that hangs may set or lift a fence long after it was asked to. `failover serve` watches for both.

Where records flow both ways at once (`active_active`) applications write to the idle site as well,
so it stays open. Promotions are refused then. If one was made since the configuration was read, the
file was changed for that, and the idle site is closed again.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from failover.journal.journal import Journal
from failover.journal.journals import find_unfinished, read_journals
from failover.journal.lease import Lease, LeaseHeld, LeaseLost, hold_lease
from failover.journal.steps import is_switched
from failover.sites.fence import (
    Fence,
    FenceDoesNotHold,
    fence_of,
    lasting_bars,
    set_fence,
    wait_holds,
    would_shut_us_out,
)
from failover.sites.opening import flow_between, open_site
from failover.sites.shared_fence import SharedFence, closing_flows
from failover.sites.site import brief, client_let_through
from failover.view.status import SiteStatus, Status, read_status
from runtime.configuration.config import Configuration, FlowConfig
from runtime.configuration.running_flow import explain, find_differences
from runtime.coordination.witness import WitnessGarbled
from runtime.coordination.zookeeper import ZooKeeper
from runtime.pair.evidence import Agreed, PairSeen, judge
from runtime.pair.evidence_replicas import add_replicas
from runtime.pair.opening import (
    renew_evidence,
    require_pair,
)
from runtime.process.fault_note import FaultNote
from runtime.rights.closable import why_unfenceable
from runtime.rights.creation import OF_MOVING, words_of
from wire.net import Cluster, NetworkFault
from wire.topic_partition import TopicPartition
from wire.values import frozen

_LOG = logging.getLogger(__name__)

LEASE_WAIT_MS: Final = 100
RUNS_ONE_WAY: Final = "active_active: the mirror runs false"


@frozen
class Breach:
    """A site that answers, is not active, and takes writes to topics that moved away from it."""

    site: str
    active: str
    topics: tuple[str, ...]
    is_first: bool = False
    """Whether no promotion has closed the site before: the mirror must not be shut out with all."""


class MirrorShutOut(Exception):
    """Closing a site by rights would shut out the mirror, or those who read; it says why."""


@frozen
class StrayFence:
    """A fence of a promotion on a site that is to be open.

    A broker has held the request back, or records flow both ways again. It may have no topics, and
    keep some from being made.
    """

    site: str
    topics: tuple[str, ...]


@frozen
class AnotherFile:
    """How this file differs from what mirrors run; it may be an earlier one."""

    why: str
    opens_more: bool = False
    """Whether by this file alone applications write to both sites."""


async def look_for_another_file(
    configuration: Configuration, zookeeper: ZooKeeper
) -> AnotherFile | None:
    """Return how this file differs from what mirrors run; raises ZooKeeperFault."""
    paths = configuration.coordination.paths
    found: list[str] = []
    opens_more = False
    for flow in configuration.flows:
        try:
            differing = await find_differences(zookeeper, paths, flow)
        except WitnessGarbled as fault:
            found.append(f"what the mirror of {flow.name} runs is not known: {fault}")
            continue
        found += [explain(flow, differing)] if differing else []
        opens_more |= any(one.startswith(RUNS_ONE_WAY) for one in differing)
    return AnotherFile(why="; ".join(found), opens_more=opens_more) if found else None


def find_wrong(
    status: Status, *, read_in: int | None = None, opens_more: bool = False
) -> Breach | StrayFence | None:
    """Return the fence that is wrong by what the witness says, if it can be mended now.

    While a promotion has not switched, nothing counts as wrong, because the promotion decides about
    fences. `read_in` is the epoch in which the configuration was read, None for just now. By an
    earlier file, or by one that `opens_more` than the mirror's, no site is written to beside the
    active one.
    """
    if status.unfinished is not None and not is_switched(status.unfinished.step_states):
        return None
    if opens_more or (read_in is not None and status.active.epoch > read_in):
        sites = tuple(replace(site, is_written_to=False) for site in status.sites)
        status = replace(status, sites=sites)
    return find_stray(status) or find_breach(status)


def find_stray(status: Status) -> StrayFence | None:
    """Return the fence that a promotion has left on an open site; fences of others stay."""
    for site in status.sites:
        ours = {
            (client_let_through(source=site.name, target=other.name),) for other in status.sites
        }
        is_open = site.is_active or site.is_written_to
        is_fenced = site.fenced_topics or site.denied_creation
        if is_open and is_fenced and site.allowed_clients in ours:
            return StrayFence(site=site.name, topics=site.fenced_topics)
    return None


def find_breach(status: Status) -> Breach | None:
    """Return the topics that an idle site has open: the standby's, and those that moved away.

    A standby is closed from the first start on, as mirror topics of Cluster Linking are: records
    that others write to it would stand between the mirror's.
    """
    for site in status.sites:
        if site.is_active or site.is_written_to or site.fault is not None:
            continue
        was_active = status.switched is not None and status.switched.source == site.name
        moved = _moved_topics(status.switched) if status.switched and was_active else ()
        closed = set(site.fenced_topics)
        topics = closed | {*moved, *site.open_topics}
        is_wrong = topics != closed or _lets_others_create(status, site)
        if is_wrong or _lets_another_flow_through(status, site):
            return Breach(
                site=site.name,
                active=status.active.site,
                topics=tuple(sorted(topics)),
                is_first=not was_active,
            )
    return None


def _lets_others_create(status: Status, site: SiteStatus) -> bool:
    """Tell whether topics can be made on a closed site that its fence is to keep from being made.

    Or whether a promotion that has ended still keeps any topic from being made there.
    """
    if site.due_creation is None:
        return False
    denied, due = set(site.denied_creation), set(site.due_creation)
    is_left = not (denied - due).isdisjoint(words_of(OF_MOVING))
    return not due <= denied or (is_left and status.unfinished is None)


def _lets_another_flow_through(status: Status, site: SiteStatus) -> bool:
    """Tell whether a mirror of ours may write to a closed site, but not that of the active site.

    Of three sites one stays closed when another becomes active.
    """
    ours = {client_let_through(source=site.name, target=other.name) for other in status.sites}
    allowed = set(site.allowed_clients)
    is_ours = bool(site.fenced_topics) and len(allowed) == 1 and allowed <= ours
    return is_ours and allowed != {client_let_through(source=site.name, target=status.active.site)}


async def close_breach(
    configuration: Configuration,
    zookeeper: ZooKeeper,
    clusters: Mapping[str, Cluster],
    trouble: FaultNote,
    *,
    read_in: int | None = None,
) -> bool:
    """Close the idle site, or open a site with a stray fence, while no promotion can act.

    A fault is noted in `trouble`; the next look tries again. Raises PairContradicted and
    PairUnknown: fences are left as they are then. Return False where a site cannot be closed, and
    will not be until somebody changes its rights.
    """
    paths = configuration.coordination.paths
    shared = SharedFence(configuration=configuration, zookeeper=zookeeper)
    try:
        async with hold_lease(zookeeper, paths.lease, wait_ms=LEASE_WAIT_MS) as lease:
            seen = await require_pair(configuration, zookeeper, clusters)
            status = await read_status(configuration, zookeeper, seen.known_active)
            other = await look_for_another_file(configuration, zookeeper)
            opens_more = other is not None and other.opens_more
            match find_wrong(status, read_in=read_in, opens_more=opens_more):
                case Breach() as breach:
                    # First: by this a fence is known to be of this epoch, or of an earlier one.
                    failed = await lease.act(
                        lambda: renew_evidence(configuration, clusters, seen, [breach.site])
                    )
                    await lease.act(lambda: _fence(shared, breach, lease))
                    if failed:
                        trouble.note(f"{breach.site} took no evidence: {failed[breach.site]}")
                        return True
                case StrayFence() as stray:
                    why = why_not_to_lift(seen, stray.site)
                    if why is not None:
                        trouble.note(why)
                        return True
                    await lease.act(lambda: _lift(shared, stray, lease))
                case None:
                    pass
        trouble.clear()
    except (LeaseHeld, LeaseLost) as error:
        _LOG.info("fences are not set right yet: %s", error)
    except (NetworkFault, FenceDoesNotHold) as error:
        trouble.note(f"could not be set right: {brief(error)}")
    except MirrorShutOut as error:
        trouble.note(str(error))
        return False
    return True


def why_not_to_lift(seen: PairSeen, site: str) -> str | None:
    """Return why nobody knows yet that a fence is older than the witness; None when it is.

    Whoever closes a site writes evidence of the epoch there first, and the witness is no older than
    any evidence that was seen. A fenced site without evidence was closed by an earlier version:
    then every cluster has to be heard.
    """
    fenced = seen.sites.get(site)
    if fenced is not None and fenced.fault is None and fenced.evidence is not None:
        return None
    silent = {name: one.fault for name, one in sorted(seen.sites.items()) if one.fault is not None}
    if not silent and fenced is not None:
        return None
    name, fault = next(iter(silent.items()), (site, "not looked at"))
    return (
        f"the fence on {site} stays: {site} carries no evidence of when it was closed, and {name}"
        f" does not tell whether another site is active by now ({fault}); start {name}, or open"
        f" {site} by hand"
    )


async def write_due_evidence(
    configuration: Configuration,
    zookeeper: ZooKeeper,
    clusters: Mapping[str, Cluster],
    trouble: FaultNote,
) -> None:
    """Write on each cluster what the witness says, where its evidence says something older.

    Only while no promotion can act, and none is unfinished: that one writes its own. Raises
    PairContradicted, PairUnknown, and what reading the witness raises.
    """
    paths = configuration.coordination.paths
    try:
        async with hold_lease(zookeeper, paths.lease, wait_ms=LEASE_WAIT_MS) as lease:
            seen = await require_pair(configuration, zookeeper, clusters)
            if find_unfinished(await read_journals(zookeeper, paths)) is not None:
                return
            judgement = judge(seen)
            assert isinstance(judgement, Agreed), "require_pair raises for any other"
            failed = await lease.act(
                lambda: renew_evidence(configuration, clusters, seen, judgement.stale)
            )
    except (LeaseHeld, LeaseLost) as error:
        _LOG.info("evidence is not renewed yet: %s", error)
        return
    if failed:
        trouble.note("; ".join(f"{name}: {why}" for name, why in sorted(failed.items())))
    else:
        trouble.clear()


async def add_due_replicas(
    configuration: Configuration,
    zookeeper: ZooKeeper,
    clusters: Mapping[str, Cluster],
    sites: Sequence[str],
    trouble: FaultNote,
) -> None:
    """Give the evidence on these sites the replicas that it lacks, while no promotion can act.

    What a cluster refuses is noted in `trouble`. Raises ZooKeeperFault.
    """
    paths = configuration.coordination.paths
    failed: list[str] = []
    try:
        async with hold_lease(zookeeper, paths.lease, wait_ms=LEASE_WAIT_MS) as lease:
            for name in sites:
                try:
                    added = await lease.act(partial(add_replicas, clusters[name]))
                except NetworkFault as fault:
                    failed.append(f"{name}: {brief(fault)}")
                else:
                    _LOG.info("%s: the evidence gets replicas on brokers %s", name, [*added])
    except (LeaseHeld, LeaseLost) as error:
        _LOG.info("the evidence gets no replicas yet: %s", error)
        return
    if failed:
        trouble.note("; ".join(failed))
    else:
        trouble.clear()


async def _fence(shared: SharedFence, breach: Breach, lease: Lease) -> None:
    configuration = shared.configuration
    async with open_site(configuration.clusters[breach.site], lease) as site:
        allowed = client_let_through(source=breach.site, target=breach.active)
        if breach.is_first and (why := await why_unfenceable(site.cluster, breach.topics)):
            raise MirrorShutOut(
                f"{breach.site} is not closed: {why}; or set failover.standby: open"
            )
        if breach.is_first and await would_shut_us_out(site.cluster):
            raise MirrorShutOut(
                f"{breach.site} is not closed: its super.users do not name the mirror's user, which"
                " could not write there any more; name it, or set failover.standby: open"
            )
        flow = _flow_between(configuration, breach)
        fence = (
            Fence(topics=breach.topics, allowed_clients=(allowed,))
            if flow is None
            else fence_of(
                flow,
                breach.site,
                breach.topics,
                allowed,
                sends_away=configuration.failover.sends_clients_away,
            )
        )
        lasting = lasting_bars(closing_flows(configuration, breach.site), breach.site)
        # Another pair's, or an earlier file's.
        left = (await shared.read_part(site)).bars - OF_MOVING
        fence = await shared.whole(site, replace(fence, bars=lasting | left))
        await set_fence(site.cluster, fence)
        partitions = await _partitions(site.cluster, breach.topics)
        await wait_holds(site.cluster, partitions, barred=fence.bars)
    _LOG.warning(
        "%s is now closed for writes to %s; %s is active",
        breach.site,
        ", ".join(breach.topics) or "topics that are made there",
        breach.active,
    )


def _flow_between(configuration: Configuration, breach: Breach) -> FlowConfig | None:
    """Return the flow whose topics the idle site has: that into it, or that out of it."""
    return flow_between(configuration, breach.active, breach.site) or flow_between(
        configuration, breach.site, breach.active
    )


async def _lift(shared: SharedFence, stray: StrayFence, lease: Lease) -> None:
    async with open_site(shared.configuration.clusters[stray.site], lease) as site:
        await shared.set_part(site, Fence())
    topics = ", ".join(stray.topics) or "topics that are made there"
    _LOG.warning("%s takes writes to %s again", stray.site, topics)


async def _partitions(cluster: Cluster, topics: Sequence[str]) -> list[TopicPartition]:
    view = await cluster.metadata(topics, refresh=True)
    return sorted(
        TopicPartition(topic.name, index)
        for topic in view.topics.values()
        for index in topic.partitions
    )


def _moved_topics(journal: Journal) -> set[str]:
    return {*(journal.preflight.topics or ()), *(journal.fence.topics or ())}

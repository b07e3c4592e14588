"""Look at the witness and at both clusters before acting, and make the witness at a first start."""

import re
import uuid
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Final

import trio

from runtime.configuration.config import Configuration, FlowConfig
from runtime.configuration.topic_sets import DEFAULT_SET
from runtime.coordination.witness import (
    ActiveSite,
    EvidenceNumber,
    Pair,
    SetTopics,
    WitnessGarbled,
    WitnessPaths,
)
from runtime.coordination.zookeeper import Create, NodeExists, ZooKeeper
from runtime.pair.evidence import (
    Agreed,
    Contradicted,
    Evidence,
    EvidenceUnknown,
    FirstStart,
    Judgement,
    PairSeen,
    Patterns,
    SiteSeen,
    judge,
    key_of,
)
from runtime.pair.evidence_number import read_number
from runtime.pair.evidence_replicas import added_replicas
from runtime.pair.evidence_topic import read_evidence, write_evidence
from runtime.pair.rivals import RivalsUnknown, find_candidates, find_rivals
from runtime.process.clock import now_ms
from wire.net import Cluster, ClusterView, NetworkFault, open_cluster

CLIENT_ID: Final = "failover-pair"
"""No fence lets it through by name; a fence closes none of our internal topics."""
LOOK_TIMEOUT_S: Final = 3.0
REQUEST_TIMEOUT_MS: Final = 5_000


class PairContradicted(Exception):
    """The witness and the clusters disagree; the message names what and the next command."""


class PairUnknown(Exception):
    """Nobody can tell yet whether this pair has run before; asked again later it may be known."""


@asynccontextmanager
async def open_clusters(configuration: Configuration) -> AsyncIterator[Mapping[str, Cluster]]:
    """Open every cluster of the file, by its name; a dead one is found by the first request."""
    async with AsyncExitStack() as stack:
        yield {
            name: await stack.enter_async_context(
                open_cluster(
                    cluster.bootstrap,
                    client_id=CLIENT_ID,
                    security=cluster.security.no_slower(REQUEST_TIMEOUT_MS),
                )
            )
            for name, cluster in configuration.clusters.items()
        }


async def look_at_site(
    cluster: Cluster,
    name: str,
    configuration: Configuration,
    *,
    timeout_s: float = LOOK_TIMEOUT_S,
    with_rivals: bool = False,
) -> SiteSeen:
    """Return what a cluster carries; a cluster that does not answer in time is a fault in it.

    Rivals are looked for on demand only, beyond that time: their patterns are somebody else's.
    """
    path = configuration.coordination.path
    with trio.move_on_after(timeout_s) as limit:
        try:
            view = await cluster.metadata(refresh=True)
            carried = await read_evidence(cluster, key_of(path, configuration.clusters))
        except NetworkFault as fault:
            return SiteSeen(fault=str(fault))
    if limit.cancelled_caught:
        return SiteSeen(fault=f"no answer within {timeout_s:g} s")
    seen = SiteSeen(
        cluster_id=view.cluster_id,
        topic_ids=frozenset(topic.topic_id for topic in view.topics.values() if topic.topic_id.int),
        missing_replicas=len(added_replicas(view)),
        evidence=next(
            (one for one in carried.newest if one.is_of(path, configuration.clusters)), None
        ),
        has_lost_evidence=carried.has_lost,
    )
    return (
        await _with_rivals(seen, carried.newest, view, name, configuration) if with_rivals else seen
    )


async def _with_rivals(
    seen: SiteSeen,
    evidence: Sequence[Evidence],
    view: ClusterView,
    name: str,
    configuration: Configuration,
) -> SiteSeen:
    """Return the same with other pairs that move topics of ours, or with why that is not known.

    The other sets of topics of this pair are no other pairs.
    """
    candidates = find_candidates(
        evidence,
        path=configuration.coordination.path,
        sites=tuple(configuration.clusters),
        cluster_id=view.cluster_id or "",
    )
    sets = [one.coordination.path for one in configuration.by_set().values()]
    others = [
        one
        for one in candidates
        if not any(one.is_of(path, configuration.clusters) for path in sets)
    ]
    flows = [flow for flow in configuration.flows if name in {flow.source, flow.target}]
    topics = [topic.name for topic in view.topics.values() if not topic.is_internal]
    ours = sorted(topic for topic in topics if any(flow.moves_at(name, topic) for flow in flows))
    try:
        return replace(seen, rivals=await find_rivals(others, ours))
    except RivalsUnknown as unknown:
        return replace(seen, fault=str(unknown))


async def find_garbled(zookeeper: ZooKeeper, paths: WitnessPaths) -> dict[str, str]:
    """Return the nodes about the pair that are not understood, and why, by their paths."""
    decoders: dict[str, Callable[[bytes], object]] = {
        paths.active: partial(ActiveSite.decode, topic_set=paths.topic_set),
        paths.pair: partial(Pair.decode, topic_set=paths.topic_set),
        paths.evidence_number: partial(EvidenceNumber.decode, topic_set=paths.topic_set),
    }
    garbled = {}
    for path, decode in decoders.items():
        node = await zookeeper.get(path)
        try:
            if node is not None:
                decode(node.data)
        except WitnessGarbled as error:
            garbled[path] = str(error)
    return garbled


async def look_at_pair(
    configuration: Configuration,
    zookeeper: ZooKeeper,
    clusters: Mapping[str, Cluster],
    *,
    without: Collection[str] = (),
) -> PairSeen:
    """Return what the witness and these clusters say; writes nothing.

    The nodes at the paths `without` count as lost. Raises ZooKeeperFault, and WitnessGarbled for a
    node that is not understood.
    """
    paths = configuration.coordination.paths
    # Rivals decide about a first start alone.
    is_first_start = await zookeeper.get(paths.active) is None
    sites: dict[str, SiteSeen] = {}

    async def look(name: str, cluster: Cluster) -> None:
        sites[name] = await look_at_site(cluster, name, configuration, with_rivals=is_first_start)

    async with trio.open_nursery() as nursery:
        for name, cluster in clusters.items():
            nursery.start_soon(look, name, cluster)
    # Last: a promotion may switch meanwhile, and the witness must not seem older than the evidence,
    # as a server of it does that lags behind the others.
    await zookeeper.sync()
    active, pair = await zookeeper.get(paths.active), await zookeeper.get(paths.pair)
    set_faults = await find_set_faults(configuration, zookeeper)
    journals = await zookeeper.children(paths.journals) or []
    if active is None and not is_first_start:
        # It has gone while we looked.
        return await look_at_pair(configuration, zookeeper, clusters, without=without)
    active = None if paths.active in without else active
    pair = None if paths.pair in without else pair
    is_numbered = paths.evidence_number not in without
    number = await read_number(zookeeper, paths) if is_numbered else 0
    return PairSeen(
        path=configuration.coordination.path,
        topic_set=configuration.topic_set,
        initial_active=configuration.failover.initial_active,
        active=None if active is None else paths.read_active(active.data),
        pair=None if pair is None else Pair.decode(pair.data, topic_set=paths.topic_set),
        journals={int(name) for name in journals if name.isdecimal()},
        sites=sites,
        number=number,
        set_faults=set_faults,
    )


async def find_set_faults(configuration: Configuration, zookeeper: ZooKeeper) -> list[str]:
    """Return how the witness has other sets of topics than the file, a line for each set.

    Raises WitnessGarbled.
    """
    paths, sets = configuration.coordination.paths, configuration.whole.sets
    faults: list[str] = []
    for name in sorted(await zookeeper.children(paths.sets) or ()):
        node = await zookeeper.get(paths.of_set(name).patterns)
        if node is None:
            continue  # it has not begun
        had = SetTopics.decode(node.data).topics
        if name not in sets.names:
            faults.append(
                f"the witness has the set of topics {name} ({had}), and this file has not: whoever"
                " goes by it would open and close the set's topics with others; name the set in"
                " `failover.sets`"
            )
        elif (has := sets.topics_of(name)) != had:
            faults.append(
                f"the set of topics {name} has begun with {had}, and this file gives it {has}: a"
                " topic would go to where its new set is active, without a promotion"
            )
    return faults


async def require_pair(
    configuration: Configuration, zookeeper: ZooKeeper, clusters: Mapping[str, Cluster]
) -> PairSeen:
    """Return what was seen, if nothing contradicts the witness; writes nothing.

    Raises PairContradicted; PairUnknown where there is no witness yet; and what `look_at_pair`
    raises.
    """
    seen = await look_at_pair(configuration, zookeeper, clusters)
    match judge(seen):
        case Agreed():
            return seen
        case FirstStart() if configuration.coordination.pair_path is not None:
            raise PairUnknown(
                f"the witness holds nothing of the set of topics {configuration.topic_set} at"
                f" {seen.path}: sets begin with their pair, at the first `mirror run` or `failover"
                " serve`, and `failover adopt` begins one of a pair that is older"
            )
        case FirstStart():
            raise PairUnknown(
                f"nobody has started the pair at {seen.path} yet; `mirror run` or `failover serve`"
                " starts it"
            )
        case EvidenceUnknown(reason):
            raise PairUnknown(reason)
        case Contradicted(reason):
            raise PairContradicted(reason)


async def begin_pair(
    configuration: Configuration, zookeeper: ZooKeeper, clusters: Mapping[str, Cluster]
) -> PairSeen:
    """Return what was seen, after making the witness if this is the pair's first start.

    The witness is made before the evidence: a program that dies in between leaves a pair whose
    evidence `renew_evidence` writes. All sets of topics begin at once, with the default set. Raises
    what `require_pair` raises.
    """
    paths = configuration.coordination.paths
    if paths != paths.of_pair and not await zookeeper.exists(paths.of_pair.active):
        await begin_pair(configuration.of_set(DEFAULT_SET), zookeeper, clusters)
    seen = await look_at_pair(configuration, zookeeper, clusters)
    judgement: Judgement = judge(seen)
    if isinstance(judgement, FirstStart) and paths == paths.of_pair:
        await _make_witness(configuration, zookeeper, seen)
    elif isinstance(judgement, Agreed) and seen.pair is None and knows_all_clusters(seen):
        await make_pair(zookeeper, seen)
    return await require_pair(configuration, zookeeper, clusters)


def knows_all_clusters(seen: PairSeen) -> bool:
    """Tell whether every cluster has answered."""
    return all(site.fault is None for site in seen.sites.values())


async def _make_witness(configuration: Configuration, zookeeper: ZooKeeper, seen: PairSeen) -> None:
    paths = configuration.coordination.paths
    pair = new_pair(seen).encode()
    first = ActiveSite(site=seen.initial_active, epoch=0).encode()
    made = [Create(path=paths.pair, data=pair), Create(path=paths.active, data=first)]
    await zookeeper.ensure(paths.root)
    sets = configuration.whole.sets
    for one in sets.named:
        of_set = paths.of_set(one.name)
        await zookeeper.ensure(of_set.root)
        topics = SetTopics(topics=sets.topics_of(one.name)).encode()
        made += [
            Create(path=of_set.pair, data=pair),
            Create(path=of_set.patterns, data=topics),
            Create(path=of_set.active, data=first),
        ]
    with suppress(NodeExists):  # another program was first: what it wrote counts
        await zookeeper.transaction(made)
    await make_shared(zookeeper, paths)


async def make_shared(zookeeper: ZooKeeper, paths: WitnessPaths) -> None:
    """Make the nodes below which applications write: their login may not make them itself."""
    with suppress(NodeExists):
        await zookeeper.create(paths.groups)


async def make_pair(zookeeper: ZooKeeper, seen: PairSeen) -> None:
    """Give a witness that lacks it its pair, the one that the evidence names if any.

    It is of an earlier version, or had a garbled one.
    """
    with suppress(NodeExists):  # another program was first: what it wrote counts
        await zookeeper.create(WitnessPaths(root=seen.path).pair, new_pair(seen).encode())


async def take_over_cluster_id(
    configuration: Configuration, zookeeper: ZooKeeper, name: str, cluster_id: str | None
) -> bool:
    """Have the witness know a cluster that was set up anew by its new id; return whether it was.

    The evidence on the other cluster is renewed by `failover serve`.
    """
    paths = configuration.coordination.paths
    node = await zookeeper.get(paths.pair)
    if node is None or cluster_id is None:
        return False
    pair = Pair.decode(node.data, topic_set=paths.topic_set)
    if pair.clusters.get(name) == cluster_id:
        return False
    changed = Pair(pair=pair.pair, clusters={**pair.clusters, name: cluster_id})
    await zookeeper.set(paths.pair, changed.encode(), version=node.version)
    return True


def new_pair(seen: PairSeen) -> Pair:
    """Return the pair of these clusters, under the id that their evidence has, or a new one."""
    known = [site.evidence for _, site in sorted(seen.sites.items()) if site.evidence is not None]
    ids = known[0].clusters if known else {}
    return Pair(
        pair=known[0].pair if known else uuid.uuid4().hex,
        clusters={
            name: site.cluster_id or ids.get(name, "") for name, site in sorted(seen.sites.items())
        },
    )


async def renew_evidence(
    configuration: Configuration,
    clusters: Mapping[str, Cluster],
    seen: PairSeen,
    sites: Collection[str],
) -> dict[str, str]:
    """Write on these sites what the witness says; return by site why one could not be written."""
    if seen.active is None or seen.pair is None:
        return {}
    failed: dict[str, str] = {}
    evidence = evidence_of(configuration, seen.pair, seen.active, number=seen.number)
    for name in sites:
        try:
            await write_evidence(clusters[name], evidence, now_ms(), sets_right=True)
        except NetworkFault as fault:
            failed[name] = str(fault)
    return failed


def evidence_of(
    configuration: Configuration,
    pair: Pair,
    active: ActiveSite,
    *,
    number: int,
    moving_to: str | None = None,
    moving_epoch: int | None = None,
) -> Evidence:
    """Return the evidence that says what the witness says."""
    return Evidence(
        path=configuration.coordination.path,
        pair=pair.pair,
        clusters=dict(pair.clusters),
        active=active.site,
        epoch=active.epoch,
        moving_to=moving_to,
        moving_epoch=moving_epoch,
        number=number,
        topics={flow.name: _patterns(flow) for flow in configuration.flows},
    )


def _patterns(flow: FlowConfig) -> Patterns:
    """Return the patterns of a flow's topics, and the names that it gives some on its target."""
    given = (re.escape(name) for name in sorted(flow.renames.to_source))
    return Patterns(
        include=(*(pattern.pattern for pattern in flow.topics.include), *given),
        exclude=tuple(pattern.pattern for pattern in flow.topics.exclude),
    )

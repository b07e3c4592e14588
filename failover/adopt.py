"""`failover adopt`: give a pair that has begun the sets of topics that its file names by now.

The topics of such a set were the default set's until then. So the set begins where that is active,
with its epoch, what its journals say of earlier promotions, and what people have ordered. Logs,
maps, groups and fences are not touched. No flow may run meanwhile: the old file's and the new one's
would mirror the same topics.

All of a set is written at once, last of all who is active. Whoever is killed before it leaves
nodes that say nothing by themselves, and are written again.
"""

from collections.abc import Callable, Collection, Mapping
from functools import partial

from failover.journal.journals import find_unfinished, read_journals
from failover.journal.lease import hold_lease
from runtime.configuration.config import Configuration
from runtime.configuration.topic_sets import DEFAULT_SET
from runtime.configuration.witness_session import open_witness
from runtime.coordination.witness import ActiveSite, SetTopics, WitnessPaths
from runtime.coordination.zookeeper import (
    BadVersion,
    Check,
    Create,
    NodeExists,
    NoNode,
    ZooKeeper,
)
from runtime.pair.evidence import PairSeen
from runtime.pair.opening import look_at_pair, open_clusters, renew_evidence, require_pair
from wire.net import Cluster


class CannotAdopt(Exception):
    """No set can begin now; the message says what is in the way."""


async def adopt(configuration: Configuration, *, write: bool, show: Callable[[str], None]) -> bool:
    """Show which sets of the file have not begun, and with `write` begin them; return if all have.

    Raises CannotAdopt, LeaseHeld, LeaseLost, and what looking at the pair raises.
    """
    coordination = configuration.coordination
    async with open_witness(coordination) as zookeeper, open_clusters(configuration) as clusters:
        seen = await require_pair(configuration.of_set(DEFAULT_SET), zookeeper, clusters)
        missing = await _missing(configuration, zookeeper)
        if not missing:
            show("all sets of the file have begun")
            return True
        for name, of_set in missing.items():
            show(f"set {name}: begins on {seen.known_active.site}, as the default set is there")
            await _require_at_rest(of_set, zookeeper)
        if not write:
            show("nothing was changed: --write does")
            return False
        wait_ms = 2 * coordination.session_timeout_ms
        async with hold_lease(zookeeper, coordination.paths.lease, wait_ms=wait_ms) as lease:
            for name, of_set in missing.items():
                await lease.act(partial(_begin, of_set, zookeeper))
                show(f"set {name}: begun")
            for name in (DEFAULT_SET, *missing):
                of_set = configuration.of_set(name)
                await lease.act(partial(_tell, of_set, zookeeper, clusters, show))
    return True


async def _missing(
    configuration: Configuration, zookeeper: ZooKeeper
) -> Mapping[str, Configuration]:
    """Return the sets of which the witness says nothing."""
    return {
        name: of_set
        for name, of_set in configuration.by_set().items()
        if name != DEFAULT_SET and not await zookeeper.exists(of_set.coordination.paths.active)
    }


async def _require_at_rest(of_set: Configuration, zookeeper: ZooKeeper) -> None:
    """Raise CannotAdopt while anything moves of the topics that are still the default set's."""
    paths = of_set.coordination.paths.of_pair
    unfinished = find_unfinished(await read_journals(zookeeper, paths))
    if unfinished is not None:
        raise CannotAdopt(
            f"the {unfinished.kind} promotion of {unfinished.site} (epoch {unfinished.epoch}) is"
            " unfinished: finish it or take it back by the file that it was begun with"
        )
    for flow in of_set.flows:
        ends = flow.source, flow.target
        running = await zookeeper.children(paths.workers(*ends))
        if running or await zookeeper.exists(paths.worker(*ends)):
            raise CannotAdopt(
                f"somebody runs the flow {flow.source}->{flow.target}: stop all `mirror run` of the"
                " pair first, and start them by the new file behind this"
            )


async def _begin(of_set: Configuration, zookeeper: ZooKeeper) -> None:
    """Write all that the witness has of a set; raises CannotAdopt."""
    await _require_at_rest(of_set, zookeeper)
    paths, pair = of_set.coordination.paths, of_set.coordination.paths.of_pair
    known = [await zookeeper.get(one) for one in (pair.active, pair.pair)]
    if known[0] is None or known[1] is None:
        raise CannotAdopt("the witness does not know the pair any more")
    for source, target in _copied(of_set, paths, pair):
        await _copy(zookeeper, source, target)
    await _copy_below(zookeeper, pair.journals, paths.journals)
    for epoch in await zookeeper.children(pair.all_journal_parts) or ():
        await _copy_below(
            zookeeper, f"{pair.all_journal_parts}/{epoch}", f"{paths.all_journal_parts}/{epoch}"
        )
    await zookeeper.ensure(paths.root)
    active = ActiveSite.decode(known[0].data, topic_set=DEFAULT_SET)
    topics = of_set.whole.sets.topics_of(str(of_set.topic_set))
    try:
        await zookeeper.transaction(
            (
                Check(path=pair.active, version=known[0].version),
                Create(path=paths.pair, data=known[1].data),
                Create(path=paths.patterns, data=SetTopics(topics=topics).encode()),
                Create(
                    path=paths.active,
                    data=ActiveSite(site=active.site, epoch=active.epoch).encode(),
                ),
            )
        )
    except (BadVersion, NodeExists, NoNode) as changed:
        raise CannotAdopt("the witness has changed meanwhile: look again") from changed


def _copied(
    of_set: Configuration, paths: WitnessPaths, pair: WitnessPaths
) -> Collection[tuple[str, str]]:
    """Return the nodes of flows that a set begins with, each with its copy.

    By the assignment a flow's leader fences workers that may be asleep since.
    """
    ends = [(flow.source, flow.target) for flow in of_set.flows]
    return [
        *((pair.orders(*one), paths.orders(*one)) for one in ends),
        *((pair.assignment(*one), paths.assignment(*one)) for one in ends),
    ]


async def _copy_below(zookeeper: ZooKeeper, source: str, target: str) -> None:
    for name in await zookeeper.children(source) or ():
        await _copy(zookeeper, f"{source}/{name}", f"{target}/{name}")


async def _copy(zookeeper: ZooKeeper, source: str, target: str) -> None:
    node = await zookeeper.get(source)
    if node is None:
        return
    try:
        await zookeeper.create(target, node.data, make_parents=True)
    except NodeExists:
        try:
            await zookeeper.set(target, node.data)
        except NoNode as gone:
            raise CannotAdopt(f"{target} has gone meanwhile: look again") from gone


async def _tell(
    of_set: Configuration,
    zookeeper: ZooKeeper,
    clusters: Mapping[str, Cluster],
    show: Callable[[str], None],
) -> None:
    """Have the clusters carry what the witness says of a set."""
    seen: PairSeen = await look_at_pair(of_set, zookeeper, clusters)
    answering = [name for name, site in seen.sites.items() if site.fault is None]
    failed = await renew_evidence(of_set, clusters, seen, answering)
    silent = {name: site.fault for name, site in seen.sites.items() if site.fault is not None}
    for name, why in sorted({**silent, **failed}.items()):
        show(f"{name} has no new evidence of the set {of_set.topic_set}: {why}")

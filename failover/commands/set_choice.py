"""Which sets of topics a command moves: by name, by a pattern of topics, or all.

With sets in the file one of these is asked for. A script from before sets says none, and whatever
it meant is not guessed.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import trio

from failover.journal.journals import find_unfinished, read_journals
from failover.promote import PromotionRefused
from runtime.configuration.config import Configuration
from runtime.configuration.topic_sets import (
    DEFAULT_SET,
    REHEARSAL_SET,
    NotSets,
    sets_of_topics,
)
from runtime.configuration.witness_session import open_witness
from runtime.pair.opening import open_clusters
from runtime.program.command import Options
from wire.net import Cluster, NetworkFault

LOOK_TIMEOUT_S: Final = 3.0


async def choose_sets(options: Options) -> Sequence[Configuration]:
    """Return the configuration of each set that is to be promoted, one after the other.

    Raises PromotionRefused, and what reading the witness raises.
    """
    configuration: Configuration = options.configuration
    sets = configuration.sets
    there = ", ".join(sets.names)
    if options.set is not None:
        if options.set not in sets.names:
            raise PromotionRefused(
                f"the file has no set of topics {options.set!r} (it has {there})"
            )
        return (configuration.of_set(options.set),)
    if options.topics is not None:
        found = sets_of_topics(sets, options.topics, await _moved_topics(configuration))
        if isinstance(found, NotSets):
            raise PromotionRefused(found.reason)
        return tuple(configuration.of_set(name) for name in sets.names if name in found)
    if not sets.named:
        return (configuration,)
    if len(sets.of_applications) == 1:
        return (configuration.of_set(DEFAULT_SET),)
    if not options.all:
        raise PromotionRefused(
            f"the file has sets of topics ({there}): say which with --set NAME or --topics PATTERN,"
            " or --all"
        )
    return await _not_there(configuration, options.site)


async def _not_there(configuration: Configuration, site: str) -> Sequence[Configuration]:
    """Return the sets that are not active on a site, and those whose promotion is unfinished.

    Not that of rehearsals: no application is in it.
    """
    found: list[Configuration] = []
    async with open_witness(configuration.coordination) as zookeeper:
        for name in configuration.sets.of_applications:
            of_set = configuration.of_set(name)
            paths = of_set.coordination.paths
            node = await zookeeper.get(paths.active)
            is_there = node is not None and paths.read_active(node.data).site == site
            if not is_there or find_unfinished(await read_journals(zookeeper, paths)) is not None:
                found.append(of_set)
    if not found:
        raise PromotionRefused(f"{site} is the active site of every set already")
    return found


async def _moved_topics(configuration: Configuration) -> frozenset[str]:
    """Return the topics of both sites that flows move, without those of rehearsals.

    Raises PromotionRefused where neither site tells.
    """
    topics: set[str] = set()
    silent: dict[str, str] = {}

    async def look(name: str, cluster: Cluster) -> None:
        silent[name] = f"no answer within {LOOK_TIMEOUT_S:g} s"
        with trio.move_on_after(LOOK_TIMEOUT_S):
            try:
                view = await cluster.metadata(refresh=True)
            except NetworkFault as fault:
                silent[name] = str(fault)
            else:
                topics.update(one.name for one in view.topics.values() if not one.is_internal)
                del silent[name]

    async with open_clusters(configuration) as clusters, trio.open_nursery() as nursery:
        for name, cluster in clusters.items():
            nursery.start_soon(look, name, cluster)
    if len(silent) == len(configuration.clusters):
        raise PromotionRefused(f"which topics there are is not known: {_told(silent)}")
    return frozenset(
        topic
        for topic in topics
        if any(flow.moves(topic) for flow in configuration.flows)
        and configuration.sets.set_of(topic) != REHEARSAL_SET
    )


def _told(silent: Mapping[str, str]) -> str:
    return "; ".join(f"{name}: {why}" for name, why in sorted(silent.items()))

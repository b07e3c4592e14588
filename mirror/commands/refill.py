"""`mirror refill SITE`: fill a site that came back without its records from the other one.

The other site's map of what once came from there speaks of logs that are gone, so the way back
stops before them. Without that map all that lies on the other site counts as its own: the flow back
brings everything, and its own map translates each position exactly.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

from mirror.clusters.admin import delete_topic
from mirror.clusters.links import Links, open_links
from mirror.clusters.log_ends import Ends, LogEnds, read_target_ends
from mirror.clusters.tail_reader import topic_exists
from mirror.commands.flow_without_daemon import read_map, source_ends
from mirror.commands.positions import DONE, CommandFailed
from mirror.commands.rebuild_map import refuse_beside_a_daemon
from mirror.map.known_writers import open_writers
from offset_translation.map_records import map_topic_name
from offset_translation.map_state import MapState
from runtime.configuration.config import Configuration, FlowConfig
from runtime.configuration.witness_session import open_witness
from runtime.coordination.map_registry import Anybody
from runtime.coordination.map_writers import UnbelievedRecords, Writers
from runtime.coordination.witness import WitnessGarbled
from runtime.coordination.zookeeper import ZooKeeperFault
from runtime.pair.opening import take_over_cluster_id
from runtime.process.output import print_line
from runtime.set_option import set_option
from wire.net import NetworkFault
from wire.topic_partition import TopicPartition

NAMED_AT_MOST: Final = 3


async def refill(configuration: Configuration, site: str, *, write: bool) -> int:
    """Name the map records that keep records from ``site``; with ``write`` forget them.

    Returns 0; raises CommandFailed.
    """
    away, back = flows_of(configuration.flows, site)
    if not back.is_active_active:
        for of_set in configuration.by_set().values():
            await _refuse_unless_active(of_set, back.source)
    for flow in (away, back):
        await refuse_beside_a_daemon(configuration, flow)
    clusters = configuration.clusters
    async with (
        open_links(away, clusters[site], clusters[back.source]) as links,
        open_writers(configuration) as writers_of,
    ):
        try:
            writers = writers_of(away.source, away.target)
            status = await _refill(away, links, writers, write=write)
            if write:
                if not await topic_exists(links.source_admin, map_topic_name(back.source)):
                    await writers_of(back.source, back.target).forget_log()  # lost with the site
                await _know_again(configuration, site, links)
        except NetworkFault as fault:
            raise CommandFailed(f"refill {site}: {fault}") from fault
    return status


async def _know_again(configuration: Configuration, site: str, links: Links) -> None:
    """Have the witness know a site that was set up anew; raises CommandFailed, NetworkFault."""
    coordination = configuration.coordination
    cluster_id = (await links.source_admin.metadata(refresh=True)).cluster_id
    try:
        async with open_witness(coordination) as zookeeper:
            known = [
                await take_over_cluster_id(of_set, zookeeper, site, cluster_id)
                for of_set in configuration.by_set().values()
            ]
            if any(known):
                print_line(f"{site}: known from now on by its new cluster id {cluster_id}")
    except (ZooKeeperFault, WitnessGarbled) as fault:
        raise CommandFailed(f"refill {site}: the witness: {fault}") from fault


def flows_of(flows: Sequence[FlowConfig], site: str) -> tuple[FlowConfig, FlowConfig]:
    """Return the flow that leaves a site and the one back to it; raises CommandFailed."""
    for back in flows:
        for away in flows:
            is_pair = (away.source, away.target) == (back.target, back.source)
            if back.target == site and is_pair and not (away.is_prefixed or back.is_prefixed):
                return away, back
    raise CommandFailed(
        f"refill {site}: a flow to it and one away from it are needed, without `names: prefixed`"
    )


async def _refuse_unless_active(configuration: Configuration, site: str) -> None:
    """Raise CommandFailed unless this site is active and is to stay so."""
    coordination = configuration.coordination
    paths = coordination.paths
    try:
        async with open_witness(coordination) as zookeeper:
            node = await zookeeper.get(paths.active)
            active = None if node is None else paths.read_active(node.data)
    except (ZooKeeperFault, WitnessGarbled) as fault:
        raise CommandFailed(f"the witness does not tell which site is active: {fault}") from fault
    if active is None or active.site != site or active.moving_to is not None:
        told = "no site is" if active is None else f"{active.site} is"
        moving = "" if active is None or active.moving_to is None else ", and about to move"
        raise CommandFailed(
            f"only the active site refills the other, and {told} active{moving}:"
            f" `failover promote {site} --source-lost{set_option(paths.topic_set)}` first"
        )


async def _refill(away: FlowConfig, links: Links, writers: Writers, *, write: bool) -> int:
    here = await source_ends(away, links)
    unbelieved = UnbelievedRecords(away.mirrors)
    registry = writers
    read = partial(read_map, away, links, may_be_gone=True)  # a run before may have deleted it
    topic_partitions = set((await read(writers, unbelieved)).maps)
    if unbelieved.speaks_of_topics(away.mirrors):
        # With an old copy of the witness it is these that tell what the site still holds.
        writers = Anybody("nobody is asked")
        topic_partitions = set((await read(writers)).maps)
    ends = await read_target_ends(links.target_admin, away.names, topic_partitions)
    state = await read(writers)
    state.advance(
        {
            topic_partition: one.end
            for topic_partition, one in ends.items()
            if isinstance(one, LogEnds)
        }
    )
    standing = list(still_there(here, state))
    if standing:
        named = ", ".join(f"{topic}-{index}" for topic, index in standing[:NAMED_AT_MOST])
        more = f" and {len(standing) - NAMED_AT_MOST} more" if standing[NAMED_AT_MOST:] else ""
        raise CommandFailed(
            f"{away.source} still holds records of {named}{more}: delete these topics there if"
            f" all of it is to come from {away.target}"
        )
    # The map last: while it is there, a second run does what the first one has left.
    topics = [
        topic
        for topic in (away.names.checkpoints_topic, map_topic_name(away.source))
        if await topic_exists(links.target_admin, topic)
    ]
    for topic in topics:
        if write:
            await delete_topic(links.target_admin, topic)
        told = "deleted" if write else "to be deleted"
        print_line(f"{away.target}: {topic}: {told}")
    if write:
        await registry.forget_log()
    print_line(
        f"{len(state.maps)} partitions: everything that {away.target} holds "
        f"{'is' if write else 'would be'} brought to {away.source} by the next `mirror run`"
    )
    if not write:
        print_line("nothing was changed: --write does")
    return DONE


def still_there(here: Ends, state: MapState) -> Iterable[TopicPartition]:
    """Yield the partitions of which the site has records, and the other site its earlier ones.

    Partitions of the site that nothing came from before may hold new records. A log whose leader
    does not answer is taken for one with records.
    """
    for topic_partition, ends in sorted(here.items()):
        known = state.maps.get(topic_partition)
        is_empty = isinstance(ends, LogEnds) and ends.end == 0
        if not is_empty and known is not None and known.mirrored_source_end:
            yield topic_partition

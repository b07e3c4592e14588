"""`mirror take-over`: go on where a MirrorMaker 2 that was stopped has left off.

Its position is read off its Connect worker's offsets and, as those are committed only now and
then, off the two logs themselves. The map is seeded with it; the daemon then goes on there as after
any restart (offset_translation.migration has what the map says of the time before).
"""

from collections.abc import Mapping, Sequence
from typing import Final

from mirror.clusters.links import Links, open_links
from mirror.clusters.log_ends import Ends, LogEnds, read_ends, read_target_ends
from mirror.clusters.tail_reader import TailReader, topic_exists
from mirror.commands.flow_without_daemon import read_map, source_ends
from mirror.commands.positions import DONE, NOT_ALL, CommandFailed, pick_flow
from mirror.commands.rebuild_map import (
    LEFT,
    MapRecord,
    data_batches,
    read_records,
    refuse_beside_a_daemon,
    write_records,
)
from mirror.map.known_writers import open_writers
from mirror.mirrormaker.connect_offsets import last_mirrored, offsets_topic
from offset_translation import map_records, offset_sync
from offset_translation.binary import MalformedRecord
from offset_translation.migration import Seed, find_agreed, seed_records
from offset_translation.offset_sync import OffsetSync
from offset_translation.rebuilding import CannotAlign
from runtime.configuration.config import Configuration, FlowConfig
from runtime.coordination.map_writers import Writers
from runtime.process.output import print_line
from wire.errors import ErrorCode
from wire.net import Cluster, NetworkFault
from wire.net.errors import RequestRefused
from wire.net.operations import READ_COMMITTED, describe_groups
from wire.record_batch import CorruptBatch, Record, crc_is_valid, iterate_records
from wire.topic_partition import TopicPartition
from wire.values import frozen

TAIL: Final = 2_000_000
"""So many of the target's last offsets are compared with the source's: 32 bytes for each."""
READ_UNCOMMITTED: Final = 0
NOTHING: Final = "MirrorMaker has mirrored nothing of it: it begins at the beginning"
AHEAD: Final = 2_000_000
"""At most so many source offsets behind MirrorMaker's last commit may have been mirrored."""


@frozen
class _Known:
    """The findings about all partitions."""

    offsets: Mapping[TopicPartition, int]
    syncs: Sequence[OffsetSync]
    source: Ends
    target: Ends


async def take_over(
    configuration: Configuration, flow_name: str | None, *, topic: str | None, write: bool
) -> int:
    """Print where each partition goes on, and with `write` keep it; return the exit status.

    ``topic`` is the Connect worker's offsets topic where it is not MirrorMaker's own. The status is
    1 if that cannot be told of some partition. Raises CommandFailed.
    """
    flow = pick_flow(configuration, flow_name)
    await refuse_beside_a_daemon(configuration, flow)
    clusters = configuration.clusters
    async with (
        open_links(flow, clusters[flow.source], clusters[flow.target]) as links,
        open_writers(configuration) as writers_of,
    ):
        writers = writers_of(flow.source, flow.target)
        asked = topic or offsets_topic(flow.source)
        try:
            return await _take_over(flow, links, writers, asked, write=write)
        except NetworkFault as fault:
            raise CommandFailed(f"flow {flow.name}: {fault}") from fault


async def _take_over(
    flow: FlowConfig, links: Links, writers: Writers, topic: str, *, write: bool
) -> int:
    await _refuse_beside_mirrormaker(flow, links)
    source = await source_ends(flow, links)
    known = _Known(
        offsets=last_mirrored(await _records_of(links.target_admin, topic), flow.source),
        syncs=await _syncs(flow, links),
        source=source,
        target=await read_target_ends(links.target_admin, flow.names, source),
    )
    state = await read_map(flow, links, writers)
    records: list[MapRecord] = []
    taken: set[str] = set()
    status = DONE
    for topic_partition in sorted(source):
        try:
            told, found = (
                (LEFT, [])
                if len(state.maps.get(topic_partition, ()))
                else await _take_over_one(flow, links, topic_partition, known)
            )
        except (CannotAlign, CorruptBatch) as fault:
            status = NOT_ALL
            told, found = f"cannot be taken over: {fault}", []
        print_line(f"{topic_partition}: {told}")
        records += found
        taken |= {topic_partition[0]} if found else set()
    if records:
        topics = (await links.source_admin.metadata(refresh=True)).topics
        # Of the others it may be known already: one that was made again since is not the same.
        records += [map_records.source_topic(name, topics[name].topic_id) for name in sorted(taken)]
    if not write:
        print_line("nothing was written: --write does")
    elif records:
        await write_records(flow, links, writers, records)
    return status


async def _refuse_beside_mirrormaker(flow: FlowConfig, links: Links) -> None:
    """Raise CommandFailed while the worker that writes this flow's target has members."""
    group = f"{flow.source}-mm2"
    found = (await describe_groups(links.target_admin, [group])).get(group)
    if found is not None and found.members:
        raise CommandFailed(f"flow {flow.name}: MirrorMaker runs (group {group}): stop it first")


async def _take_over_one(
    flow: FlowConfig, links: Links, topic_partition: TopicPartition, known: _Known
) -> tuple[str, list[MapRecord]]:
    """Return what to say of a partition and its records; raises CannotAlign, CorruptBatch."""
    source, target = known.source[topic_partition], known.target[topic_partition]
    if target is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return NOTHING, []
    if isinstance(source, ErrorCode) or isinstance(target, ErrorCode):
        raise CannotAlign(f"log ends: source {source!r}, target {target!r}")
    if target.end == target.start:
        if topic_partition in known.offsets:
            raise CannotAlign("MirrorMaker has mirrored it, but the target's log is empty")
        return NOTHING, []
    there = TopicPartition(flow.names.on_target(topic_partition[0]), topic_partition[1])
    first = max(target.start, target.end - TAIL)
    ends = LogEnds(start=first, end=target.end)
    tail = await read_records(links.target_data, there, ends, READ_COMMITTED)
    # What was open there is decided now, and the marker that says so lies behind the end.
    if (await read_ends(links.target_admin, [there]))[there] != target:
        raise CannotAlign("the target's log still grows")
    committed = known.offsets.get(topic_partition, source.start - 1)
    around = LogEnds(
        start=max(source.start, committed - TAIL), end=min(source.end, committed + AHEAD)
    )
    # MirrorMaker's own consumer reads uncommitted records unless it is told otherwise.
    source_log = await read_records(links.source_data, topic_partition, around, READ_UNCOMMITTED)
    agreed = find_agreed(source_log, tail)
    seed = Seed(
        partition=topic_partition, agreed=agreed, target_start=target.start, target_end=target.end
    )
    goes_on = agreed.goes_on
    told = f"goes on at {goes_on}, as target offset {target.end}"
    if agreed.target[0] > target.start:
        told += f"; before target offset {agreed.target[0]} only offset syncs are known"
    if topic_partition not in known.offsets:
        told += " (MirrorMaker had committed nothing)"
    elif goes_on != committed + 1:
        told += f" (MirrorMaker had committed {committed + 1})"
    return told, list(seed_records(seed, known.syncs))


async def _syncs(flow: FlowConfig, links: Links) -> list[OffsetSync]:
    """Return MirrorMaker's offset syncs, on whichever side it keeps them."""
    found: list[OffsetSync] = []
    hidden: list[str] = []
    for cluster, other in (
        (links.source_admin, flow.target),
        (links.target_admin, flow.source),
    ):
        topic = flow.names.offset_syncs_topic(other)
        try:
            if not await topic_exists(cluster, topic):
                continue
        except RequestRefused as refused:
            hidden.append(str(refused))  # which side has it depends on MirrorMaker's setting
            continue
        async for _, record in TailReader(cluster, topic).read_new():
            if record.key is None or record.value is None:
                continue
            try:
                found.append(offset_sync.decode(record.key, record.value))
            except MalformedRecord as fault:
                raise CommandFailed(f"{topic}: offset {record.offset}: {fault}") from fault
    if hidden and not found:
        raise CommandFailed(f"MirrorMaker's offset syncs may not be seen: {'; '.join(hidden)}")
    return found


async def _records_of(cluster: Cluster, topic: str) -> list[Record]:
    """Return the records of all partitions; in order of each key. Raises CommandFailed."""
    view = (await cluster.metadata([topic], refresh=True)).topics.get(topic)
    if view is None or view.error_code != ErrorCode.NONE:
        raise CommandFailed(f"there is no {topic}: name it with --offsets-topic")
    records: list[Record] = []
    topic_partitions = [TopicPartition(topic, index) for index in view.partitions]
    for topic_partition, ends in (await read_ends(cluster, topic_partitions)).items():
        if isinstance(ends, ErrorCode):
            raise CommandFailed(f"{topic}-{topic_partition[1]}: {ends.name}")
        async for header, batch in data_batches(cluster, topic_partition, ends, READ_COMMITTED):
            if not crc_is_valid(batch):
                raise CommandFailed(
                    f"{topic}-{topic_partition[1]}: damaged batch at {header.base_offset}"
                )
            records += iterate_records(batch)
    return records

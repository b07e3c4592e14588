"""`mirror rebuild-map`: the offset map found again from both logs, when its topic is lost.

A mirror's batches are known by their sequence, which is their target offset where nobody else
writes; so the producer id is found again as well, and the mirror goes on where it was. Where
records flow both ways, the map of the other direction knows which of the target's are its own.
"""

from array import array
from collections import Counter
from collections.abc import AsyncIterator, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from mirror.clusters.links import Links, open_links
from mirror.clusters.log_ends import Ends, LogEnds, read_target_ends
from mirror.commands.flow_without_daemon import (
    complain_of_way_back,
    read_map,
    read_map_back,
    source_ends,
)
from mirror.commands.positions import DONE, NOT_ALL, CommandFailed, pick_flow
from mirror.commands.status import workers_of
from mirror.map.known_writers import WritersOf, open_writers
from mirror.map.map_log import MAP_SETTINGS
from offset_translation import map_records
from offset_translation.map_records import MirrorProducer, Reached, map_topic_name
from offset_translation.map_state import MapState
from offset_translation.offset_map import OffsetMap
from offset_translation.rebuilding import (
    CannotAlign,
    LogDigest,
    rebuild_starts,
    run_starts,
)
from offset_translation.runs import Place
from runtime.configuration.config import Configuration, FlowConfig
from runtime.configuration.witness_session import open_witness
from runtime.coordination.map_registry import MapNotWritten, append_to_map
from runtime.coordination.map_writers import UnbelievedRecords, Writers
from runtime.coordination.witness import WitnessGarbled, WorkerInfo
from runtime.coordination.zookeeper import ZooKeeperFault
from runtime.process.output import print_line
from wire.errors import ErrorCode
from wire.net import Cluster, NetworkFault
from wire.net.operations import list_offsets, read_partition
from wire.net.topic_creation import ensure_topic
from wire.record_batch import (
    BatchHeader,
    CorruptBatch,
    crc_is_valid,
    iterate_record_heads,
)
from wire.record_batch.committed import Aborted, CommittedFilter
from wire.record_batch.header import SEQUENCES
from wire.topic_partition import TopicPartition

RECORDS_A_BATCH: Final = 1_000
LEFT: Final = "is in the map already and stays as it is"
MapRecord: TypeAlias = tuple[bytes, bytes | None]


@dataclass(slots=True, kw_only=True)
class Written:
    """A mirror's records in a target partition; ``log`` has their places."""

    log: LogDigest
    targets: "array[int]" = field(default_factory=lambda: array("q"))
    """The target offset of each."""
    producers: "Counter[MirrorProducer]"
    foreign_from: int | None = None
    """The first offset behind them that no mirror has written; None: there is none."""


@dataclass(slots=True, kw_only=True)
class RebuildEvidence:
    """The findings in the logs of all partitions."""

    records: list[MapRecord]
    producers: "Counter[MirrorProducer]"
    flow: FlowConfig
    arrived: MapState
    """The map of records that the other direction has brought into the source."""
    readable: Mapping[TopicPartition, int | ErrorCode]
    """Where the source ends for the mirror: before transactions that are under way."""


async def rebuild_map(configuration: Configuration, flow_name: str | None, *, write: bool) -> int:
    """Print the map of each partition that the topic lacks, and with `write` write it.

    Returns 0, or 1 if a partition could not be rebuilt. Raises CommandFailed.
    """
    flow = pick_flow(configuration, flow_name)
    await refuse_beside_a_daemon(configuration, flow)
    clusters = configuration.clusters
    async with (
        open_links(flow, clusters[flow.source], clusters[flow.target]) as links,
        open_writers(configuration) as writers_of,
    ):
        try:
            return await _rebuild(flow, links, writers_of, write=write)
        except NetworkFault as fault:
            raise CommandFailed(f"flow {flow.name}: {fault}") from fault


async def refuse_beside_a_daemon(configuration: Configuration, flow: FlowConfig) -> None:
    """Raise CommandFailed if somebody runs the flow, or if that cannot be known.

    All sets of topics of a direction share its map.
    """
    coordination = configuration.coordination
    workers: list[WorkerInfo] = []
    try:
        async with open_witness(coordination) as zookeeper:
            for of_set in configuration.by_set().values():
                found = await workers_of(zookeeper, of_set, flow)
                workers += [] if isinstance(found, str) else found
    except (ZooKeeperFault, WitnessGarbled) as fault:
        raise CommandFailed(
            f"the witness does not tell who runs flow {flow.name}: {fault}"
        ) from fault
    if workers:
        who = f"process {workers[0].pid} on {workers[0].host}"
        raise CommandFailed(f"flow {flow.name}: {who} runs it: stop it first")


async def _rebuild(flow: FlowConfig, links: Links, writers_of: WritersOf, *, write: bool) -> int:
    writers = writers_of(flow.source, flow.target)
    source = await source_ends(flow, links)
    backward = writers_of(flow.target, flow.source)
    unbelieved = UnbelievedRecords(flow.brings)
    arrived = await read_map_back(flow, links, backward, unbelieved)
    complain_of_way_back(unbelieved, flow)
    arrived.advance({k: ends.end for k, ends in source.items() if isinstance(ends, LogEnds)})
    known = (await read_map(flow, links, writers, may_be_gone=True)).maps
    target = await read_target_ends(links.target_admin, flow.names, set(source))
    topics = (await links.source_admin.metadata(refresh=True)).topics
    readable = await list_offsets(links.source_admin, source, isolation_level=flow.isolation_level)
    found = RebuildEvidence(
        records=[], producers=Counter(), flow=flow, arrived=arrived, readable=readable
    )
    status = DONE
    for topic_partition, ends in sorted(source.items()):
        name = str(topic_partition)
        if len(known.get(topic_partition, ())):
            print_line(f"{name}: {LEFT}")
            continue
        try:
            there = TopicPartition(flow.names.on_target(topic_partition[0]), topic_partition[1])
            told = await _rebuild_one(links, (topic_partition, there), ends, target, found)
            print_line(f"{name}: {told}")
        except (CannotAlign, CorruptBatch) as fault:
            status = NOT_ALL
            print_line(f"{name}: cannot be rebuilt: {fault}")
    if not found.producers:
        return status
    for name in sorted({topic for topic, _ in source}):
        found.records.append(map_records.source_topic(name, topics[name].topic_id))
    # The one announced last is the one that writes on.
    by_use = reversed(found.producers.most_common())
    found.records.extend([map_records.mirror_producer(producer) for producer, _ in by_use])
    if write:
        await write_records(flow, links, writers, found.records)
        print_line(f"{len(found.records)} records: {map_topic_name(flow.source)}")
    else:
        print_line("nothing was written: --write does")
    return status


async def _rebuild_one(
    links: Links,
    topic_partitions: tuple[TopicPartition, TopicPartition],
    source: LogEnds | ErrorCode,
    ends: Ends,
    found: RebuildEvidence,
) -> str:
    """Add one partition's records to what was found and say what they are.

    ``topic_partitions`` are its names on source and target.
    Raises CannotAlign, CorruptBatch.
    """
    topic_partition, there = topic_partitions
    target = ends[topic_partition]
    if isinstance(source, ErrorCode) or isinstance(target, ErrorCode):
        raise CannotAlign(f"log ends: source {source!r}, target {target!r}")
    if target.end == 0:
        return "the target is empty: nothing to rebuild"
    backward = found.arrived.maps.get(topic_partition)
    if backward is None or backward.mirrored_source_end is None:
        written = await _read_target(links, there, target)
    else:
        written = await _read_shared(links, there, target, backward)
    records = await _starts(links, topic_partition, source, written, found)
    found.records.extend(records)
    found.producers += written.producers
    return f"{len(written.log)} mirrored records, {len(records)} boundaries"


async def _read_target(links: Links, topic_partition: TopicPartition, ends: LogEnds) -> Written:
    """Return a mirror's records, and where those of others begin; raises CannotAlign."""
    written = Written(log=LogDigest(), producers=Counter())
    async for header, batch in read_partition(
        links.target_data, *topic_partition, ends.start, ends.end
    ):
        if not _is_mirrored(header):
            if written.foreign_from is None:
                written.foreign_from = header.base_offset
            continue
        if written.foreign_from is not None:
            raise CannotAlign(
                f"mirrored records at target offset {header.base_offset} lie behind others at "
                f"{written.foreign_from}, and no map of the other direction tells whose those are: "
                "`mirror refill` has a site that rests filled anew"
            )
        written.producers[
            MirrorProducer(producer_id=header.producer_id, producer_epoch=header.producer_epoch)
        ] += 1
        _digest(written.log, header, batch)
    written.targets = written.log.offsets
    return written


async def _read_shared(
    links: Links, topic_partition: TopicPartition, ends: LogEnds, backward: OffsetMap
) -> Written:
    """Return a mirror's records among the target's own, each with its place; raises CannotAlign."""
    written = Written(log=LogDigest(), producers=Counter())
    known: set[int] = set()
    following = 0
    async for header, batch in read_partition(
        links.target_data, *topic_partition, ends.start, ends.end
    ):
        if not is_copy(header, backward, known):
            if written.foreign_from is None:
                written.foreign_from = header.base_offset
            continue
        first = following if known else header.base_sequence
        if first % SEQUENCES != header.base_sequence:
            raise CannotAlign(
                f"the mirror's batch at target offset {header.base_offset} has sequence "
                f"{header.base_sequence}, not {first % SEQUENCES}"
            )
        written.foreign_from = None
        known.add(header.producer_id)
        written.producers[
            MirrorProducer(producer_id=header.producer_id, producer_epoch=header.producer_epoch)
        ] += 1
        here = LogDigest()
        _digest(here, header, batch)
        written.targets.extend(here.offsets)
        following = first + len(here)
        for at, digest in zip(range(first, following), here.digests, strict=True):
            written.log.add(at, digest)
    return written


def is_copy(header: BatchHeader, backward: OffsetMap, known: Container[int]) -> bool:
    """Whether a target's batch came from the source.

    ``backward`` maps the target's own records to the source; behind its end only ``known``
    producer ids of mirrors tell.
    """
    if header.is_control or header.is_transactional or header.producer_id < 0:
        return False
    at, end = header.base_offset, backward.mirrored_source_end
    if end is None or at >= end:
        return header.producer_id in known
    place = backward.place_of_source(at)
    return place is None or backward.source_of_place(place) != at


def _is_mirrored(header: BatchHeader) -> bool:
    return (
        header.producer_id >= 0
        and not header.is_control
        and header.base_sequence == header.base_offset % SEQUENCES
    )


async def _starts(
    links: Links,
    topic_partition: TopicPartition,
    source: LogEnds,
    written: Written,
    found: RebuildEvidence,
) -> list[MapRecord]:
    """Return the map's records for one partition; raises CannotAlign."""
    readable_end = found.readable[topic_partition]
    if isinstance(readable_end, ErrorCode):
        raise CannotAlign(f"last stable offset of the source: {readable_end.name}")
    log = await read_records(
        links.source_data,
        topic_partition,
        replace(source, end=readable_end),
        found.flow.isolation_level,
        left_out=found.arrived.producer_ids,
    )
    starts = rebuild_starts(log, written.log, source_has_its_first=source.start == 0)
    runs = run_starts(written.log.offsets, written.targets)
    records: list[MapRecord] = [
        map_records.piece_start(*topic_partition, source_start=source_start, place=first)
        for source_start, first in starts
    ]
    records += [
        map_records.run_start(*topic_partition, place=at, target_start=to) for at, to in runs
    ]
    last_source, last_place = starts[-1]
    place_end = Place(written.log.offsets[-1] + 1)
    end = Reached(place=place_end, target_end=written.targets[-1] + 1)
    if found.flow.is_active_active:
        records.append(map_records.reached(*topic_partition, end))
    elif written.foreign_from is not None:
        source_end = last_source + end.place - last_place
        records.append(
            map_records.seal(*topic_partition, source_end=source_end, target_end=end.target_end)
        )
    return records


async def read_records(
    cluster: Cluster,
    topic_partition: TopicPartition,
    ends: LogEnds,
    isolation_level: int,
    *,
    left_out: Container[int] = (),
) -> LogDigest:
    """Return the records in a range of a log; raises CorruptBatch and NetworkFault.

    Records of the first and the last batch that lie outside the range are included. Records of
    producers that are ``left_out`` are not.
    """
    log = LogDigest()
    async for header, batch in data_batches(cluster, topic_partition, ends, isolation_level):
        if header.producer_id not in left_out:
            _digest(log, header, batch)
    return log


async def data_batches(
    cluster: Cluster, topic_partition: TopicPartition, ends: LogEnds, isolation_level: int
) -> AsyncIterator[tuple[BatchHeader, memoryview]]:
    """Yield what a range of a log holds, without control batches and aborted transactions.

    Read uncommitted, those are left in.
    """
    reader = read_partition(
        cluster, *topic_partition, ends.start, ends.end, isolation_level=isolation_level
    )
    aborted: object = None
    committed = CommittedFilter(())
    async for header, batch in reader:
        if reader.aborted is not aborted:
            aborted = reader.aborted
            committed = CommittedFilter(
                [
                    Aborted(producer_id=one.producer_id, first_offset=one.first_offset)
                    for one in reader.aborted
                ]
            )
        if not committed.is_left_out(header):
            yield header, batch


def _digest(log: LogDigest, header: BatchHeader, batch: memoryview) -> None:
    """Add a batch's records: their times, keys, values and headers are what a mirror keeps."""
    if not crc_is_valid(batch):
        raise CorruptBatch(0, f"checksum of the batch at offset {header.base_offset}")
    for head in iterate_record_heads(batch):
        log.add(head.offset, hash((head.timestamp_ms, head.tail)))


async def write_records(
    flow: FlowConfig, links: Links, writers: Writers, records: Sequence[MapRecord]
) -> None:
    """Append records to the flow's map; raises CommandFailed, NetworkFault."""
    topic = map_topic_name(flow.source)
    await ensure_topic(
        links.target_admin,
        topic,
        replication_factor=flow.replication_factor,
        configs=MAP_SETTINGS,
    )
    try:
        await append_to_map(links.target_admin, topic, records, writers)
    except MapNotWritten as fault:
        raise CommandFailed(f"{flow.target}: {fault}") from fault

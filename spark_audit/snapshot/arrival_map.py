"""Reads the map of what came to a cluster from the other site: who brought it."""

from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass
from typing import Final

from offset_translation import MapState, map_topic_name
from offset_translation.binary import MalformedRecord
from offset_translation.map_records import (
    FlowBegunKey,
    MirrorProducerKey,
    SourceTopicKey,
    WriterKey,
    decode_key,
    partition_of,
)
from offset_translation.renamed_keys import Renaming, renamed
from runtime.coordination.map_writers import MapReading, UnbelievedRecords, Writers, note_unbelieved
from runtime.set_option import set_option
from spark_audit.snapshot.origins import Arrivals
from spark_audit.snapshot.seals import CannotTell
from wire.errors import ErrorCode, describe
from wire.net import Cluster, NetworkFault
from wire.net.operations import list_offsets
from wire.net.partition_operations import read_partition
from wire.record_batch import CorruptBatch, Record, crc_is_valid, iterate_records
from wire.topic_partition import TopicPartition

MOST_COMPARED: Final = 10_000
"""So many records that are not believed are held against the others; with more, none is."""
_EARLIEST: Final = -2
_LATEST: Final = -1


@dataclass(frozen=True, slots=True)
class ReadMap:
    """What a map says by the records that are believed."""

    arrivals: Arrivals
    state: MapState
    unbelieved: str | None
    """What others say that is not so by these, and who they are; None where they say nothing."""


@dataclass(frozen=True, slots=True)
class MapOf:
    """The map of all that came from `source`."""

    source: str
    names: Renaming | None = None
    """Other names of its topics, by which they go; topics without one are left out."""


async def read_map(
    cluster: Cluster,
    asked: MapOf,
    writers: Writers,
    *,
    name: str,
    partitions: Collection[TopicPartition],
    told_set: str | None = None,
) -> ReadMap:
    """Return what the map that is asked for says; nothing where nobody has written any.

    Records of producers that are not among its `writers` are not believed. They are named where
    they say something else of these `partitions`, with a command for `told_set`.

    Raises CannotTell, with the cluster's name, for one that cannot be read to its end: a producer
    id that is not known makes what it brought look like the site's own.
    """
    topic, names = map_topic_name(asked.source), asked.names
    arrivals, state = Arrivals(), MapState()
    topics = {partition.topic for partition in partitions}
    unbelieved = UnbelievedRecords(topics.__contains__)
    others: list[Record] = []
    try:
        async for producer_id, is_believed, found in _records(cluster, topic, writers):
            record = found if names is None else found._replace(key=renamed(found.key, names))
            if record.key is None and found.key is not None:
                continue
            if is_believed:
                arrivals.replay(record.key, record.value)
                state.replay(record.key, record.value)
                continue
            about = partition_of(record.key)
            await note_unbelieved(writers, unbelieved, producer_id, record, about)
            is_of_others = about and not any(one.topic in topics for one in about)
            if len(others) < MOST_COMPARED and not is_of_others:
                others.append(record)
    except (NetworkFault, CorruptBatch) as fault:
        raise CannotTell(f"cluster {name}: {topic}: {fault}") from fault
    except _Unreadable as reason:
        raise CannotTell(f"cluster {name}: {topic}: {reason}") from reason
    more = unbelieved.count > len(others)
    says_else = more or any(_says_else(state, record, partitions) for record in others)
    told = _describe(f"{name} {topic}", unbelieved, set_option(told_set)) if says_else else None
    return ReadMap(arrivals, state, told)


def _describe(where: str, unbelieved: UnbelievedRecords, of_set: str) -> str:
    return (
        f"{where} holds {unbelieved.count} records that are not believed, as the witness does not"
        f" know their writers ({'; '.join(unbelieved.describe())}); if they are the mirror's"
        f" own, `failover recover --believe-maps --write{of_set}` has them believed"
    )


def _says_else(state: MapState, record: Record, partitions: Collection[TopicPartition]) -> bool:
    """Tell whether a record says of one of these partitions what the state has not.

    Another pair of sites may have its map in the same topic.
    """
    try:
        key = decode_key(record.key or b"")
    except MalformedRecord:
        return False
    match key:
        case MirrorProducerKey() | WriterKey() | FlowBegunKey():
            return False
        case SourceTopicKey(topic=topic):
            is_ours = any(one.topic == topic for one in partitions)
        case _:
            is_ours = TopicPartition(key.topic, key.partition) in partitions
    said = [value for _, value in state.records_of(record.key or b"")]
    return is_ours and record.value not in said


class _Unreadable(Exception):
    """The topic cannot be read; the message is the cluster's reason."""


async def _records(
    cluster: Cluster, topic: str, writers: Writers
) -> AsyncIterator[tuple[int, bool, Record]]:
    """Yield every record with its producer and whether that is believed.

    Raises MapGone where there is none, and our programs have written some.
    """
    view = (await cluster.metadata([topic], refresh=True)).topics.get(topic)
    if view is None or view.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        await writers.require_unwritten(is_there=False)
        return
    if view.error_code != ErrorCode.NONE:
        raise _Unreadable(describe(view.error_code))
    start, stop = [
        (await list_offsets(cluster, {TopicPartition(topic, 0)}, edge))[TopicPartition(topic, 0)]
        for edge in (_EARLIEST, _LATEST)
    ]
    for answer in (start, stop):
        if isinstance(answer, ErrorCode):
            raise _Unreadable(answer.name)
    is_empty = True
    async for found in _told_apart(cluster, topic, start, stop, writers):
        is_empty = False
        yield found
    if is_empty:
        await writers.require_unwritten(is_there=True)


async def _told_apart(
    cluster: Cluster, topic: str, start: int, stop: int, writers: Writers
) -> AsyncIterator[tuple[int, bool, Record]]:
    reading = MapReading()
    async for header, batch in read_partition(cluster, topic, 0, start, stop):
        if not crc_is_valid(batch):
            raise _Unreadable(f"the checksum of the batch at offset {header.base_offset} fails")
        if header.is_control:
            continue
        is_believed = await writers.believes(header.producer_id, header.base_offset, reading)
        for record in iterate_records(batch):
            yield header.producer_id, is_believed, record

"""Reads the map of what came to a cluster from the other site: who brought it."""

from collections.abc import AsyncIterator
from typing import Final

from offset_translation import MapState, map_topic_name
from runtime.coordination.map_writers import Reading, Writers
from spark_audit.snapshot.origins import Arrivals
from spark_audit.snapshot.seals import CannotTell
from wire.errors import ErrorCode, describe
from wire.net import Cluster, NetworkFault
from wire.net.operations import list_offsets
from wire.net.partition_operations import read_partition
from wire.record_batch import CorruptBatch, Record, crc_is_valid, iterate_records
from wire.topic_partition import TopicPartition

_EARLIEST: Final = -2
_LATEST: Final = -1


async def read_map(
    cluster: Cluster, source: str, writers: Writers, *, name: str
) -> tuple[Arrivals, MapState]:
    """Return what the map of all that came from `source` says; nothing while there is no map.

    Records of producers that are not among its `writers` say nothing.

    Raises CannotTell, with the cluster's name, for one that cannot be read to its end: a producer
    id that is not known makes what it brought look like the site's own.
    """
    topic = map_topic_name(source)
    arrivals, state = Arrivals(), MapState()
    try:
        async for record in _records(cluster, topic, writers):
            arrivals.replay(record.key, record.value)
            state.replay(record.key, record.value)
    except (NetworkFault, CorruptBatch) as fault:
        raise CannotTell(f"cluster {name}: {topic}: {fault}") from fault
    except _Unreadable as reason:
        raise CannotTell(f"cluster {name}: {topic}: {reason}") from reason
    return arrivals, state


class _Unreadable(Exception):
    """The topic cannot be read; the message is the cluster's reason."""


async def _records(cluster: Cluster, topic: str, writers: Writers) -> AsyncIterator[Record]:
    view = (await cluster.metadata([topic], refresh=True)).topics.get(topic)
    if view is None or view.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
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
    reading = Reading()
    async for header, batch in read_partition(cluster, topic, 0, start, stop):
        if not crc_is_valid(batch):
            raise _Unreadable(f"the checksum of the batch at offset {header.base_offset} fails")
        is_believed = await writers.believes(header.producer_id, header.base_offset, reading)
        if is_believed and not header.is_control:
            for record in iterate_records(batch):
                yield record

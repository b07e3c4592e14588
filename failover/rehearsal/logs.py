"""What lies of a rehearsal's load in the logs of a site."""

from collections.abc import Mapping
from typing import Final, TypeAlias

import trio

from failover.rehearsal.judgement import Numbers
from failover.rehearsal.seen import LoadSeen
from runtime.configuration.topic_sets import REHEARSAL_TOPIC
from runtime.process.clock import monotonic_ms
from wire.errors import ErrorCode
from wire.net import Cluster, NetworkFault
from wire.net.operations import LATEST, list_offsets, read_partition
from wire.net.topic_creation import ensure_topic
from wire.record_batch import CorruptBatch, crc_is_valid, iterate_records
from wire.topic_partition import TopicPartition

SETTINGS: Final = {"retention.ms": "86400000", "cleanup.policy": "delete"}
"""A day: what a rehearsal has written is of no use behind its verdict."""

LOOK_AGAIN_S: Final = 0.2

Ends: TypeAlias = Mapping[TopicPartition, int]


class LogUnread(NetworkFault):
    """A log of the load could not be read; the message names partition and cause."""


async def make_load_topic(cluster: Cluster, partition_count: int) -> int:
    """Return the number of partitions of the load's topic, which is made where it is not there.

    Raises NetworkFault.
    """
    await ensure_topic(
        cluster,
        REHEARSAL_TOPIC,
        replication_factor=None,
        configs=SETTINGS,
        partition_count=partition_count,
    )
    view = await cluster.metadata([REHEARSAL_TOPIC], refresh=True)
    return len(view.topics[REHEARSAL_TOPIC].partitions)


async def load_ends(cluster: Cluster, partition_count: int) -> Ends:
    """Return where the load's partitions end; raises LogUnread and other NetworkFaults."""
    wanted = [TopicPartition(REHEARSAL_TOPIC, number) for number in range(partition_count)]
    found: dict[TopicPartition, int] = {}
    for partition, end in (await list_offsets(cluster, wanted, LATEST)).items():
        if isinstance(end, ErrorCode):
            cluster.forget(REHEARSAL_TOPIC)
            raise LogUnread(f"the end of {partition} is not known: {end.name}")
        found[partition] = end
    return found


async def wait_load_ends(cluster: Cluster, partition_count: int, patience_ms: int) -> Ends:
    """Return where the load's partitions end on a site that the mirror makes them on.

    Raises LogUnread where they are not there within that time, and other NetworkFaults.
    """
    until_ms = monotonic_ms() + patience_ms
    while True:
        try:
            return await load_ends(cluster, partition_count)
        except LogUnread:
            if monotonic_ms() >= until_ms:
                raise
        await trio.sleep(LOOK_AGAIN_S)


async def read_load(cluster: Cluster, starts: Ends, seen: LoadSeen) -> Numbers:
    """Return the numbers that lie behind these offsets; raises LogUnread, other NetworkFaults."""
    numbers: dict[int, list[int]] = {}
    for partition, end in (await load_ends(cluster, len(starts))).items():
        found = numbers.setdefault(partition.partition, [])
        start = starts[partition]
        try:
            async for header, batch in read_partition(cluster, *partition, start, end):
                if not crc_is_valid(batch):
                    raise LogUnread(f"{partition}: wrong checksum at {header.base_offset}")
                found += [
                    number
                    for record in iterate_records(batch)
                    if record.offset >= start
                    and (number := seen.number_of(record.value)) is not None
                ]
        except CorruptBatch as fault:
            raise LogUnread(f"{partition}: {fault}") from fault
    return numbers


def count_of(numbers: Numbers) -> int:
    """Return how many records there are."""
    return sum(map(len, numbers.values()))

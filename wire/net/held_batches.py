"""The batches that hold given offsets in many partitions, each leader asked for many at once.

A question about one partition is `partition_operations.read_partition`. It waits, looks up leaders
that have moved, and tells a hole from what only comes late. Here nothing is tried again, so what is
not found is asked for there.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias

from wire.errors import ErrorCode
from wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from wire.net.cluster import Cluster
from wire.net.errors import ConnectionClosed, RequestRefused
from wire.net.metadata import ClusterView
from wire.net.partition_operations import LAST_FETCH_BY_NAME
from wire.net.side_by_side import ask_each
from wire.primitives import ZERO_UUID
from wire.record_batch import BatchHeader, CorruptBatch, iterate_batches
from wire.topic_partition import TopicPartition

HeldBatch: TypeAlias = tuple[BatchHeader, memoryview]
Held: TypeAlias = dict[TopicPartition, HeldBatch | None]

PARTITIONS_A_REQUEST: Final = 64
PARTITION_BYTES: Final = 64 * 1024
"""A batch that is larger comes alone, as the first of an answer, or is not found (KIP-74)."""
REQUESTS_AT_ONCE: Final = 8
"""Each answer has PARTITIONS_A_REQUEST * PARTITION_BYTES at most, or one batch."""


async def held_batches(cluster: Cluster, offsets: Mapping[TopicPartition, int]) -> Held:
    """Return the batches in which these offsets lie, None where a hole is, of those that tell it.

    A partition that is left out may hold one all the same: its leader may be another by now, the
    batch may be large or damaged, or the broker throttles. Checksums are the caller's. Raises
    NetworkFault.
    """
    view = await cluster.metadata(sorted({topic for topic, _ in offsets}))
    chunks = [
        (leader, tuple(led[first : first + PARTITIONS_A_REQUEST]))
        for leader, led in _by_leader(view, offsets).items()
        for first in range(0, len(led), PARTITIONS_A_REQUEST)
    ]
    ask = partial(_ask, cluster, view, offsets)
    answers = await ask_each(chunks, ask, at_once=REQUESTS_AT_ONCE)
    return {where: held for answer in answers.values() for where, held in answer.items()}


def _by_leader(
    view: ClusterView, offsets: Mapping[TopicPartition, int]
) -> dict[int, list[TopicPartition]]:
    """Return the partitions by who leads them, without those that have no leader now."""
    by_leader: defaultdict[int, list[TopicPartition]] = defaultdict(list)
    for where in sorted(offsets):
        try:
            by_leader[view.partition(*where).leader].append(where)
        except RequestRefused:
            continue  # the caller's own question says what is the matter with it
    return by_leader


async def _ask(
    cluster: Cluster,
    view: ClusterView,
    offsets: Mapping[TopicPartition, int],
    chunk: tuple[int, Sequence[TopicPartition]],
) -> Held:
    leader, partitions = chunk
    names = {view.topics[topic].topic_id: topic for topic, _ in partitions}
    connection = await cluster.connection(leader)
    version = connection.version_of(FetchRequest)
    if ZERO_UUID in names:
        version = min(version, LAST_FETCH_BY_NAME)
    try:
        answer = await connection.request(_question(view, offsets, partitions), version=version)
    except ConnectionClosed:
        for topic in {topic for topic, _ in partitions}:
            cluster.forget(topic)
        raise
    held: Held = {}
    for of_topic in answer.responses:
        name = names.get(of_topic.topic_id) if version > LAST_FETCH_BY_NAME else of_topic.topic
        for found in of_topic.partitions:
            where = TopicPartition(name or "", found.partition_index)
            if where in offsets and found.error_code == ErrorCode.NONE:
                held |= _batch_at(where, offsets[where], found.records)
    return held


def _question(
    view: ClusterView, offsets: Mapping[TopicPartition, int], partitions: Sequence[TopicPartition]
) -> FetchRequest:
    asked: defaultdict[str, list[FetchPartition]] = defaultdict(list)
    for where in partitions:
        one = FetchPartition(
            partition=where.partition,
            fetch_offset=offsets[where],
            partition_max_bytes=PARTITION_BYTES,
        )
        asked[where.topic].append(one)
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=len(partitions) * PARTITION_BYTES,
        topics=tuple(
            FetchTopic(topic=topic, topic_id=view.topics[topic].topic_id, partitions=tuple(some))
            for topic, some in asked.items()
        ),
    )


def _batch_at(where: TopicPartition, offset: int, records: object) -> Held:
    """Return the batch that holds an offset, or None for a hole; nothing where neither is told."""
    if not isinstance(records, memoryview):
        return {}
    try:
        for header, batch in iterate_batches(records):
            if header.next_offset > offset:
                return {where: (header, batch) if header.base_offset <= offset else None}
    except CorruptBatch:
        return {}  # what is damaged, and where, the caller's own question says
    return {}

"""Fast writing and reading of a workload: one batch is made once and sent many times."""

import random
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from itertools import count, cycle
from typing import Final

import trio

from runtime.process.clock import now_ms
from tests.bench.measure.ledger import RunFailed
from tests.bench.measure.workloads import KIB, MIB, Workload
from tests.bench.stage.served import Served
from wire.errors import ErrorCode
from wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from wire.net import Cluster, PendingAnswer, open_cluster
from wire.record_batch import Record, build_batch, iterate_batches

REQUEST_BYTES: Final = 2 * MIB
WINDOW_BYTES: Final = 8 * MIB
WINDOW_REQUESTS: Final = 64
FETCH_BYTES: Final = 50 * MIB
PARTITION_FETCH_BYTES: Final = MIB
"""A Java consumer's defaults, as far as they are about bytes."""
FETCH_WAIT_MS: Final = 500
READERS: Final = 2
AHEAD: Final = 16
"""So many requests are under way to each of several clusters."""
FEW: Final = 512
NUMBER_BYTES: Final = 15
TIMEOUT_S: Final = 600
WORDS: Final = 400


def batch_of(workload: Workload) -> bytes:
    """Return one batch of it: values of words, which compress about as well as JSON does."""
    chance = random.Random(workload.record_bytes)
    words = [chance.randbytes(4).hex().encode() for _ in range(WORDS)]
    now = now_ms()
    records = [
        Record(place, now, None, _value(chance, words, workload.record_bytes), ())
        for place in range(workload.records_per_batch)
    ]
    return build_batch(records, compression=workload.codec)


def requests_of(workload: Workload, topic: str, batch: bytes) -> Iterator[ProduceRequest]:
    """Yield the Produce requests that write all of a workload, partitions side by side."""
    at_once = max(1, min(workload.partitions, REQUEST_BYTES // len(batch)))
    groups = [
        range(first, min(first + at_once, workload.partitions))
        for first in range(0, workload.partitions, at_once)
    ]
    requests = [_produce(topic, group, batch) for group in groups]
    for _ in range(workload.batches_per_partition):
        yield from requests


async def fill(served: Served, topic: str, workload: Workload) -> float:
    """Write a workload into an empty topic; return the seconds it took until all was acked."""
    batch = batch_of(workload)
    in_flight: deque[PendingAnswer[ProduceResponse]] = deque()
    async with open_cluster(served.addresses, client_id="bench") as cluster:
        leader = await cluster.leader(topic, 0)  # one broker leads every partition
        began = trio.current_time()
        with trio.fail_after(TIMEOUT_S):
            for request in requests_of(workload, topic, batch):
                bytes_each = len(batch) * len(request.topic_data[0].partition_data)
                window = max(2, min(WINDOW_REQUESTS, WINDOW_BYTES // bytes_each))
                while len(in_flight) >= window:
                    _require_appended(await in_flight.popleft().wait())
                in_flight.append(await leader.send(request))
            for pending in in_flight:
                _require_appended(await pending.wait())
        return trio.current_time() - began


async def fill_alike(
    clusters: Sequence[Served], topic: str, workload: Workload, is_distinct: bool = True
) -> None:
    """Write the same batches behind what each cluster has of a topic, partitions side by side.

    Unless `is_distinct` few batches are written again and again, in turn.
    """
    stamp_ms = now_ms()
    batches = _distinct_batches(workload, stamp_ms)
    if not is_distinct:
        few = [next(batches) for _ in range(min(FEW, workload.batches_per_partition))]
        batches = cycle(few)
    async with AsyncExitStack() as stack:
        opened = [
            await stack.enter_async_context(open_cluster(one.addresses, client_id="bench"))
            for one in clusters
        ]
        leaders = [await one.leader(topic, 0) for one in opened]
        in_flight: deque[PendingAnswer[ProduceResponse]] = deque()
        for _ in range(workload.batches_per_partition):
            request = _produce_each(topic, [next(batches) for _ in range(workload.partitions)])
            while len(in_flight) >= AHEAD * len(leaders):
                _require_appended(await in_flight.popleft().wait())
            in_flight.extend([await leader.send(request) for leader in leaders])
        for pending in in_flight:
            _require_appended(await pending.wait())


def _distinct_batches(workload: Workload, stamp_ms: int) -> Iterator[bytes]:
    """Yield batches of words of which no two records are alike."""
    chance = random.Random(workload.record_bytes)
    words = [chance.randbytes(4).hex().encode() for _ in range(WORDS)]
    length = workload.record_bytes - NUMBER_BYTES
    rests = [_value(chance, words, length) for _ in range(workload.records_per_batch)]
    for number in count():
        records = [
            Record(place, stamp_ms, None, b"%015d" % (number * len(rests) + place) + rest)
            for place, rest in enumerate(rests)
        ]
        yield build_batch(records, compression=workload.codec)


async def drain(served: Served, topic: str, partition_ends: Sequence[int]) -> float:
    """Read a topic as consumers do, by several connections; return the seconds it took."""
    async with open_cluster(served.addresses, client_id="bench") as cluster:
        await cluster.metadata((topic,))
    began = trio.current_time()
    with trio.fail_after(TIMEOUT_S):
        async with trio.open_nursery() as nursery:
            for reader in range(min(READERS, len(partition_ends))):
                mine = {
                    partition: end
                    for partition, end in enumerate(partition_ends)
                    if partition % READERS == reader
                }
                nursery.start_soon(_drain_some, served, topic, mine)
    return trio.current_time() - began


async def _drain_some(served: Served, topic: str, ends: dict[int, int]) -> None:
    positions = dict.fromkeys(ends, 0)
    async with open_cluster(served.addresses, client_id="bench") as cluster:
        leader = await cluster.leader(topic, 0)
        while any(positions[partition] < end for partition, end in ends.items()):
            request = await _fetch(cluster, topic, positions)
            answer = await leader.request(request)
            for found in answer.responses[0].partitions if answer.responses else ():
                if found.error_code != ErrorCode.NONE:
                    raise RunFailed(f"fetch of {topic}-{found.partition_index}: {found.error_code}")
                assert isinstance(found.records, memoryview)  # as it came off the wire
                for header, _ in iterate_batches(found.records):
                    positions[found.partition_index] = header.next_offset


async def _fetch(cluster: Cluster, topic: str, positions: dict[int, int]) -> FetchRequest:
    view = await cluster.metadata((topic,))
    # The one asked for first is served first: who has read least comes first.
    asked = tuple(
        FetchPartition(
            partition=partition,
            fetch_offset=position,
            partition_max_bytes=PARTITION_FETCH_BYTES,
        )
        for partition, position in sorted(positions.items(), key=lambda item: item[1])
    )
    return FetchRequest(
        max_wait_ms=FETCH_WAIT_MS,
        min_bytes=1,
        max_bytes=FETCH_BYTES,
        topics=(FetchTopic(topic=topic, topic_id=view.topics[topic].topic_id, partitions=asked),),
    )


def _produce(topic: str, partitions: Sequence[int], batch: bytes) -> ProduceRequest:
    return ProduceRequest(
        acks=-1,
        timeout_ms=30_000,
        topic_data=(
            TopicProduceData(
                name=topic,
                partition_data=tuple(
                    PartitionProduceData(index=partition, records=batch) for partition in partitions
                ),
            ),
        ),
    )


def _produce_each(topic: str, batches: Sequence[bytes]) -> ProduceRequest:
    partitions = tuple(
        PartitionProduceData(index=index, records=batch) for index, batch in enumerate(batches)
    )
    data = TopicProduceData(name=topic, partition_data=partitions)
    return ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=(data,))


def _require_appended(answer: ProduceResponse) -> None:
    for topic in answer.responses:
        for partition in topic.partition_responses:
            if partition.error_code != ErrorCode.NONE:
                code = ErrorCode(partition.error_code).name
                raise RunFailed(f"produce to {topic.name}-{partition.index}: {code}")


def random_words(chance: random.Random, length: int) -> bytes:
    """Return a value that compresses about as well as JSON does."""
    return _value(chance, [chance.randbytes(4).hex().encode() for _ in range(WORDS)], length)


def _value(chance: random.Random, words: Sequence[bytes], length: int) -> bytes:
    text = b" ".join(chance.choices(words, k=length // KIB * 120 + 24 + length // 9))
    return text[:length].ljust(length, b".")

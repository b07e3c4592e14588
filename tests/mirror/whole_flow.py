"""One partition mirrored for real between two fake clusters: placed, fetched, written, mapped."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import trio

from mirror.flow.flow_state import FlowState
from mirror.forward.source import RecordWay, SourceFetcher
from mirror.forward.writers import TargetWriters
from mirror.map.map_log import MapLog
from mirror.map.reverse_map import ReverseMapReader
from mirror.start.positioning import Positioning
from mirror.state.measurements import FlowMeasurements
from mirror.state.partition import MirroredPartition
from mirror.topics.discovery import Discovery
from offset_translation.map_records import MirrorProducer, map_topic_name, mirror_producer
from offset_translation.offset_map import OffsetMap
from runtime.configuration.config import FlowConfig, PatternSet
from tests.doubles.fake_cluster import FakeCluster, FakePartition
from tests.doubles.map_writers import MemoryWriters
from tests.mirror.building import CONFIG
from tests.mirror.two_fakes import two_fakes
from wire.net import open_cluster
from wire.record_batch import Record, assign_offsets, build_batch, iterate_records
from wire.topic_partition import TopicPartition

EVERYTHING = PatternSet(include=(re.compile(".*"),), exclude=())
PATIENCE_S = 20


def batch_at(offset: int, value: bytes) -> bytes:
    """Return a batch of one record as it lies in a log."""
    batch = bytearray(build_batch([Record(0, 0, b"k", value)]))
    assign_offsets(batch, offset, 0)
    return bytes(batch)


async def until(condition: Callable[[], bool]) -> None:
    """Return once that holds; `whole_flow` is not patient for ever."""
    while not condition():  # noqa: ASYNC110 - nobody tells of it
        await trio.sleep(0.01)


def values(log: FakePartition) -> list[bytes]:
    """Return what a log holds."""
    found = (record.value for batch in log.batches for record in iterate_records(batch))
    return [bytes(value) for value in found if value is not None]


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeFlow:
    """The parts that a test looks at or meddles with."""

    dc1: FakeCluster
    dc2: FakeCluster
    flow: FlowState
    partition: MirroredPartition
    discovery: Discovery
    source: FakePartition
    target: FakePartition


async def _nothing_before(_: FakeCluster, __: MapLog) -> None:
    """Begin with an empty target."""


@asynccontextmanager
async def whole_flow(
    log: list[bytes],
    end: int,
    chunk_bytes: int,
    *,
    prepare: Callable[[FakeCluster, MapLog], Awaitable[None]] = _nothing_before,
    **settings: Any,
) -> AsyncIterator[WholeFlow]:
    """Mirror a source log, which two brokers serve, in chunks of so many bytes.

    ``prepare`` leaves on the target what was there before the mirror.
    """
    config: FlowConfig = replace(
        CONFIG,
        topics=EVERYTHING,
        fetch_max_bytes=chunk_bytes,
        partition_fetch_bytes=chunk_bytes,
        in_flight_bytes=10_000_000,
        partition_in_flight_bytes=4 * chunk_bytes,
        **settings,
    )
    flow = FlowState(config=config, measurements=FlowMeasurements(config.name))
    async with (
        two_fakes(2) as (dc1, dc2, shared),
        open_cluster(dc1.bootstrap, client_id="a") as source_admin,
        open_cluster(dc2.bootstrap, client_id="a") as target_admin,
    ):
        links = replace(shared, source_admin=source_admin, target_admin=target_admin)
        source = dc1.create_topic("t", 0).partitions[0]
        source.batches, source.end = log, end
        target = dc2.create_topic("t", 0).partitions[0]
        dc2.create_topic(map_topic_name(config.source), 0)
        map_log = MapLog(target_admin, config.source, 1, MemoryWriters())
        map_log._writer = MirrorProducer(producer_id=9, producer_epoch=0)
        ours = MirrorProducer(producer_id=7, producer_epoch=0)
        await map_log.write(lambda: [mirror_producer(ours)])
        await prepare(dc2, map_log)
        offset_map = map_log.state.maps.setdefault(TopicPartition("t", 0), OffsetMap())
        partition = MirroredPartition(
            "t", 0, topic_id=UUID(int=1), offset_map=offset_map, now_ms=0, budget=flow.budget
        )
        partition.target.expect_topic(map_log.state.target_ids.get(partition.topic_partition))
        partition.target.meet_topic(dc2.topics["t"].topic_id)
        partition.leaders.follow_source(0, 0)
        partition.leaders.follow_target(0, 0)
        flow.partitions.take(partition)
        writers = TargetWriters(flow.for_producing, links)
        reverse_map = ReverseMapReader(config, flow.reverse, links, MemoryWriters())
        way = RecordWay(reverse_map, map_log, writers)
        async with trio.open_nursery() as nursery:
            await nursery.start(writers.run)
            nursery.start_soon(
                Positioning(flow.for_positioning, links, map_log, MemoryWriters()).run
            )
            for node in (0, 1):
                nursery.start_soon(SourceFetcher(node, flow.for_fetching, links, way).run)
            with trio.fail_after(PATIENCE_S):
                yield WholeFlow(
                    dc1=dc1,
                    dc2=dc2,
                    flow=flow,
                    partition=partition,
                    discovery=Discovery(flow.for_discovery, links, map_log),
                    source=source,
                    target=target,
                )
            nursery.cancel_scope.cancel()

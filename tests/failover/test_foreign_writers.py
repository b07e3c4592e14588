"""No promotion takes what others have written on the target for what is missing there."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from failover.drain import SourceLogs, wait_drained
from failover.execute import StepFailed
from failover.map_follower import MapFollower
from failover.site import Site
from offset_translation.map_records import (
    MirrorProducer,
    map_topic_name,
    mirror_producer,
    piece_start,
    run_start,
)
from offset_translation.runs import Place
from tests.doubles.fake_cluster import FakeCluster, FakePartition, run_fake_cluster
from tests.doubles.map_writers import MemoryWriters
from wire.net import open_cluster
from wire.record_batch import Record, build_batch
from wire.topic_partition import TopicPartition

ORDERS = TopicPartition("orders", 0)
MIRROR, OTHER = 7, 8
PIECE = piece_start(*ORDERS, source_start=0, place=Place(0))


def write(
    log: FakePartition,
    values: str,
    producer_id: int = OTHER,
    *,
    sequence: int = 0,
    is_control: bool = False,
) -> None:
    """Append a batch with a record for each letter."""
    log.batches.append(
        build_batch(
            [Record(number, 0, None, value.encode()) for number, value in enumerate(values)],
            base_offset=log.end,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequence,
            is_control=is_control,
        )
    )
    log.end += len(values)


def tell(cluster: FakeCluster, *said: tuple[bytes, bytes]) -> None:
    """The map topic, of which this is all."""
    map_log = cluster.create_topic(map_topic_name("dc1"), 0).partitions[0]
    records = (mirror_producer(MirrorProducer(producer_id=MIRROR, producer_epoch=0)), *said)
    map_log.batches.append(build_batch(Record(n, 0, *one) for n, one in enumerate(records)))
    map_log.end = len(records)


@asynccontextmanager
async def stage(
    *said: tuple[bytes, bytes],
) -> AsyncIterator[tuple[FakePartition, FakePartition, Callable[[], Awaitable[int]]]]:
    """Two empty logs, and the drain of the first into the second."""
    async with run_fake_cluster() as dc1, run_fake_cluster() as dc2:
        source = dc1.create_topic("orders", 0).partitions[0]
        target = dc2.create_topic("orders", 0).partitions[0]
        tell(dc2, *said)
        async with (
            open_cluster(dc1.bootstrap, client_id="failover") as here,
            open_cluster(dc2.bootstrap, client_id="failover") as there,
        ):
            site = Site(name="dc1", cluster=here)
            follower = MapFollower(Site(name="dc2", cluster=there), "dc1", MemoryWriters())

            async def drain() -> int:
                logs = SourceLogs(starts={ORDERS: source.start}, ends={ORDERS: source.end})
                return await wait_drained(site, logs, follower, timeout_ms=500)

            yield source, target, drain


@pytest.mark.parametrize("is_control", [False, True], ids=["records", "the end of a transaction"])
async def test_as_many_foreign_records_as_are_missing_do_not_pass_for_them(
    *, is_control: bool
) -> None:
    async with stage(PIECE) as (source, target, drain):
        write(source, "abcdefgh")
        write(target, "abcdef", MIRROR)
        write(target, "x" if is_control else "xy", is_control=is_control)
        source.end = target.end
        why = "dc2 orders-0: the batch at offset 6 is no mirror's, so its end does not tell"
        with pytest.raises(StepFailed, match=re.escape(why)):
            await drain()


async def test_foreign_records_before_the_mirrors_last_batch_are_found_too() -> None:
    async with stage(PIECE) as (source, target, drain):
        write(source, "abcdefgh")
        write(target, "abcd", MIRROR)
        write(target, "xy")
        write(target, "ef", MIRROR, sequence=4)
        with pytest.raises(StepFailed, match="others have written before the mirror's batch at"):
            await drain()


async def test_what_the_mirror_has_written_is_drained() -> None:
    async with stage(PIECE) as (source, target, drain):
        write(source, "abcdefgh")
        write(target, "abcd", MIRROR)
        write(target, "efgh", MIRROR, sequence=4)
        assert await drain() == 0


async def test_what_mirrormaker_had_written_last_is_drained_if_it_is_what_the_source_has() -> None:
    """Behind `mirror take-over` of a partition that nobody has written to since."""
    async with stage(PIECE) as (source, target, drain):
        write(source, "abcd")
        write(target, "abcd", -1)
        assert await drain() == 0


async def test_records_of_the_targets_own_before_the_last_run_are_no_strangers() -> None:
    """It was active once; behind that nothing was mirrored yet."""
    piece = piece_start(*ORDERS, source_start=8, place=Place(0))
    async with stage(piece, run_start(*ORDERS, place=Place(0), target_start=3)) as (
        source,
        target,
        drain,
    ):
        write(source, "abcdefgh")
        write(target, "xyz")
        assert await drain() == 0

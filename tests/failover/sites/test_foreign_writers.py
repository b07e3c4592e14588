"""No promotion takes what others have written on the target for what is missing there."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from failover.journal.execute import StepFailed
from failover.moving.drain import SourceLogs, wait_drained
from failover.sites.map_follower import MapFollower
from failover.sites.site import Site
from offset_translation.map_records import (
    piece_start,
    run_start,
)
from offset_translation.runs import Place
from tests.doubles.fake_cluster import FakePartition, run_fake_cluster
from tests.doubles.map_writers import MemoryWriters
from tests.failover.standing import watch_of
from tests.failover.target_batches import MIRROR, ORDERS, PIECE, tell, write
from wire.net import open_cluster


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
                return await wait_drained(site, logs, follower, watch_of(), timeout_ms=500)

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

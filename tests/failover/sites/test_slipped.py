"""What the old site's logs hold behind what was drained, and where they end before it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

import pytest

from failover.journal.journal import PartitionEnds
from failover.sites.map_follower import MapFollower
from failover.sites.site import Site
from failover.sites.slipped import (
    Shrunk,
    SlippedRange,
    find_appended,
    find_beyond_mirrored,
    find_made_again,
)
from offset_translation.map_records import source_topic
from tests.doubles.fake_cluster import run_fake_cluster
from tests.doubles.map_writers import MemoryWriters
from tests.failover.target_batches import MIRROR, ORDERS, PIECE, tell, write
from wire.net import open_cluster

MIRRORED, NOW = UUID(int=1), UUID(int=2)


@asynccontextmanager
async def source(end: int, topic_id: UUID, holds: str = "") -> AsyncIterator[Site]:
    """A site whose log ends here, or behind a record for each letter."""
    async with run_fake_cluster() as fake:
        orders = fake.create_topic("orders", 0)
        orders.topic_id, orders.partitions[0].end = topic_id, end
        if holds:
            write(orders.partitions[0], holds)
        async with open_cluster(fake.bootstrap, client_id="failover") as cluster:
            yield Site(name="dc1", cluster=cluster)


def appended(start: int, stop: int) -> list[SlippedRange]:
    return [SlippedRange(topic="orders", partition=0, start=start, stop=stop)]


@pytest.mark.parametrize(
    ("end", "topic_id", "found", "shrunk"),
    [
        (20, MIRRORED, [], []),
        (23, MIRRORED, appended(20, 23), []),
        (12, MIRRORED, [], [Shrunk(topic="orders", partition=0, drained=20, end=12)]),
        (0, NOW, [], []),
        (12, NOW, appended(0, 12), []),
        (25, NOW, appended(0, 25), []),
    ],
)
async def test_records_behind_the_drain_are_told_from_a_shorter_log_and_from_another_topic(
    end: int, topic_id: UUID, found: list[SlippedRange], shrunk: list[Shrunk]
) -> None:
    async with source(end, topic_id) as site:
        again = await find_made_again(site, {"orders": MIRRORED}, [ORDERS])
        assert await find_appended(site, [ORDERS], {ORDERS: 20}, again) == (found, shrunk)


@pytest.mark.parametrize(
    ("holds", "topic_id", "found"),
    [
        ("abcdefgh", MIRRORED, []),
        ("abcdefghij", MIRRORED, appended(8, 10)),
        ("abcde", MIRRORED, []),
        ("abcdeuvwxyz", MIRRORED, appended(5, 11)),
        ("abcdeuvw", MIRRORED, appended(5, 8)),
        ("abcdefghij", NOW, appended(0, 10)),
    ],
)
async def test_what_a_source_that_went_back_took_instead_counts_as_beyond_what_was_mirrored(
    holds: str, topic_id: UUID, found: list[SlippedRange]
) -> None:
    """It took these for clients that were told so, at offsets that the map calls mirrored."""
    seal = PartitionEnds(
        topic="orders", partition=0, mirrored_source_end=8, target_end=8, source_end=None
    )
    async with source(0, topic_id, holds) as site, run_fake_cluster() as dc2:
        write(dc2.create_topic("orders", 0).partitions[0], "abcdefgh", MIRROR)
        tell(dc2, PIECE, source_topic("orders", MIRRORED))
        async with open_cluster(dc2.bootstrap, client_id="failover") as there:
            follower = MapFollower(Site(name="dc2", cluster=there), "dc1", MemoryWriters())
            await follower.refresh([ORDERS])
            assert await find_beyond_mirrored(site, follower, [seal]) == found

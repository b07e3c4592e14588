"""What the old site's logs hold behind what was drained, and where they end before it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

import pytest

from failover.journal.journal import PartitionEnds
from failover.sites.site import Site
from failover.sites.slipped import (
    Shrunk,
    SlippedRange,
    find_appended,
    find_beyond_mirrored,
    find_made_again,
)
from tests.doubles.fake_cluster import FakeCluster, run_fake_cluster
from wire.net import open_cluster
from wire.topic_partition import TopicPartition

ORDERS = TopicPartition("orders", 0)
MIRRORED, NOW = UUID(int=1), UUID(int=2)


@asynccontextmanager
async def source(end: int, topic_id: UUID) -> AsyncIterator[Site]:
    """A site whose log ends here."""
    async with run_fake_cluster() as fake:
        _fill(fake, end, topic_id)
        async with open_cluster(fake.bootstrap, client_id="failover") as cluster:
            yield Site(name="dc1", cluster=cluster)


def _fill(fake: FakeCluster, end: int, topic_id: UUID) -> None:
    orders = fake.create_topic("orders", 0)
    orders.topic_id, orders.partitions[0].end = topic_id, end


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
    ("topic_id", "found"), [(MIRRORED, appended(20, 25)), (NOW, appended(0, 25))]
)
async def test_of_a_topic_made_again_nothing_counts_as_mirrored(
    topic_id: UUID, found: list[SlippedRange]
) -> None:
    seal = PartitionEnds(
        topic="orders", partition=0, mirrored_source_end=20, target_end=20, source_end=None
    )
    async with source(25, topic_id) as site:
        assert await find_beyond_mirrored(site, {"orders": MIRRORED}, [seal]) == found

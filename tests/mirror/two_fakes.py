"""The clusters of a flow as fakes, and the mirror's links to them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mirror.clusters.links import Links
from tests.doubles.fake_cluster import FakeCluster, run_fake_cluster
from wire.net import open_cluster


@asynccontextmanager
async def two_fakes(brokers: int = 1) -> AsyncIterator[tuple[FakeCluster, FakeCluster, Links]]:
    """Run the source and the target, each of so many brokers."""
    async with (
        run_fake_cluster(brokers) as dc1,
        run_fake_cluster(brokers) as dc2,
        open_cluster(dc1.bootstrap, client_id="test") as source,
        open_cluster(dc2.bootstrap, client_id="test") as target,
    ):
        yield (
            dc1,
            dc2,
            Links(
                source_data=source,
                source_groups=source,
                source_admin=source,
                target_data=target,
                target_admin=target,
            ),
        )

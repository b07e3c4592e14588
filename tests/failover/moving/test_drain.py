"""A source is drained of what its leaders had taken before the fence, committed or not."""

from typing import cast

import pytest
import trio

from failover.journal.execute import StepFailed
from failover.moving.drain import SourceLogs, open_transactions, read_source_logs
from failover.sites.site import Site
from tests.doubles.fake_cluster import FakeCluster, run_fake_cluster
from wire.net import open_cluster
from wire.topic_partition import TopicPartition

PLACES = (TopicPartition("orders", 0), TopicPartition("orders", 1))


def fill(cluster: FakeCluster) -> None:
    """Two logs; of the first, the leader has two records that its followers have not."""
    for number, partition in cluster.create_topic("orders", 0, 1).partitions.items():
        partition.start, partition.end = 3, 10 + number
    cluster.topics["orders"].partitions[0].uncommitted = 2


async def test_the_ends_are_those_behind_what_was_not_committed_when_the_fence_came() -> None:
    async with run_fake_cluster(2) as fake:
        fill(fake)
        async with open_cluster(fake.bootstrap, client_id="failover") as cluster:
            found: list[SourceLogs] = []

            async def read() -> None:
                site = Site(name="dc1", cluster=cluster)
                found.append(await read_source_logs(site, PLACES, timeout_ms=10_000))

            async with trio.open_nursery() as nursery:
                nursery.start_soon(read)
                await trio.sleep(0.3)
                assert not found
                fake.topics["orders"].partitions[0].uncommitted = 0
            starts, ends = dict.fromkeys(PLACES, 3), dict(zip(PLACES, (10, 11), strict=True))
            assert found == [SourceLogs(starts=starts, ends=ends)]


async def test_what_is_never_committed_fails_the_step() -> None:
    async with run_fake_cluster(2) as fake:
        fill(fake)
        async with open_cluster(fake.bootstrap, client_id="failover") as cluster:
            site = Site(name="dc1", cluster=cluster)
            with pytest.raises(
                StepFailed, match=r"^dc1 orders-0 did not .* \(1 of 2 partitions\)$"
            ):
                await read_source_logs(site, PLACES, timeout_ms=300)


@pytest.mark.parametrize(("stable", "told"), [(13, ""), (4, "; a transaction is open in orders-0")])
async def test_an_open_transaction_is_named_wherever_it_is_waited_for(
    stable: int, told: str
) -> None:
    class Told:
        """A source that ends at 13."""

        async def ends(self, _: object) -> dict[TopicPartition, int]:
            return {PLACES[0]: 13}

        async def stable_ends(self, _: object) -> dict[TopicPartition, int]:
            return {PLACES[0]: stable}

    said = await open_transactions(cast("Site", Told()), PLACES[:1])
    assert said.startswith(told)
    assert bool(said) == bool(told)

"""A target with a map in its topic."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from failover.sites.site import Site
from offset_translation.map_records import map_topic_name, piece_start
from offset_translation.runs import Place
from tests.doubles.fake_cluster import FakeCluster, FakePartition, run_fake_cluster
from wire.net import open_cluster
from wire.record_batch import Record, build_batch
from wire.topic_partition import TopicPartition

ORDERS = TopicPartition("orders", 0)
MAP = map_topic_name("dc1")


def fill(partition: FakePartition, *records: Record) -> None:
    partition.batches.append(build_batch(records))
    partition.end = len(records)


@asynccontextmanager
async def target_with_a_map(count: int) -> AsyncIterator[tuple[FakeCluster, Site]]:
    """A target with so many mirrored records, and the map that says so."""
    async with run_fake_cluster() as cluster:
        orders = cluster.create_topic("orders", 0).partitions[0]
        fill(orders, *(Record(number, 0, None, b"x") for number in range(count)))
        key, value = piece_start("orders", 0, source_start=0, place=Place(0))
        fill(cluster.create_topic(MAP, 0).partitions[0], Record(0, 0, key, value))
        async with open_cluster(cluster.bootstrap, client_id="failover") as opened:
            yield cluster, Site(name="dc2", cluster=opened)

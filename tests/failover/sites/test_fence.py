"""The fence of the bundled brokers: set, tried at every partition, lifted; and seals in the map."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Message, Producer

from failover.sites.fence import (
    Fence,
    FenceDoesNotHold,
    as_allowed,
    fence_of,
    read_fence,
    set_fence,
    wait_holds,
)
from failover.sites.map_follower import MapFollower
from failover.sites.opening import open_site
from failover.sites.probe import probe
from failover.sites.site import Site
from offset_translation.map_records import map_topic_name
from runtime.configuration.config import ClusterConfig, PatternSet
from tests.clusters import RunningCluster, run_cluster
from tests.doubles.map_writers import MemoryWriters
from tests.failover.plans import FLOW
from tests.failover.two_sites import QUIET, create_topic, produce, read_all, values_of
from wire.errors import ErrorCode
from wire.topic_partition import TopicPartition

pytestmark = pytest.mark.integration

PLACES = [TopicPartition("orders", 0), TopicPartition("orders", 1), TopicPartition("orders", 2)]


@asynccontextmanager
async def site_of(cluster: RunningCluster) -> AsyncIterator[Site]:
    """A running cluster as a promotion sees it."""
    config = ClusterConfig(name=cluster.name, bootstrap=tuple(cluster.addresses))
    async with open_site(config) as site:
        yield site


async def test_a_fence_closes_every_partition_and_a_probe_writes_nothing(tmp_path: Path) -> None:
    with run_cluster(tmp_path, brokers=2, shares_zookeeper=True) as cluster:
        create_topic(cluster, "orders", 3)
        create_topic(cluster, "other", 1)
        async with site_of(cluster) as site:
            answers = await probe(site.cluster, PLACES)
            assert set(answers.values()) == {ErrorCode.CORRUPT_MESSAGE}
            assert await read_fence(site.cluster) == Fence()
            fence = Fence(topics=("orders",), allowed_clients=("mirror-dc2-dc1",))
            await set_fence(site.cluster, fence)
            await wait_holds(site.cluster, PLACES)
            assert await read_fence(site.cluster) == fence
            assert await site.ends(PLACES) == dict.fromkeys(PLACES, 0)
            produce(cluster, "other", [1])
            assert failure_of(cluster, "somebody") is not None
            assert failure_of(cluster, "mirror-dc2-dc1") is None
            with pytest.raises(FenceDoesNotHold, match=r"^other-0 answers a foreign write with CO"):
                await wait_holds(site.cluster, [*PLACES, TopicPartition("other", 0)], timeout_s=0.5)
            await set_fence(site.cluster, Fence())
            await set_fence(site.cluster, Fence())
            produce(cluster, "orders", [2])
            assert await read_fence(site.cluster) == Fence()
        assert values_of(read_all(cluster, "orders")) == [1, 2]


async def test_a_topic_made_behind_the_fence_takes_no_write_until_it_is_lifted(
    tmp_path: Path,
) -> None:
    flow = replace(FLOW, topics=PatternSet(include=(re.compile("orders.*"),), exclude=()))
    with run_cluster(tmp_path, shares_zookeeper=True) as cluster:
        create_topic(cluster, "orders", 3)
        async with site_of(cluster) as site:
            fence = fence_of(flow, flow.source, ["orders"], "mirror-dc2-dc1", sends_away=True)
            fence = await as_allowed(site.cluster, fence)
            await set_fence(site.cluster, fence)
            await wait_holds(site.cluster, PLACES)
            assert await read_fence(site.cluster) == fence
            view = await site.cluster.metadata(["orders"], refresh=True)
            assert len(view.topics["orders"].partitions) == 3, "we are not sent away"
            create_topic(cluster, "orders-new")
            await wait_holds(site.cluster, [TopicPartition("orders-new", 0)], timeout_s=0.5)
            assert failure_of(cluster, "somebody", "orders-new") is not None
            assert failure_of(cluster, "mirror-dc2-dc1", "orders-new") is None
            create_topic(cluster, "other")
            produce(cluster, "other", [1])
            await set_fence(site.cluster, Fence())
            produce(cluster, "orders-new", [2])
            assert await read_fence(site.cluster) == Fence()


def failure_of(cluster: RunningCluster, client_id: str, topic: str = "orders") -> KafkaError | None:
    """Try to write one record under a client id and return what came of it."""
    outcome: list[KafkaError | None] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        outcome.append(error)

    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "client.id": client_id,
            "message.timeout.ms": 1_000,
            **QUIET,
        }
    )
    producer.produce(topic, b"1", b"k", 0, on_delivery=delivered)
    producer.flush(60)
    return outcome[0]


async def test_seals_bound_the_map_and_are_taken_back(tmp_path: Path) -> None:
    with run_cluster(tmp_path, name="dc2", shares_zookeeper=True) as cluster:
        create_topic(cluster, map_topic_name("dc1"))
        create_topic(cluster, "orders", 2)
        produce(cluster, "orders", range(10))
        async with site_of(cluster) as site:
            writer = MapFollower(site, "dc1", MemoryWriters())
            await writer.refresh()
            assert writer.partitions == ()
            await writer.seal(
                {TopicPartition("orders", 0): (12, 10), TopicPartition("orders", 1): (0, 0)}
            )
            reader = MapFollower(site, "dc1", MemoryWriters())
            await reader.refresh()
            assert reader.target_ends == {("orders", 0): 10, ("orders", 1): 0}
            assert reader.mirrored_end(TopicPartition("orders", 0)) == 12
            await reader.unseal([TopicPartition("orders", 1)])
            produce(cluster, "orders", range(5))
            await reader.unseal([TopicPartition("orders", 0)])
            await writer.refresh()
            assert writer.maps[TopicPartition("orders", 0)].mirrored_target_end == 10
            assert writer.maps[TopicPartition("orders", 0)].is_sealed
            assert not writer.maps[TopicPartition("orders", 1)].is_sealed

"""Fetching from a follower in the mirror's rack, and from the leader once that is gone."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from broker.replication.preferred import RACK_AWARE
from tests.clusters import RunningCluster, cluster_in, run_together
from tests.failover.two_sites import QUIET, Sites, produce, read_all, values_of
from tests.mirror.daemon import configure, run_mirror, wait_until

pytestmark = pytest.mark.integration

LEADER, FOLLOWER = 0, 1
SENT = f"source broker {LEADER} has replica {FOLLOWER} fetched from, of rack nearby"


@pytest.fixture
def sites(tmp_path: Path, witness: str) -> Iterator[Sites]:
    settings = {"replica.selector.class": RACK_AWARE}
    dc1 = cluster_in(tmp_path, 2, "dc1", settings, shares_zookeeper=True)
    dc2 = cluster_in(tmp_path, 1, "dc2", shares_zookeeper=True)
    with run_together(dc1, dc2):
        yield Sites(dc1, dc2, witness)


def move_to_rack(cluster: RunningCluster, broker: int, rack: str) -> None:
    """Start a broker again with a rack in its settings."""
    cluster.kill_broker(broker)
    with (cluster.data / f"broker-{broker}" / "server.properties").open("a") as settings:
        settings.write(f"\nbroker.rack={rack}\n")
    cluster.start_broker(broker)


def create_replicated(cluster: RunningCluster, topic: str) -> None:
    """Create a topic led by one broker and followed by the other, once both are there."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, **QUIET})

    def is_created() -> bool:
        # The stub says that broker ids are texts.
        placed: Any = [[LEADER, FOLLOWER]]
        new = NewTopic(topic, 1, replica_assignment=placed)
        try:
            admin.create_topics([new])[topic].result(60)
        except KafkaException:
            return False
        return True

    wait_until("both brokers are there", is_created)


def test_records_come_from_the_replica_in_the_rack_and_from_the_leader_once_it_is_gone(
    sites: Sites, tmp_path: Path
) -> None:
    move_to_rack(sites.dc1, FOLLOWER, "nearby")
    create_replicated(sites.dc1, "near")
    produce(sites.dc1, "near", range(10))
    with run_mirror(configure(sites, tmp_path, "near", "client_rack: nearby")) as mirror:
        mirror.wait_mirrored("near", 10)
        wait_until("the leader has sent us to its follower", lambda: SENT in mirror.log)
        produce(sites.dc1, "near", range(10, 20))
        mirror.wait_mirrored("near", 20)
        sites.dc1.kill_broker(FOLLOWER)
        produce(sites.dc1, "near", range(20, 30))
        mirror.wait_mirrored("near", 30)
        assert mirror.stop() == 0
    assert values_of(read_all(sites.dc2, "near")) == values_of(read_all(sites.dc1, "near"))

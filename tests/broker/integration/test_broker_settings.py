"""Settings of one broker, and the throttles of a move, as administrators set them."""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from broker.dynamic_config import Source
from tests.broker.integration.cluster_steps import (
    ask_controller,
    create,
    folder,
    live_brokers,
    move,
    produce_all,
    read_all,
    replicas_of,
    until,
)
from tests.clusters import RunningCluster, run_cluster
from wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest

pytestmark = pytest.mark.integration

RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
NOT_ITS_OWN = {Source.STATIC_BROKER, Source.KAFKA_DEFAULT}
REPLICAS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    overrides = {"zookeeper.session.timeout.ms": "3000", "auto.leader.rebalance.enable": "false"}
    with run_cluster(tmp_path_factory.mktemp("settings"), 2, overrides=overrides) as running:
        yield running


@pytest.fixture
def admin(cluster: RunningCluster) -> AdminClient:
    client = AdminClient({"bootstrap.servers": cluster.bootstrap})
    until(lambda: live_brokers(client) == 2)
    return client


def alter(
    admin: AdminClient, kind: ResourceType, name: str, changes: Mapping[str, str | None]
) -> None:
    """Set what has a value, take back what has None."""
    entries = [
        ConfigEntry(
            key,
            value,
            incremental_operation=AlterConfigOpType.DELETE
            if value is None
            else AlterConfigOpType.SET,
        )
        for key, value in changes.items()
    ]
    resource = ConfigResource(kind, name, incremental_configs=entries)
    admin.incremental_alter_configs([resource])[resource].result(60)


def described(admin: AdminClient, broker: int, name: str) -> tuple[str, int]:
    resource = ConfigResource(ResourceType.BROKER, str(broker))
    entry = admin.describe_configs([resource])[resource].result(60)[name]
    source = entry.source
    return str(entry.value), source


def test_what_clients_are_told_of_a_listener_is_kafkas_default(admin: AdminClient) -> None:
    assert described(admin, 0, "listeners")[1] == Source.STATIC_BROKER
    assert described(admin, 0, "advertised.listeners")[1] == Source.KAFKA_DEFAULT


def addresses(bootstrap: str) -> dict[int, str]:
    client = AdminClient({"bootstrap.servers": bootstrap})
    brokers = client.list_topics(timeout=30).brokers
    return {number: f"{one.host}:{one.port}" for number, one in brokers.items()}


def test_a_broker_has_settings_of_its_own_that_outlive_it(
    cluster: RunningCluster, admin: AdminClient
) -> None:
    """All brokers send clients to where one of them says that it is reached now."""
    before = addresses(cluster.bootstrap)
    port = cluster.addresses[1][1]
    own = {"log.retention.ms": "12345000", "advertised.listeners": f"PLAINTEXT://localhost:{port}"}
    alter(admin, ResourceType.BROKER, "1", own)
    assert {name: described(admin, 1, name) for name in own} == {
        name: (value, Source.BROKER) for name, value in own.items()
    }
    assert described(admin, 0, "log.retention.ms")[1] in NOT_ITS_OWN
    for asked in cluster.bootstrap.split(","):
        until(partial(is_reached, asked, {**before, 1: f"localhost:{port}"}))
    cluster.kill_broker(1)
    cluster.start_broker(1)
    again = AdminClient({"bootstrap.servers": cluster.bootstrap})
    until(lambda: live_brokers(again) == 2)
    assert described(again, 1, "log.retention.ms") == ("12345000", Source.BROKER)
    assert is_reached(cluster.bootstrap, {**before, 1: f"localhost:{port}"})
    alter(again, ResourceType.BROKER, "1", dict.fromkeys(own))
    assert described(again, 1, "log.retention.ms")[1] in NOT_ITS_OWN
    until(partial(is_reached, cluster.bootstrap, before))


def is_reached(bootstrap: str, at: Mapping[int, str]) -> bool:
    return addresses(bootstrap) == at


def size(path: Path) -> int:
    return sum(segment.stat().st_size for segment in path.glob("*.log"))


@pytest.mark.parametrize("way", [0, 1], ids=["leader", "follower"])
def test_a_throttled_move_goes_on_when_the_throttle_is_taken_back(
    cluster: RunningCluster, admin: AdminClient, way: int
) -> None:
    topic = f"slow-{way}"
    create(admin, topic, [0])
    sent = [b"%d" % number + b"v" * 10_000 for number in range(400)]
    assert len(produce_all(cluster.bootstrap, topic, sent)) == 400
    alter(admin, ResourceType.TOPIC, topic, {REPLICAS[way]: f"0:{way}"})
    alter(admin, ResourceType.BROKER, str(way), {RATES[way]: "10"})
    move(cluster, topic, (1,))
    whole, target = folder(cluster, 0, f"{topic}-0"), folder(cluster, 1, f"{topic}-0")
    until(lambda: size(target) > 0)
    moving = ask_controller(cluster, ListPartitionReassignmentsRequest())
    assert [one.name for one in moving.topics] == [topic]
    assert size(target) < size(whole) / 2
    alter(admin, ResourceType.BROKER, str(way), {RATES[way]: None})
    alter(admin, ResourceType.TOPIC, topic, {REPLICAS[way]: None})
    until(lambda: replicas_of(admin, topic) == (1, [1], [1]))
    assert sorted(read_all(cluster.bootstrap, topic, 1, 400)) == sorted(sent)

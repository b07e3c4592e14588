"""Real clients against a real bundled cluster of three brokers."""

import json
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
import trio
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from tests.broker.integration.cluster_steps import until
from tests.broker.integration.settings import set_all_brokers, set_fence
from tests.clusters import RunningCluster, run_cluster
from wire.errors import ErrorCode
from wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from wire.net import open_cluster
from wire.primitives import ZERO_UUID

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    with run_cluster(
        tmp_path_factory.mktemp("cluster"), brokers=3, shares_zookeeper=True
    ) as running:
        yield running


@pytest.fixture(scope="module")
def admin(cluster: RunningCluster) -> AdminClient:
    return AdminClient({"bootstrap.servers": cluster.bootstrap})


def create(admin: AdminClient, name: str, partitions: int = 3, **config: str) -> None:
    settings = {key.replace("_", "."): value for key, value in config.items()}
    admin.create_topics([NewTopic(name, partitions, 1, config=settings)])[name].result(60)


def code_of(error: KafkaException) -> int:
    fault = error.args[0]
    assert isinstance(fault, KafkaError)
    return fault.code()


def producer(cluster: RunningCluster, **settings: Any) -> Producer:
    return Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 5, **settings})


def read_all(cluster: RunningCluster, topic: str, partitions: int, count: int) -> list[bytes]:
    """Return the values of all partitions, read to their ends, once there are `count`."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": f"read-{topic}",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,  # the end is told behind an empty fetch
        }
    )
    consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
    values: list[bytes] = []
    ended: set[int | None] = set()
    deadline = time.monotonic() + 120
    while len(ended) < partitions or len(values) < count:
        assert time.monotonic() < deadline, f"{len(values)} of {count} records, {ended} ended"
        for message in consumer.consume(1_000, 0.02):
            error = message.error()
            if error is None:
                values.append(message.value() or b"")
                ended.discard(message.partition())
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                ended.add(message.partition())
    consumer.close()
    return values


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_and_every_acks_arrives_once(
    cluster: RunningCluster, admin: AdminClient, codec: str
) -> None:
    topic = f"codec-{codec}"
    create(admin, topic)
    sent = []
    for acks in ("0", "1", "all"):
        client = producer(cluster, **{"compression.type": codec, "acks": acks})
        for number in range(100):
            value = f"{acks}-{number}-".encode() * 20
            client.produce(topic, value, key=str(number))
            sent.append(value)
        assert client.flush(60) == 0
    assert sorted(read_all(cluster, topic, 3, 300)) == sorted(sent)


def test_an_idempotent_producer_is_served(cluster: RunningCluster, admin: AdminClient) -> None:
    create(admin, "idempotent", 1)
    client = producer(cluster, **{"enable.idempotence": True})
    sent = [b"%d" % number for number in range(5_000)]
    for value in sent:
        client.produce("idempotent", value)
    assert client.flush(60) == 0
    assert read_all(cluster, "idempotent", 1, 5_000) == sent


def test_a_group_reads_everything_and_goes_on_where_it_was(
    cluster: RunningCluster, admin: AdminClient
) -> None:
    create(admin, "grouped")
    client = producer(cluster)
    settings = {
        "bootstrap.servers": cluster.bootstrap,
        "group.id": "readers",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    seen: list[bytes] = []
    for turn in range(2):
        for number in range(50):
            client.produce("grouped", f"{turn}-{number}")
        assert client.flush(60) == 0
        consumer = Consumer(settings)
        consumer.subscribe(["grouped"])
        deadline = time.monotonic() + 120
        while len(seen) < 50 * (turn + 1) and time.monotonic() < deadline:
            seen += [message.value() or b"" for message in consumer.consume(100, 0.5)]
        consumer.commit(asynchronous=False)
        consumer.close()
    assert sorted(seen) == sorted(
        f"{turn}-{number}".encode() for turn in range(2) for number in range(50)
    )


def test_a_topic_is_created_by_its_first_use(cluster: RunningCluster) -> None:
    client = producer(cluster)
    client.produce("made.by.use", b"first")
    assert client.flush(60) == 0
    assert read_all(cluster, "made.by.use", 1, 1) == [b"first"]


def test_a_topic_is_created_grown_described_and_deleted(
    cluster: RunningCluster, admin: AdminClient
) -> None:
    create(admin, "life", 2, retention_ms="123456", cleanup_policy="compact")
    with pytest.raises(KafkaException) as again:
        create(admin, "life")
    assert code_of(again.value) == KafkaError.TOPIC_ALREADY_EXISTS
    resource = ConfigResource(ResourceType.TOPIC, "life")
    described = admin.describe_configs([resource])[resource].result(60)
    assert described["retention.ms"].value == "123456"
    assert described["cleanup.policy"].value == "compact"
    assert described["segment.bytes"].is_default
    resource = ConfigResource(ResourceType.TOPIC, "life")
    resource.add_incremental_config(
        ConfigEntry("retention.ms", "99", incremental_operation=AlterConfigOpType.SET)
    )
    admin.incremental_alter_configs([resource])[resource].result(60)
    described = admin.describe_configs([resource])[resource].result(60)
    assert described["retention.ms"].value == "99"
    admin.create_partitions([NewPartitions("life", 5)])["life"].result(60)
    assert len(admin.list_topics("life").topics["life"].partitions) == 5
    client = producer(cluster)
    for index in range(5):
        client.produce("life", b"x", partition=index, key=b"k")
    assert client.flush(60) == 0
    admin.delete_topics(["life"])["life"].result(60)
    assert "life" not in admin.list_topics().topics
    assert not list(cluster.data.glob("broker-*/logs/life-?"))
    create(admin, "life", 1)
    assert read_all(cluster, "life", 1, 0) == []


def test_what_an_admin_may_not_do_is_refused_with_kafkas_codes(admin: AdminClient) -> None:
    refused = {
        NewTopic("bad/name", 1, 1): KafkaError.TOPIC_EXCEPTION,
        NewTopic("many", 1, 4): KafkaError.INVALID_REPLICATION_FACTOR,
        NewTopic("strange", 1, 1, config={"no.such": "1"}): KafkaError.INVALID_CONFIG,
    }
    for topic, code in refused.items():
        with pytest.raises(KafkaException) as caught:
            admin.create_topics([topic])[topic.topic].result(60)
        assert code_of(caught.value) == code


def test_with_a_negative_timeout_topics_are_made_and_deleted_all_the_same(
    cluster: RunningCluster, admin: AdminClient
) -> None:
    """Whether that is over when the answer is given is chance; `test_timeouts` has the rest."""
    topic = CreatableTopic(
        name="hasty", num_partitions=1, replication_factor=1, assignments=(), configs=()
    )

    async def create() -> None:
        async with open_cluster(cluster.addresses, client_id="test") as connected:
            await connected.metadata()
            created = await connected.request_controller(
                CreateTopicsRequest(topics=(topic,), timeout_ms=-5)
            )
            assert created.topics[0].error_code in {ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT}

    async def delete() -> None:
        async with open_cluster(cluster.addresses, client_id="test") as connected:
            await connected.metadata()
            state = DeleteTopicState(name="hasty", topic_id=ZERO_UUID)
            deleted = await connected.request_controller(
                DeleteTopicsRequest(topics=(state,), timeout_ms=-5)
            )
            assert deleted.responses[0].error_code in {ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT}

    def is_there() -> bool:
        return "hasty" in admin.list_topics(timeout=60).topics

    trio.run(create)
    until(is_there)
    trio.run(delete)
    until(lambda: not is_there())


def test_offsets_are_found_by_time(cluster: RunningCluster, admin: AdminClient) -> None:
    create(admin, "timed", 1)
    client = producer(cluster)
    for number in range(100):
        client.produce("timed", b"x", timestamp=1_000_000 + number * 10)
    assert client.flush(60) == 0
    reader = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "by-time"})
    (found,) = reader.offsets_for_times([TopicPartition("timed", 0, 1_000_505)], timeout=10)
    reader.close()
    assert found.offset == 51


def test_partitions_are_spread_over_the_brokers(admin: AdminClient) -> None:
    create(admin, "spread", 6)
    leaders: list[int] = []
    deadline = time.monotonic() + 120
    while len(leaders) < 6 and time.monotonic() < deadline:
        found = admin.list_topics("spread").topics["spread"].partitions.values()
        leaders = [partition.leader for partition in found if partition.leader >= 0]
    assert sorted(leaders) == [0, 0, 1, 1, 2, 2]


def test_replicas_are_assigned_and_all_are_in_sync(admin: AdminClient) -> None:
    admin.create_topics([NewTopic("copies", 3, 3)])["copies"].result(60)
    partitions = admin.list_topics("copies").topics["copies"].partitions.values()
    found = [(sorted(partition.replicas), sorted(partition.isrs)) for partition in partitions]
    assert found == [([0, 1, 2], [0, 1, 2])] * 3


def deliver(client: Producer, topic: str, partition: int) -> KafkaError | None:
    """Return what came of one record, None when it was written."""
    outcome: list[KafkaError | None] = []
    client.produce(
        topic, b"x", partition=partition, on_delivery=lambda error, _: outcome.append(error)
    )
    client.flush(60)
    return outcome[0]


def test_a_fence_holds_on_every_broker_until_it_is_lifted(
    cluster: RunningCluster, admin: AdminClient
) -> None:
    create(admin, "fenced", 3)
    create(admin, "open", 3)
    stranger = producer(cluster, **{"message.timeout.ms": 1_500, "client.id": "stranger"})
    patient = producer(cluster, **{"message.timeout.ms": 60_000, "client.id": "patient"})
    mirror = producer(cluster, **{"message.timeout.ms": 60_000, "client.id": "mirror-a-b"})
    set_fence(cluster, "fenced", "mirror-a-b")
    before_it_held = 0
    for partition in range(3):
        while deliver(stranger, "fenced", partition) is None:  # this broker hears of it soon
            before_it_held += 1
        assert deliver(patient, "open", partition) is None
        assert deliver(mirror, "fenced", partition) is None
    set_fence(cluster, "", "")
    for partition in range(3):
        assert deliver(patient, "fenced", partition) is None
    written = 6 + before_it_held
    assert len(read_all(cluster, "fenced", 3, written)) == written


def test_what_no_broker_can_change_at_run_time_is_refused(cluster: RunningCluster) -> None:
    assert set_all_brokers(cluster, {"zookeeper.connect": "x:1"}) == [ErrorCode.INVALID_REQUEST]


def test_metrics_and_health_are_served(cluster: RunningCluster, admin: AdminClient) -> None:
    admin.create_topics([NewTopic("observed", 3, 3)])["observed"].result(60)
    controllers = 0
    for broker, (host, port) in enumerate(cluster.addresses):
        AdminClient({"bootstrap.servers": f"{host}:{port}"}).list_topics(timeout=60)
        url = cluster.metrics_url(broker)
        text = urllib.request.urlopen(url, timeout=60).read().decode()  # noqa: S310 - our own
        controllers += "broker_is_controller 1.0" in text
        assert 'broker_request_duration_seconds_count{api="Metadata"}' in text
        assert "broker_offline_partitions 0.0" in text
        assert "broker_log_cleaner_max_dirty_ratio 0.0" in text
        assert 'broker_log_cleaner_uncleanable_bytes{log_directory="' in text
        assert 'broker_log_end_offset{topic="' in text
        assert 'broker_follower_lag_records{topic="' in text
        assert 'kafka_dr_build_info{program="broker",version="' in text
        assert "process_resident_memory_bytes" in text
        ready = url.replace("/metrics", "/health/ready")
        assert urllib.request.urlopen(ready, timeout=60).status == 200  # noqa: S310 - our own
    assert controllers == 1


def test_the_ready_file_says_where_everything_is(cluster: RunningCluster) -> None:
    ready = json.loads((cluster.data.parent / "dc1.ready.json").read_text())
    assert ready["bootstrap"] == cluster.bootstrap
    assert [broker["id"] for broker in ready["brokers"]] == [0, 1, 2]
    assert f"bootstrap  {cluster.bootstrap}" in cluster.log

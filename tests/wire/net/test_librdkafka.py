"""librdkafka as the other side: its clients read what we write, and its mock brokers keep us, and
the fake cluster that the other tests trust, honest."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

import pytest
from confluent_kafka import Consumer, Message, Producer
from confluent_kafka import TopicPartition as PartitionOffset

from tests.doubles.fake_cluster import run_fake_cluster
from wire.compression import Compression
from wire.errors import ErrorCode
from wire.net import Address, Cluster, RequestRefused, open_cluster
from wire.net.operations import (
    EARLIEST,
    append,
    commit_group_offsets,
    list_offsets,
    read_partition,
)
from wire.record_batch import (
    Record,
    build_batch,
    crc_is_valid,
    iterate_record_heads,
    iterate_records,
    parse_header,
    rewrite,
)
from wire.topic_partition import TopicPartition

TIMEOUT_S = 10


@dataclass
class MockCluster:
    """Brokers that live inside a librdkafka producer."""

    producer: Producer
    bootstrap: list[Address]

    @property
    def servers(self) -> str:
        return ",".join(f"{host}:{port}" for host, port in self.bootstrap)


@pytest.fixture
def mock() -> Iterator[MockCluster]:
    producer = Producer(
        {"bootstrap.servers": "", "test.mock.num.brokers": 3, "log_level": 0, "linger.ms": 20}
    )
    brokers = producer.list_topics(timeout=TIMEOUT_S).brokers.values()
    yield MockCluster(producer, [(broker.host, broker.port) for broker in brokers])
    producer.flush(TIMEOUT_S)


def client(bootstrap: list[Address]) -> AbstractAsyncContextManager[Cluster]:
    return open_cluster(bootstrap[:1], client_id="test")


def records(count: int) -> list[Record]:
    return [
        Record(
            number,
            1_700_000_000_000 + number,
            None if number % 3 == 0 else b"key-%d" % number,
            None if number % 5 == 0 else b"value-%d " % number * number,
            (("first", b"1"), ("first", None), ("ö", b"")) if number % 2 else (),
        )
        for number in range(count)
    ]


async def test_librdkafka_reads_what_we_build_in_every_compression(mock: MockCluster) -> None:
    mock.producer.list_topics("orders", timeout=TIMEOUT_S)
    async with client(mock.bootstrap) as cluster:
        for codec in Compression:
            answer = await append(cluster, "orders", 0, build_batch(records(50), compression=codec))
            assert answer.error_code == ErrorCode.NONE
    consumer = Consumer({"bootstrap.servers": mock.servers, "group.id": "g", "check.crcs": True})
    consumer.assign([PartitionOffset("orders", 0, 0)])
    messages: list[Message] = []
    while len(messages) < 250:
        got = consumer.consume(250, TIMEOUT_S)
        assert got
        messages += got
    consumer.close()
    expected = records(50) * 5
    for offset, (message, record) in enumerate(zip(messages, expected, strict=True)):
        assert message.error() is None
        assert message.offset() == offset
        assert message.timestamp()[1] == record.timestamp_ms
        assert message.key() == record.key
        assert message.value() == record.value
        assert tuple(message.headers() or ()) == record.headers


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
async def test_we_read_what_librdkafka_builds_and_forward_it(mock: MockCluster, codec: str) -> None:
    producer = Producer(
        {"bootstrap.servers": mock.servers, "compression.type": codec, "linger.ms": 30_000}
    )
    wanted = records(100)
    for record in wanted:
        producer.produce(
            "orders",
            value=record.value,
            key=record.key,
            partition=0,
            timestamp=record.timestamp_ms,
            headers=[*record.headers],
        )
    assert producer.flush(TIMEOUT_S) == 0
    async with client(mock.bootstrap) as cluster:
        read: list[Record] = []
        async for header, batch in read_partition(cluster, "orders", 0, 0, 100):
            assert crc_is_valid(batch)
            assert header.compression.name.lower() == codec
            read += iterate_records(batch)
            assert len(list(iterate_record_heads(batch))) == header.record_count
            forwarded = rewrite(
                batch,
                base_offset=header.base_offset,
                producer_id=header.producer_id,
                producer_epoch=header.producer_epoch,
                base_sequence=header.base_sequence,
                partition_leader_epoch=header.partition_leader_epoch,
            )
            assert b"".join(forwarded) == batch
            assert parse_header(forwarded[0]) == header
    assert read == wanted


async def test_our_commits_are_librdkafkas_positions(mock: MockCluster) -> None:
    mock.producer.list_topics("orders", timeout=TIMEOUT_S)
    async with client(mock.bootstrap) as cluster:
        codes = await commit_group_offsets(
            cluster, "g", {TopicPartition("orders", 1): (17, "note")}
        )
    assert codes == {("orders", 1): ErrorCode.NONE}
    consumer = Consumer({"bootstrap.servers": mock.servers, "group.id": "g"})
    (stored,) = consumer.committed([PartitionOffset("orders", 1)], timeout=TIMEOUT_S)
    consumer.close()
    assert stored.offset == 17


@asynccontextmanager
async def fake_with_a_topic() -> AsyncIterator[list[Address]]:
    async with run_fake_cluster(3) as fake:
        fake.create_topic("orders", 0, 1, 2, 0)
        yield fake.bootstrap


@asynccontextmanager
async def mock_with_a_topic(mock: MockCluster) -> AsyncIterator[list[Address]]:
    mock.producer.list_topics("orders", timeout=TIMEOUT_S)
    yield mock.bootstrap


@pytest.fixture(params=["fake", "mock"])
def either(
    request: pytest.FixtureRequest, mock: MockCluster
) -> Callable[[], AbstractAsyncContextManager[list[Address]]]:
    return fake_with_a_topic if request.param == "fake" else lambda: mock_with_a_topic(mock)


async def test_the_fake_cluster_answers_as_the_mock_cluster_does(
    either: Callable[[], AbstractAsyncContextManager[list[Address]]],
) -> None:
    async with either() as bootstrap, client(bootstrap) as cluster:
        view = await cluster.metadata(["orders", "nowhere"])
        assert len(view.brokers) == 3
        assert set(view.topics["orders"].partitions) == {0, 1, 2, 3}
        assert view.topics["nowhere"].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        for expected_base in (0, 3):
            answer = await append(cluster, "orders", 1, build_batch(records(3)))
            assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, expected_base)
        place = TopicPartition("orders", 1)
        assert await list_offsets(cluster, {place, TopicPartition("orders", 9)}) == {
            place: 6,
            ("orders", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        assert await list_offsets(cluster, {place}, EARLIEST) == {place: 0}
        read = [header async for header, _ in read_partition(cluster, "orders", 1, 0, 6)]
        assert [(header.base_offset, header.record_count) for header in read] == [(0, 3), (3, 3)]
        with pytest.raises(RequestRefused, match="OFFSET_OUT_OF_RANGE"):
            await anext(read_partition(cluster, "orders", 1, 50, 60))
        codes = await commit_group_offsets(cluster, "g", {place: (4, "")})
        assert codes == {place: ErrorCode.NONE}

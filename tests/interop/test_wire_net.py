"""Our client and codecs against Apache Kafka: what one writes the other reads, byte by byte."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final
from uuid import UUID

import pytest

from tests.interop.client_calls import allocate_producer, create_topic, read_records
from tests.interop.peers import KafkaCluster, Mode, run_tool
from tests.interop.peers.tools import (
    CONSOLE_CONSUMER,
    GET_OFFSETS,
    GROUPS,
    TOPICS,
    VERIFIABLE_PRODUCER,
)
from wire.compression import Compression
from wire.errors import ErrorCode
from wire.messages.table import APIS
from wire.net import Cluster, UnsupportedApi, open_cluster
from wire.net.operations import (
    EARLIEST,
    LATEST,
    append,
    commit_group_offsets,
    describe_groups,
    fetch_group_offsets,
    list_groups,
    list_offsets,
    read_partition,
)
from wire.record_batch import Record, build_batch, crc_is_valid
from wire.topic_partition import TopicPartition

pytestmark = pytest.mark.matrix(subject="Our protocol client (wire) against Apache Kafka")

T0: Final = 1_700_000_000_000


@asynccontextmanager
async def opened(kafka: KafkaCluster) -> AsyncIterator[Cluster]:
    async with open_cluster(kafka.addresses, client_id="interop") as cluster:
        yield cluster


async def test_versions_are_negotiated_for_every_api_of_a_client(kafka: KafkaCluster) -> None:
    brokers_only = {
        "AlterPartition",
        "ControlledShutdown",
        "LeaderAndIsr",
        "StopReplica",
        "UpdateMetadata",
    }
    of_kraft = {"DescribeQuorum", "DescribeTopicPartitions"}
    without_kraft = of_kraft if kafka.kind.mode is Mode.ZOOKEEPER else set()
    missing = set()
    async with opened(kafka) as cluster:
        connection = await cluster.any_connection()
        for request in APIS.values():
            try:
                assert connection.version_of(request) in request.VERSIONS
            except UnsupportedApi:
                missing.add(request.__name__.removesuffix("Request"))
    assert missing - brokers_only == without_kraft


async def test_metadata_names_brokers_topics_and_leaders(kafka: KafkaCluster) -> None:
    async with opened(kafka) as cluster:
        assert await create_topic(cluster, "described", partitions=3) == ErrorCode.NONE
        view = await cluster.metadata(("described", "absent"), refresh=True)
    (broker,) = view.brokers.values()
    topic = view.topics["described"]
    assert broker.address == kafka.addresses[0]
    assert topic.topic_id != UUID(int=0)
    assert {index: place.leader for index, place in topic.partitions.items()} == dict.fromkeys(
        range(3), broker.node_id
    )
    assert view.topics["absent"].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_a_topic_made_by_us_has_its_settings_and_cannot_be_made_twice(
    kafka: KafkaCluster,
) -> None:
    async with opened(kafka) as cluster:
        settings = {"cleanup.policy": "compact", "max.message.bytes": "2000000"}
        await create_topic(cluster, "configured", partitions=2, settings=settings)
        assert await create_topic(cluster, "configured") == ErrorCode.TOPIC_ALREADY_EXISTS
    told = run_tool(
        kafka.kind.version,
        TOPICS,
        *("--bootstrap-server", kafka.bootstrap, "--describe", "--topic", "configured"),
    )
    assert "PartitionCount: 2" in told
    assert "cleanup.policy=compact" in told
    assert "max.message.bytes=2000000" in told


async def test_batches_in_every_compression_are_read_by_the_console_consumer(
    kafka: KafkaCluster,
) -> None:
    async with opened(kafka) as cluster:
        await create_topic(cluster, "ours")
        for place, compression in enumerate(Compression):
            records = [
                Record(
                    offset=number,
                    timestamp_ms=T0 + number,
                    key=f"{compression.name}-{number}".encode(),
                    value=None if number == 7 else b"v" * number,
                    headers=(("h", b"1"), ("h", None)),
                )
                for number in range(50)
            ]
            answer = await append(cluster, "ours", 0, build_batch(records, compression=compression))
            assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, place * 50)
    told = run_tool(
        kafka.kind.version,
        CONSOLE_CONSUMER,
        *("--bootstrap-server", kafka.bootstrap, "--topic", "ours", "--from-beginning"),
        *("--max-messages", "250", "--timeout-ms", "20000"),
        *_each(
            _formatter_option(kafka),
            *("print.key=true", "print.timestamp=true", "print.headers=true"),
            "null.literal=NULL",
        ),
    )
    assert told.splitlines() == [
        f"CreateTime:{T0 + number}\th:1,h:NULL\t{compression.name}-{number}\t"
        f"{'NULL' if number == 7 else 'v' * number}"
        for compression in Compression
        for number in range(50)
    ]


async def test_batches_of_the_java_producer_in_every_compression_are_read_by_us(
    kafka: KafkaCluster, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("producer")
    codecs = [codec.name.lower() for codec in Compression]
    async with opened(kafka) as cluster:
        await create_topic(cluster, "theirs")
        for codec in codecs:
            settings = folder / f"{codec}.properties"
            settings.write_text(f"compression.type={codec}\nlinger.ms=50\n")
            run_tool(
                kafka.kind.version,
                VERIFIABLE_PRODUCER,
                *("--bootstrap-server", kafka.bootstrap, "--topic", "theirs"),
                *("--max-messages", "300", "--value-prefix", str(codecs.index(codec))),
                *(_command_config(kafka), str(settings)),
            )
        batches = [
            (header, bytes(batch))
            async for header, batch in read_partition(cluster, "theirs", 0, 0, 1500)
        ]
        records = await read_records(cluster, "theirs", 0, 1500)
    assert all(crc_is_valid(memoryview(batch)) for _, batch in batches)
    assert {header.compression for header, _ in batches} == set(Compression)
    assert [record.offset for record in records] == list(range(1500))
    assert [record.value for record in records] == [
        f"{codec}.{number}".encode() for codec in range(5) for number in range(300)
    ]


async def test_offsets_are_listed_by_end_start_and_time(kafka: KafkaCluster) -> None:
    place = TopicPartition("timed", 1)
    async with opened(kafka) as cluster:
        await create_topic(cluster, "timed", partitions=2)
        for base in (0, 10):
            records = [
                Record(offset=n, timestamp_ms=T0 + base + n, key=None, value=b"x")
                for n in range(10)
            ]
            await append(cluster, "timed", 1, build_batch(records))
        empty = TopicPartition("timed", 0)
        assert await list_offsets(cluster, [place, empty], LATEST) == {place: 20, empty: 0}
        assert await list_offsets(cluster, [place], EARLIEST) == {place: 0}
        assert await list_offsets(cluster, [place, empty], T0 + 13) == {place: 13, empty: -1}
        assert await list_offsets(cluster, [TopicPartition("timed", 7)], LATEST) == {
            ("timed", 7): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        }
    told = run_tool(
        kafka.kind.version,
        GET_OFFSETS,
        *("--bootstrap-server", kafka.bootstrap, "--topic", "timed"),
    )
    assert told.split() == ["timed:0:0", "timed:1:20"]


async def test_group_positions_of_ours_are_described_by_kafkas_tool(kafka: KafkaCluster) -> None:
    async with opened(kafka) as cluster:
        await create_topic(cluster, "grouped", partitions=2)
        places = {
            TopicPartition("grouped", 0): (0, ""),
            TopicPartition("grouped", 1): (41, "where it was"),
        }
        answer = await commit_group_offsets(cluster, "ours", places)
        assert answer == dict.fromkeys(places, ErrorCode.NONE)
        found = await fetch_group_offsets(cluster, "ours")
        groups = await list_groups(cluster)
        described = await describe_groups(cluster, ["ours"])
    assert {place: (at.offset, at.metadata) for place, at in found.items()} == places
    assert groups["ours"].group_id == "ours"
    assert (described["ours"].state, described["ours"].members) == ("Empty", ())
    told = run_tool(
        kafka.kind.version,
        GROUPS,
        *("--bootstrap-server", kafka.bootstrap, "--describe", "--group", "ours"),
    )
    rows = sorted(line.split()[1:4] for line in told.splitlines() if line.startswith("ours"))
    assert rows == [["grouped", "0", "0"], ["grouped", "1", "41"]]


async def test_an_idempotent_batch_is_stored_once_and_a_skipped_sequence_refused(
    kafka: KafkaCluster,
) -> None:
    async with opened(kafka) as cluster:
        await create_topic(cluster, "once")
        given = await allocate_producer(cluster)
        assert given.error_code == ErrorCode.NONE

        def batch(sequence: int) -> bytes:
            record = Record(offset=0, timestamp_ms=T0, key=b"k", value=str(sequence).encode())
            return build_batch(
                [record],
                producer_id=given.producer_id,
                producer_epoch=given.producer_epoch,
                base_sequence=sequence,
            )

        answers = [
            await append(cluster, "once", 0, batch(sequence)) for sequence in (0, 1, 0, 1, 5)
        ]
        end = await list_offsets(cluster, [TopicPartition("once", 0)], LATEST)
    assert [(answer.error_code, answer.base_offset) for answer in answers] == [
        (ErrorCode.NONE, 0),
        (ErrorCode.NONE, 1),
        (ErrorCode.NONE, 0),
        (ErrorCode.NONE, 1),
        (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1),
    ]
    assert end == {("once", 0): 2}


def _command_config(kafka: KafkaCluster) -> str:
    """Return the option that gives a tool its settings file; Kafka 4 gave it one name."""
    return "--producer.config" if kafka.kind.version.startswith("3.") else "--command-config"


def _formatter_option(kafka: KafkaCluster) -> str:
    return "--property" if kafka.kind.version.startswith("3.") else "--formatter-property"


def _each(option: str, *values: str) -> list[str]:
    return [argument for value in values for argument in (option, value)]

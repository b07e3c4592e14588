"""The client against real bundled brokers: every composed call, and a broker that is killed."""

from collections.abc import Iterator

import pytest
import trio

from tests.clusters import RunningCluster, run_cluster
from wire.compression import Compression
from wire.errors import ErrorCode
from wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from wire.net import Cluster, NetworkFault, RequestRefused, open_cluster
from wire.net.operations import (
    EARLIEST,
    GroupOffset,
    append,
    commit_group_offsets,
    describe_groups,
    fetch_group_offsets,
    list_groups,
    list_offsets,
    read_partition,
)
from wire.record_batch import Record, build_batch, iterate_records
from wire.topic_partition import TopicPartition

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    with run_cluster(
        tmp_path_factory.mktemp("bundled"), brokers=3, shares_zookeeper=True
    ) as cluster:
        yield cluster


async def create_topic(cluster: Cluster, name: str, partitions: int) -> None:
    topic = CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=1, assignments=(), configs=()
    )
    answer = await cluster.request_controller(
        CreateTopicsRequest(topics=(topic,), timeout_ms=10_000)
    )
    assert answer.topics[0].error_code == ErrorCode.NONE
    with trio.fail_after(60):
        for partition in range(partitions):
            await leader_of(cluster, name, partition)


async def leader_of(cluster: Cluster, topic: str, partition: int) -> None:
    while True:
        try:
            await cluster.leader(topic, partition)
        except RequestRefused:
            await trio.sleep(0.05)
        else:
            return


async def test_what_is_appended_in_every_compression_is_read_back(running: RunningCluster) -> None:
    async with open_cluster(running.addresses[:1], client_id="test") as cluster:
        await create_topic(cluster, "orders", 3)
        sent: list[Record] = []
        for codec in Compression:
            records = [Record(n, 1_000 + n, b"k", b"v" * 500, (("h", None),)) for n in range(20)]
            answer = await append(cluster, "orders", 1, build_batch(records, compression=codec))
            assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, len(sent))
            sent += [record._replace(offset=len(sent) + record.offset) for record in records]
        places = {TopicPartition("orders", partition) for partition in range(4)}
        assert await list_offsets(cluster, places) == {
            ("orders", 0): 0,
            ("orders", 1): 100,
            ("orders", 2): 0,
            ("orders", 3): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        assert await list_offsets(cluster, {TopicPartition("orders", 1)}, EARLIEST) == {
            ("orders", 1): 0
        }
        read: list[Record] = []
        async for _, batch in read_partition(cluster, "orders", 1, 0, 100):
            read += iterate_records(batch)
        assert read == sent
        with pytest.raises(RequestRefused, match="OFFSET_OUT_OF_RANGE"):
            await anext(read_partition(cluster, "orders", 1, 500, 600))


async def test_positions_of_a_group_are_stored_told_and_listed(running: RunningCluster) -> None:
    async with open_cluster(running.addresses[:1], client_id="test") as cluster:
        await create_topic(cluster, "payments", 2)
        with trio.fail_after(60):
            codes = await commit_group_offsets(
                cluster,
                "readers",
                {
                    TopicPartition("payments", 0): (7, "note"),
                    TopicPartition("payments", 1): (0, ""),
                },
            )
            assert set(codes.values()) == {ErrorCode.NONE}
            offsets = await fetch_group_offsets(cluster, "readers")
            assert offsets[TopicPartition("payments", 0)] == GroupOffset(offset=7, metadata="note")
            assert offsets[TopicPartition("payments", 1)].offset == 0
            assert "readers" in await list_groups(cluster)
            described = await describe_groups(cluster, ["readers", "nobody"])
            assert described["readers"].state == "Empty"
            assert described["nobody"].state == "Dead"


async def test_members_of_the_new_protocol_are_described(running: RunningCluster) -> None:
    async with open_cluster(running.addresses, client_id="test") as cluster:
        await create_topic(cluster, "beats", 1)
        for number in range(2):
            joined = await cluster.request_coordinator(
                "beaters",
                ConsumerGroupHeartbeatRequest(
                    group_id="beaters",
                    member_id=f"m-{number}",
                    member_epoch=0,
                    rebalance_timeout_ms=60_000,
                    subscribed_topic_names=("beats",),
                    topic_partitions=(),
                ),
            )
            assert joined.error_code == ErrorCode.NONE
        described = await describe_groups(cluster, ["beaters", "nobody"])
        group = described["beaters"]
        assert (group.protocol_type, group.protocol) == ("consumer", "uniform")
        assert sorted(member.member_id for member in group.members) == ["m-0", "m-1"]
        assert described["nobody"].state == "Dead"
        codes = await commit_group_offsets(
            cluster, "beaters", {TopicPartition("beats", 0): (0, "")}
        )
        assert set(codes.values()) == {ErrorCode.UNKNOWN_MEMBER_ID}


async def test_many_requests_in_flight_keep_their_order(running: RunningCluster) -> None:
    async with open_cluster(running.addresses, client_id="test") as cluster:
        await create_topic(cluster, "deep", 1)
        bases: list[int] = []

        async def produce(number: int) -> None:
            batch = build_batch([Record(0, number, None, bytes(50_000))])
            answer = await append(cluster, "deep", 0, batch)
            assert answer.error_code == ErrorCode.NONE
            bases.append(answer.base_offset)

        async with trio.open_nursery() as nursery:
            for number in range(100):
                nursery.start_soon(produce, number)
        assert sorted(bases) == list(range(100))


async def test_a_killed_broker_is_found_again(running: RunningCluster) -> None:
    async with open_cluster(running.addresses, client_id="test") as cluster:
        await create_topic(cluster, "fragile", 1)
        await append(cluster, "fragile", 0, build_batch([Record(0, 0, None, b"before")]))
        view = await cluster.metadata(["fragile"])
        victim = view.partition("fragile", 0).leader
        running.kill_broker(victim)
        with pytest.raises(NetworkFault):
            await append(cluster, "fragile", 0, build_batch([Record(0, 0, None, b"lost")]))
        running.start_broker(victim)
        with trio.fail_after(60):
            await wait_end(cluster, 1)
        read = [batch async for _, batch in read_partition(cluster, "fragile", 0, 0, 1)]
        assert [record.value for record in iterate_records(read[0])] == [b"before"]


async def wait_end(cluster: Cluster, end: int) -> None:
    while True:
        try:
            if await list_offsets(cluster, {TopicPartition("fragile", 0)}) == {("fragile", 0): end}:
                return
        except NetworkFault:
            pass  # it is still away
        await trio.sleep(0.1)

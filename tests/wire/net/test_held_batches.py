"""Batches of many partitions: one request for each leader, and nothing is guessed."""

import pytest

from tests.doubles.fake_cluster import FakeCluster, run_fake_cluster
from wire.errors import ErrorCode
from wire.messages.fetch import (
    FetchableTopicResponse,
    FetchPartitionData,
    FetchRequest,
    FetchResponse,
)
from wire.net import open_cluster
from wire.net.held_batches import PARTITIONS_A_REQUEST, held_batches
from wire.net.operations import append
from wire.record_batch import Record, build_batch
from wire.topic_partition import TopicPartition

FIRST = TopicPartition("orders", 0)


def batch(count: int) -> bytes:
    return build_batch([Record(number, 1_000, None, b"v" * 10) for number in range(count)])


def fetches(fake: FakeCluster) -> int:
    return sum(
        header.api_key == FetchRequest.API_KEY
        for broker in fake.brokers.values()
        for header, _ in broker.asked
    )


@pytest.mark.parametrize("newest_fetch", [4, 12, 17])
async def test_each_leader_is_asked_for_many_partitions_at_once(newest_fetch: int) -> None:
    async with run_fake_cluster(2) as fake, open_cluster(fake.bootstrap, client_id="t") as cluster:
        fake.versions[FetchRequest.API_KEY] = range(newest_fetch + 1)
        count = PARTITIONS_A_REQUEST + 1
        places = {}
        for topic in ("orders", "bills"):
            fake.create_topic(topic, *[index % 2 for index in range(count)])
            for index in (0, 1, count - 1):
                await append(cluster, topic, index, batch(3))
                await append(cluster, topic, index, batch(2))
                places[TopicPartition(topic, index)] = 2 + index % 2
        held = await held_batches(cluster, places)
        assert {
            where: found[0].base_offset for where, found in held.items() if found is not None
        } == {where: 3 if offset == 3 else 0 for where, offset in places.items()}
        assert fetches(fake) == 2


async def test_a_request_names_no_more_partitions_than_an_answer_may_hold() -> None:
    async with run_fake_cluster() as fake, open_cluster(fake.bootstrap, client_id="t") as cluster:
        count = PARTITIONS_A_REQUEST + 1
        topic = fake.create_topic("orders", *[0] * count)
        for partition in topic.partitions.values():
            partition.batches, partition.end = [batch(1)], 1
        places = [TopicPartition("orders", index) for index in range(count)]
        assert set(await held_batches(cluster, dict.fromkeys(places, 0))) == set(places)
        assert fetches(fake) == 2


async def test_a_hole_is_told_and_what_nobody_tells_is_left_out() -> None:
    async with run_fake_cluster() as fake, open_cluster(fake.bootstrap, client_id="t") as cluster:
        topic = fake.create_topic("orders", 0, 0, -1)
        await append(cluster, "orders", 0, batch(2))
        topic.partitions[0].end = 5  # compaction took what lay between
        await append(cluster, "orders", 0, batch(1))
        topic.partitions[1].end = 5  # or what lay at the end, or it comes late
        places = {TopicPartition("orders", index): 3 for index in range(3)}
        places[TopicPartition("nowhere", 0)] = 3
        assert await held_batches(cluster, places) == {FIRST: None}


async def test_a_leader_that_moved_is_not_believed() -> None:
    async with run_fake_cluster(2) as fake, open_cluster(fake.bootstrap, client_id="t") as cluster:
        topic = fake.create_topic("orders", 0)
        await append(cluster, "orders", 0, batch(1))
        topic.partitions[0].leader = 1
        assert await held_batches(cluster, {FIRST: 0}) == {}


@pytest.mark.parametrize(
    "records",
    [batch(1)[:40], batch(1)[:8] + b"\xff\xff\xff\xff" + batch(1)[12:], b""],
    ids=["cut off", "damaged", "none"],
)
async def test_what_is_no_whole_batch_is_left_out(records: bytes) -> None:
    async with run_fake_cluster() as fake, open_cluster(fake.bootstrap, client_id="t") as cluster:
        topic = fake.create_topic("orders", 0)

        async def answer(_: object, __: object) -> FetchResponse:
            data = FetchPartitionData(
                partition_index=0, error_code=ErrorCode.NONE, high_watermark=1, records=records
            )
            named = FetchableTopicResponse(topic_id=topic.topic_id, partitions=(data,))
            return FetchResponse(responses=(named,))

        fake.brokers[0].scripts[FetchRequest.API_KEY] = answer
        assert await held_batches(cluster, {FIRST: 0}) == {}

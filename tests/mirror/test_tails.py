"""What is read off the last batches of a target, and what becomes of what cannot be read."""

from dataclasses import replace
from uuid import UUID

import pytest

from mirror.map_log import MapLog
from mirror.partition import MirroredPartition
from mirror.start_position import LogEnds
from mirror.tails import Tails, find_strangers, read_tails
from offset_translation.map_records import MirrorProducer, mirror_producer
from offset_translation.offset_map import OffsetMap
from offset_translation.tail import Tail, TailGarbled
from tests.doubles.fake_answers import ANSWERS
from tests.doubles.fake_cluster import FakeCluster, run_fake_cluster
from wire.errors import ErrorCode
from wire.headers import RequestHeader
from wire.messages.fetch import FetchRequest, FetchResponse
from wire.net import Cluster, ConnectionClosed, RequestRefused, open_cluster
from wire.record_batch import Record, assign_offsets, build_batch

MIRROR = MirrorProducer(producer_id=7, producer_epoch=0)
FETCH = 1


def a_partition(index: int) -> MirroredPartition:
    return MirroredPartition(
        "orders",
        index,
        topic_id=UUID(int=1),
        offset_map=OffsetMap.from_starts([(0, 0)], target_end=0),
        now_ms=0,
    )


def fill(fake: FakeCluster, *leaders: int) -> list[MirroredPartition]:
    """Give each partition two records of the mirror's."""
    topic = fake.create_topic("orders", *leaders)
    for partition in topic.partitions.values():
        batch = bytearray(
            build_batch(
                [Record(at, 0, None, b"v") for at in range(2)],
                producer_id=MIRROR.producer_id,
                producer_epoch=MIRROR.producer_epoch,
                base_sequence=0,
            )
        )
        assign_offsets(batch, 0, 0)
        partition.batches.append(bytes(batch))
        partition.end = 2
    return [a_partition(index) for index in topic.partitions]


async def read(cluster: Cluster, partitions: list[MirroredPartition], *, shared: bool) -> Tails:
    map_log = MapLog(cluster, "dc1", 1)
    map_log.state.replay(*mirror_producer(MIRROR))
    target: dict[tuple[str, int], LogEnds | ErrorCode] = {
        (one.topic, one.index): LogEnds(start=0, end=2) for one in partitions
    }
    reads = read_tails if shared else find_strangers
    return await reads(cluster, partitions, target, map_log)


async def test_the_tail_of_a_shared_target_says_how_far_it_is_mirrored() -> None:
    async with run_fake_cluster(2) as fake:
        partitions = fill(fake, 0, 1)
        async with open_cluster(fake.bootstrap, client_id="test") as cluster:
            tails = await read(cluster, partitions, shared=True)
    for index in range(2):
        tail = tails["orders", index]
        assert isinstance(tail, Tail)
        assert tail.reached.place == 2


@pytest.mark.parametrize("shared", [True, False])
async def test_a_leader_that_is_gone_is_a_fault_that_passes(shared: bool) -> None:
    async with run_fake_cluster(2) as fake:
        partitions = fill(fake, 0, 1)
        fake.topics["orders"].partitions[1].leader = -1
        async with open_cluster(fake.bootstrap, client_id="test") as cluster:
            with pytest.raises(RequestRefused, match="LEADER_NOT_AVAILABLE"):
                await read(cluster, partitions, shared=shared)


async def test_connections_that_end_at_once_are_one_fault_that_passes() -> None:
    async with run_fake_cluster(2) as fake:
        partitions = fill(fake, 0, 1)

        async def cut(*_: object) -> None:
            for broker in fake.brokers.values():
                await broker.cut_connections()

        for broker in fake.brokers.values():
            broker.scripts[FETCH] = cut
        async with open_cluster(fake.bootstrap, client_id="test") as cluster:
            with pytest.raises(ConnectionClosed):
                await read(cluster, partitions, shared=True)


@pytest.mark.parametrize("shared", [True, False])
async def test_a_last_batch_that_is_damaged_is_told_and_concerns_its_partition_alone(
    shared: bool,
) -> None:
    async with run_fake_cluster(1) as fake:
        partitions = fill(fake, 0, 0)
        [broker] = fake.brokers.values()

        async def damaged(header: RequestHeader, request: FetchRequest) -> FetchResponse:
            answer: FetchResponse = ANSWERS[FETCH](broker, header.api_version, request)
            [topic] = answer.responses
            [found] = topic.partitions
            if found.partition_index == 1:
                assert isinstance(found.records, bytes)
                batch = found.records
                found = replace(found, records=batch[:16] + b"\x07" + batch[17:])
            return replace(answer, responses=(replace(topic, partitions=(found,)),))

        broker.scripts[FETCH] = damaged
        async with open_cluster(fake.bootstrap, client_id="test") as cluster:
            tails = await read(cluster, partitions, shared=shared)
    assert not isinstance(tails.get(("orders", 0)), TailGarbled)
    told = tails["orders", 1]
    assert isinstance(told, TailGarbled)
    assert "damaged" in str(told)

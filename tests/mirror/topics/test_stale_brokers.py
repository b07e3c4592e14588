"""Brokers that are cut off from their controller alone: what they do not know is not gone."""

from dataclasses import replace

import pytest
import trio

from mirror.clusters.admin import delete_topic
from mirror.map.map_log import MapLog
from mirror.state.partition_state import STOPPED
from mirror.topics import discovery as topics
from mirror.topics.discovery import Discovery
from mirror.topics.gone_topics import LEAST_GRACE_MS
from tests.doubles.fake_cluster import FakeCluster, run_fake_cluster
from tests.doubles.map_writers import MemoryWriters
from tests.mirror.building import CONFIG
from tests.mirror.topics.discovering import discovery, note_deletions, tell_settings
from wire.errors import ErrorCode
from wire.headers import RequestHeader
from wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from wire.net import Cluster, open_cluster
from wire.topic_partition import TopicPartition

DELETES = replace(CONFIG, delete_gone_after_ms=LEAST_GRACE_MS)
LOOKS_EVERY_MS = 4_000
"""Two looks in a row are within every grace time, three are not."""


class Clock:
    """The mirror's clock: each look comes a while after the last one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._now_ms = 1_000_000
        monkeypatch.setattr(topics, "now_ms", lambda: self._now_ms)

    async def look(self, looking: Discovery) -> None:
        self._now_ms += LOOKS_EVERY_MS
        await looking.discover()


def forget_topic(fake: FakeCluster, node: int, topic: str) -> None:
    """Cut a broker off that has not heard of a topic."""
    fake.brokers[node].cut_off()
    del fake.brokers[node].topics_heard_of[topic]


async def mirror_two(
    looking: Discovery, clock: Clock, dc1: FakeCluster, dc2: FakeCluster, map_log: MapLog
) -> None:
    """Have `old` and `new` of both clusters mirrored, and all their brokers known."""
    for fake in (dc1, dc2):
        tell_settings(fake, {})
        for topic in ("old", "new"):
            fake.create_topic(topic, 1)
            map_log.state.topic_ids[topic] = fake.topics[topic].topic_id
    dc2.create_topic("dc1.offset-map.internal", 1)
    looking._parts.share.take(frozenset({TopicPartition("old", 0), TopicPartition("new", 0)}))
    await clock.look(looking)
    for cluster in (looking._links.source_admin, looking._links.target_admin):
        for node in dc1.brokers:
            await cluster.connection(node)


@pytest.mark.parametrize("brokers", [2, 3])
@pytest.mark.parametrize("leads", [False, True])
@pytest.mark.parametrize("where", ["source", "target", "both"])
async def test_what_one_broker_does_not_know_is_neither_stopped_nor_deleted(
    monkeypatch: pytest.MonkeyPatch, where: str, brokers: int, *, leads: bool
) -> None:
    clock = Clock(monkeypatch)
    async with discovery(DELETES, brokers=brokers, leads=leads) as (looking, dc1, dc2, map_log):
        deleted = note_deletions(dc2)
        await mirror_two(looking, clock, dc1, dc2, map_log)
        if where != "target":
            forget_topic(dc1, 0, "new")
        if where != "source":
            forget_topic(dc2, 0, "new")
        for _ in range(12):
            await clock.look(looking)
            partition = looking._parts.partitions.own[TopicPartition("new", 0)]
            assert partition.state not in STOPPED
            assert (partition.leaders.source, partition.leaders.target) == (1, 1)
        assert deleted == []


async def test_two_that_do_not_know_it_are_not_believed_for_long_enough_either(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch)
    async with discovery(DELETES, brokers=3) as (looking, dc1, dc2, map_log):
        deleted = note_deletions(dc2)
        await mirror_two(looking, clock, dc1, dc2, map_log)
        forget_topic(dc1, 0, "new")
        forget_topic(dc1, 2, "new")
        for _ in range(12):
            await clock.look(looking)
            assert looking._parts.partitions.own[TopicPartition("new", 0)].state not in STOPPED
        assert deleted == []


async def test_what_no_broker_knows_is_gone_after_the_grace_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch)
    async with discovery(DELETES, brokers=3) as (looking, dc1, dc2, map_log):
        deleted = note_deletions(dc2)
        await mirror_two(looking, clock, dc1, dc2, map_log)
        looking._parts.partitions.own[TopicPartition("new", 0)].target.find_position()
        del dc1.topics["new"]
        for _ in range(2):
            await clock.look(looking)
            assert deleted == []
        await clock.look(looking)
        assert deleted == ["new"]


async def test_a_leader_that_one_broker_has_not_heard_of_is_followed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch)
    async with discovery(brokers=2) as (looking, dc1, dc2, map_log):
        await mirror_two(looking, clock, dc1, dc2, map_log)
        dc1.brokers[1].cut_off()
        old = dc1.topics["old"].partitions[0]
        old.leader, old.leader_epoch = 0, 1
        await clock.look(looking)
        for _ in range(6):
            await clock.look(looking)
            assert looking._parts.partitions.own[TopicPartition("old", 0)].leaders.source == 0


@pytest.mark.parametrize("last", [0, 1, 2])
async def test_a_topic_is_deleted_when_the_last_broker_has_forgotten_it(last: int) -> None:
    done = trio.Event()

    async def delete(cluster: Cluster) -> None:
        await delete_topic(cluster, "old")
        done.set()

    async with (
        run_fake_cluster(3) as fake,
        open_cluster(fake.bootstrap, client_id="test") as cluster,
        trio.open_nursery() as nursery,
    ):
        note_deletions(fake)
        fake.create_topic("old", 0)
        await cluster.metadata(refresh=True)
        for node in fake.brokers:
            await cluster.connection(node)
        fake.brokers[last].cut_off()
        nursery.start_soon(delete, cluster)
        with trio.move_on_after(0.3):
            await done.wait()
        assert "old" not in fake.topics
        assert not done.is_set()
        fake.brokers[last].catch_up()
        with trio.fail_after(5):
            await done.wait()


async def test_who_has_no_producer_ids_to_give_keeps_no_flow_from_starting() -> None:
    async def give(_: RequestHeader, __: InitProducerIdRequest) -> InitProducerIdResponse:
        return InitProducerIdResponse(error_code=0, producer_id=5, producer_epoch=0)

    async def refuse(_: RequestHeader, __: InitProducerIdRequest) -> InitProducerIdResponse:
        code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS  # as Kafka's RPCProducerIdManager says it
        return InitProducerIdResponse(error_code=code, producer_epoch=-1)

    async def tell_nothing(_: RequestHeader, __: object) -> DescribeConfigsResponse:
        return DescribeConfigsResponse(results=())

    async with (
        run_fake_cluster(2) as fake,
        open_cluster(fake.bootstrap, client_id="test") as cluster,
    ):
        fake.versions[InitProducerIdRequest.API_KEY] = InitProducerIdRequest.VERSIONS
        for node, script in ((0, refuse), (1, give)):
            fake.brokers[node].scripts[InitProducerIdRequest.API_KEY] = script
        fake.versions[DescribeConfigsRequest.API_KEY] = DescribeConfigsRequest.VERSIONS
        for broker in fake.brokers.values():
            broker.scripts[DescribeConfigsRequest.API_KEY] = tell_nothing
        fake.create_topic("dc1.offset-map.internal", 0)
        map_log = MapLog(cluster, "dc1", 1, MemoryWriters())
        await map_log.load()
        assert map_log.writer.producer_id == 5

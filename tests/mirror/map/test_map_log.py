"""The map topic, written by several workers, one of which has been given up for dead."""

from collections.abc import Iterator
from uuid import UUID

import pytest
import trio
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient

import mirror.map.map_log
import runtime.coordination.map_registry
from mirror.clusters.admin import SetConfigs, apply, delete_topic, topic_configs
from mirror.clusters.tail_reader import TailReader, TopicUnreadable
from mirror.map.map_log import MAP_SETTINGS, MapLog, MapUnwritable
from offset_translation.map_records import (
    Begun,
    MirrorProducer,
    Reached,
    begun,
    decode_key,
    flow_begun,
    map_topic_name,
    mirror_producer,
    piece_start,
    reached,
    run_start,
    seal,
    set_aside,
    source_topic,
    start_due,
    target_topic,
    withdrawal,
)
from offset_translation.runs import Place
from runtime.coordination.map_registry import append_to_map
from runtime.coordination.map_writers import MapGone, number_record
from runtime.producer_ids import MOST_GIVEN
from tests.clusters import RunningCluster, run_cluster
from tests.doubles.map_writers import MemoryWriters
from wire.net import Cluster, open_cluster
from wire.net.operations import LATEST, append, list_offsets, new_producer_id
from wire.net.topic_creation import ensure_topic
from wire.record_batch import Record, build_batch
from wire.topic_partition import TopicPartition

pytestmark = pytest.mark.integration


FOREIGN = MirrorProducer(producer_id=77, producer_epoch=0)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    with run_cluster(tmp_path_factory.mktemp("target"), 1, "dc2", shares_zookeeper=True) as running:
        yield running


async def test_a_fenced_worker_writes_nothing_and_what_it_wrote_before_is_read(
    cluster: RunningCluster,
) -> None:
    async with open_cluster(cluster.addresses, client_id="test") as client:
        asleep, awake = (
            MapLog(client, "dc1", 1, MemoryWriters()),
            MapLog(client, "dc1", 1, MemoryWriters()),
        )
        await asleep.load()
        await asleep.ensure_producer()
        await awake.load()
        assert awake.producer == asleep.producer
        assert awake.writer != asleep.writer
        await asleep.write(lambda: [piece_start("t", 0, source_start=5, place=Place(0))])
        await awake.write(lambda: [piece_start("t", 1, source_start=7, place=Place(0))])
        await asleep.write(lambda: [piece_start("t", 0, source_start=9, place=Place(2))])
        for _ in range(2):  # another leader may not know that it is done
            await awake.fence(asleep.writer)
        await awake.catch_up()
        awake.state.advance({TopicPartition("t", 0): 3, TopicPartition("t", 1): 1})
        assert awake.state.maps[TopicPartition("t", 0)].mirrored_source_end == 10
        with pytest.raises(MapUnwritable, match="INVALID_PRODUCER_EPOCH"):
            await asleep.write(lambda: [piece_start("t", 0, source_start=90, place=Place(2))])
        await awake.write(lambda: [piece_start("t", 0, source_start=9, place=Place(2))])
        late = MapLog(client, "dc1", 1, MemoryWriters())
        await late.load()
        late.state.advance({TopicPartition("t", 0): 3, TopicPartition("t", 1): 1})
        assert late.state.maps[TopicPartition("t", 0)].mirrored_source_end == 10
        assert late.state.maps[TopicPartition("t", 1)].mirrored_source_end == 8


async def test_records_are_mirrored_under_an_id_that_no_broker_gives_out(
    cluster: RunningCluster,
) -> None:
    """A producer of the lost site may have any id of those, and goes on with it at this one."""
    async with open_cluster(cluster.addresses, client_id="test") as client:
        map_log = MapLog(client, "dc7", 1, MemoryWriters())
        await map_log.load()
        await map_log.ensure_producer()
        assert map_log.writer.producer_id <= MOST_GIVEN < map_log.producer.producer_id
        later = MapLog(client, "dc7", 1, MemoryWriters())
        await later.load()
        await later.ensure_producer()
        assert later.producer == map_log.producer


async def test_an_id_that_the_brokers_give_out_twice_loses_no_record_of_the_map(
    cluster: RunningCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where their ZooKeeper was restored from an older copy: they take it for a repetition."""
    async with open_cluster(cluster.addresses, client_id="test") as client:
        former = MapLog(client, "reset", 1, MemoryWriters())
        await former.load()
        await former.write(lambda: [piece_start("t", 0, source_start=5, place=Place(0))])
        given = [former.writer, former.writer]

        async def give(asked: Cluster) -> tuple[int, int]:
            if given:
                again = given.pop()
                return again.producer_id, again.producer_epoch
            return await new_producer_id(asked)

        monkeypatch.setattr(mirror.map.map_log, "new_producer_id", give)
        log = MapLog(client, "reset", 1, MemoryWriters())
        await log.load()
        assert log.writer.producer_id != former.writer.producer_id
        await log.write(lambda: [piece_start("t", 1, source_start=7, place=Place(0))])
        given.append(former.writer)
        monkeypatch.setattr(runtime.coordination.map_registry, "new_producer_id", give)
        more = [piece_start("t", 2, source_start=9, place=Place(0))]
        await append_to_map(client, log.topic, more, MemoryWriters())
        reader = MapLog(client, "reset", 1, MemoryWriters())
        await reader.load()
    assert reader.state.maps.keys() == {TopicPartition("t", index) for index in range(3)}


async def test_a_map_that_lost_its_end_beneath_its_writer_is_not_written_on(
    cluster: RunningCluster,
) -> None:
    """What is in memory alone would be missing after the next start."""
    registry = MemoryWriters()
    async with open_cluster(cluster.addresses, client_id="test") as client:
        log = MapLog(client, "cut", 1, registry)
        await log.load()
        assert registry.known.end == 1
        log._reader.next_offset = 9
        with pytest.raises(MapUnwritable, match="ends at 2, and was read up to 9: it has lost"):
            await log.write(lambda: [piece_start("t", 0, source_start=5, place=Place(0))])


async def test_a_worker_that_has_written_nothing_can_be_fenced_too(
    cluster: RunningCluster,
) -> None:
    async with open_cluster(cluster.addresses, client_id="test") as client:
        asleep, awake = (
            MapLog(client, "dc9", 1, MemoryWriters()),
            MapLog(client, "dc9", 1, MemoryWriters()),
        )
        await asleep.load()
        await awake.load()
        await awake.ensure_producer()
        await awake.fence(asleep.writer)
        with pytest.raises(MapUnwritable, match="INVALID_PRODUCER_EPOCH"):
            await asleep.write(lambda: [piece_start("t", 0, source_start=1, place=Place(0))])


def forged(*records: tuple[bytes, bytes | None]) -> bytes:
    """A batch as any client with the right to write sends it."""
    return build_batch([Record(at, 1, *record) for at, record in enumerate(records)])


async def test_what_a_client_writes_to_the_map_is_counted_and_not_believed(
    cluster: RunningCluster,
) -> None:
    async with open_cluster(cluster.addresses, client_id="test") as client:
        registry = MemoryWriters(is_strict=True)
        map_log = MapLog(client, "dc3", 1, registry)
        await map_log.load()
        await map_log.ensure_producer()
        own = piece_start("t", 0, source_start=5, place=Place(0))
        await map_log.write(lambda: [own])
        piece = piece_start("t", 0, source_start=40, place=Place(20))
        batch = forged(piece, mirror_producer(FOREIGN), withdrawal(decode_key(own[0])))
        answer = await append(client, map_log.topic, 0, batch)
        await map_log.catch_up()
        late = MapLog(client, "dc3", 1, registry)
        await late.load()
        for one in (map_log, late):
            one.state.advance({TopicPartition("t", 0): 30})
            assert one.state.maps[TopicPartition("t", 0)].mirrored_source_end == 35
            assert FOREIGN.producer_id not in one.state.producer_ids
            assert one.unbelieved_records.describe() == [
                f"3 of producer id -1 (a plain producer), from offset {answer.base_offset} on"
            ]


async def test_a_record_whose_key_a_client_has_written_outlasts_the_cleaner(
    cluster: RunningCluster,
) -> None:
    """The cleaner keeps the last record of a key; without ours the map would lack a piece."""
    async with open_cluster(cluster.addresses, client_id="test") as client:
        registry = MemoryWriters(is_strict=True)
        map_log = MapLog(client, "dc4", 1, registry)
        await map_log.load()
        await map_log.ensure_producer()
        own = [
            piece_start("t", 0, source_start=5, place=Place(0)),
            seal("t", 1, source_end=9, target_end=7),
            run_start("t", 2, place=Place(4), target_start=6),
            reached("t", 2, Reached(place=Place(4), target_end=6)),
            source_topic("t", UUID(int=7)),
            target_topic("t", 0, UUID(int=8)),
            set_aside("t", 3, source_start=4, source_end=6),
            flow_begun(map_log.registry, None, 5),
            start_due("t", 4, UUID(int=7)),
            begun("t", 0, Begun(source_start=5, target_start=0, topic_id=UUID(int=7), start="x")),
            mirror_producer(map_log.producer),
            number_record(map_log._newest),
        ]
        await map_log.write(lambda: own)
        await append(client, map_log.topic, 0, forged(*((key, None) for key, _ in own)))
        await map_log.catch_up()
        await map_log.restore_overwritten()
        last: dict[bytes | None, bytes | None] = {}
        async for _, record in TailReader(client, map_log.topic).read_new():
            last[record.key] = record.value
        assert [last[key] for key, _ in own] == [value for _, value in own]
        end = (await list_offsets(client, [TopicPartition(map_log.topic, 0)], LATEST)).popitem()
        await map_log.catch_up()
        await map_log.restore_overwritten()
        again = (await list_offsets(client, [TopicPartition(map_log.topic, 0)], LATEST)).popitem()
        assert again == end, "once is enough"


async def test_a_map_whose_beginning_was_deleted_is_not_loaded(cluster: RunningCluster) -> None:
    """By what is left of it, groups would pass over all that lies before."""
    async with open_cluster(cluster.addresses, client_id="test") as client:
        one = MapLog(client, "beheaded", 1, MemoryWriters())
        await one.load()
        pieces = [piece_start("t", 0, source_start=20 * n, place=Place(10 * n)) for n in range(3)]
        await one.write(lambda: pieces)
        await apply(client, SetConfigs(topic=one.topic, configs={"cleanup.policy": "delete"}))
        where = KafkaPartition(one.topic, 0, 1)
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
        [deleted] = admin.delete_records([where]).values()
        await trio.to_thread.run_sync(deleted.result, 10)
        told = rf"^{one.topic}: begins at offset 1: .* `mirror rebuild-map --write` finds"
        with pytest.raises(TopicUnreadable, match=told):
            await MapLog(client, "beheaded", 1, MemoryWriters()).load()


async def test_a_map_that_was_deleted_is_not_begun_anew_by_itself(cluster: RunningCluster) -> None:
    """It would not name the mirrors of before: who reads it would send their records back."""
    async with open_cluster(cluster.addresses, client_id="test") as client:
        writers = MemoryWriters(is_strict=True)
        one = MapLog(client, "deleted", 1, writers)
        await one.load()
        await delete_topic(client, one.topic)
        with pytest.raises(MapGone):
            await MapLog(client, "deleted", 1, writers).load()
        await writers.forget_log()
        await MapLog(client, "deleted", 1, writers).load()


async def test_a_map_that_was_made_again_beneath_its_writer_is_not_written_on(
    cluster: RunningCluster,
) -> None:
    """The new topic would hold the newest pieces alone, and be believed at the next start."""
    async with open_cluster(cluster.addresses, client_id="test") as client:
        one = MapLog(client, "remade", 1, MemoryWriters())
        await one.load()
        await one.write(lambda: [piece_start("t", 0, source_start=0, place=Place(0))])
        await delete_topic(client, one.topic)
        await ensure_topic(client, one.topic, partition_count=1, replication_factor=1, configs={})
        for _ in range(2):
            with pytest.raises(TopicUnreadable, match=f"^{one.topic}: was made again while"):
                await one.catch_up()
        with pytest.raises(MapUnwritable, match="was made again while"):
            await one.write(lambda: [piece_start("t", 1, source_start=0, place=Place(0))])


async def test_a_map_topic_that_somebody_else_has_made_gets_the_settings_of_a_map(
    cluster: RunningCluster,
) -> None:
    async with open_cluster(cluster.addresses, client_id="test") as client:
        topic = map_topic_name("dc5")
        await ensure_topic(
            client, topic, replication_factor=1, configs={"cleanup.policy": "delete"}
        )
        await MapLog(client, "dc5", 1, MemoryWriters()).load()
        settings = (await topic_configs(client, [topic]))[topic]
    assert {name: settings[name] for name in MAP_SETTINGS} == MAP_SETTINGS

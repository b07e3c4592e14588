"""`mirror run` between two bundled clusters: every byte, once, in order, whatever is killed."""

import os
import random
import signal
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic

from offset_translation.map_records import MirrorProducer, map_topic_name, mirror_producer
from offset_translation.map_state import MapState
from offset_translation.offset_map import OffsetMap
from offset_translation.translation import translate
from tests.clusters import RunningCluster
from tests.failover.two_sites import (
    QUIET,
    Sites,
    create_topic,
    produce,
    read_all,
    values_of,
)
from tests.mirror.daemon import (
    MirrorProcess,
    append_batches,
    configure,
    map_batch,
    read_batches,
    register_map_writer,
    run_mirror,
    wait_until,
)
from wire.compression import Compression
from wire.record_batch import Record, build_batch, iterate_batches, iterate_records
from wire.topic_partition import TopicPartition

pytestmark = pytest.mark.integration

SLOWLY = "partition_fetch_bytes: 1024\n    fetch_max_bytes: 1024"
"""About one batch at a time, so that there is a middle to kill in."""
LOOP = MirrorProducer(producer_id=900_001, producer_epoch=0)


def batch(
    first: int,
    count: int,
    codec: Compression = Compression.NONE,
    producer_id: int = -1,
    base_sequence: int = -1,
) -> bytes:
    """Return one batch with nulls, headers, duplicates of headers, and times of their own."""
    records = [
        Record(
            number,
            1_700_000_000_000 + number * 7,
            None if number % 3 == 0 else b"key-%d" % number,
            None if number % 5 == 0 else b"value-%d" % number * 10,
            (("a", b"1"), ("a", None), ("b", b"%d" % number)),
        )
        for number in range(first, first + count)
    ]
    return build_batch(
        records,
        compression=codec,
        producer_id=producer_id,
        producer_epoch=-1 if producer_id < 0 else 0,
        base_sequence=base_sequence,
    )


def assert_same_batches(sites: Sites, topic: str, partition: int = 0) -> None:
    """The target holds the source's batches, byte for byte behind the header, at equal offsets."""
    source = read_batches(sites.dc1, topic, partition)
    target = read_batches(sites.dc2, topic, partition)
    assert [one.header.base_offset for one in target] == [one.header.base_offset for one in source]
    assert [one.records for one in target] == [one.records for one in source]
    for here, there in zip(source, target, strict=True):
        same = here.header._replace(
            crc=there.header.crc,
            partition_leader_epoch=there.header.partition_leader_epoch,
            producer_id=there.header.producer_id,
            producer_epoch=there.header.producer_epoch,
            base_sequence=there.header.base_sequence,
        )
        assert there.header == same
        assert there.header.base_sequence == there.header.base_offset
    assert len({one.header.producer_id for one in target}) <= 1


def assert_same_records(sites: Sites, topic: str, partition: int = 0) -> None:
    """The target holds the source's records at equal offsets; batches may have been joined."""
    source = read_batches(sites.dc1, topic, partition)
    target = read_batches(sites.dc2, topic, partition)
    assert [record for one in target for record in iterate_records(one.data)] == [
        record for one in source for record in iterate_records(one.data)
    ]
    assert all(one.header.base_sequence == one.header.base_offset for one in target)
    assert len({one.header.producer_id for one in target}) <= 1


def test_every_codec_passes_byte_for_byte(sites: Sites, tmp_path: Path) -> None:
    create_topic(sites.dc1, "codecs")
    batches = [batch(place * 4, 4, codec) for place, codec in enumerate(Compression)]
    append_batches(sites.dc1, "codecs", batches)
    with run_mirror(configure(sites, tmp_path, "codecs")) as mirror:
        mirror.wait_mirrored("codecs", 4 * len(batches))
        append_batches(sites.dc1, "codecs", [batch(100, 7)])
        mirror.wait_mirrored("codecs", 4 * len(batches) + 7)
        line = mirror.wait_state("codecs", "streaming")
        assert (line["lag_records"], line["lag_seconds"]) == (0, 0.0)
        assert_same_batches(sites, "codecs")
        assert 'mirror_lag_records{flow="dc1->dc2",topic="codecs",partition="0"} 0.0' in (
            mirror.metrics()
        )
        assert mirror.stop() == 0


def kill_in_mid_stream(mirror: MirrorProcess, topic: str, kills: int, end: int) -> None:
    """Start and kill a daemon so often, each time a while after it has gone on."""
    chance, reached = random.Random(7), 0
    for kill in range(kills):
        mirror.start()
        goal = max(reached, end * kill // kills) + chance.randrange(1, 40)

        def has_gone_on(goal: int = goal) -> bool:
            return mirror.mirrored_end(topic) >= goal

        wait_until(f"{topic} mirrored to {goal}", has_gone_on)
        mirror.kill()
        reached = goal


@pytest.mark.story
def test_ten_sigkills_during_a_replay_neither_lose_nor_double_a_record(
    sites: Sites, tmp_path: Path
) -> None:
    partitions, count = 2, 600
    create_topic(sites.dc1, "kills", partitions)
    for partition in range(partitions):
        append_batches(sites.dc1, "kills", [batch(n, 3) for n in range(0, count, 3)], partition)
    mirror = MirrorProcess(configure(sites, tmp_path, "kills", SLOWLY))
    try:
        kill_in_mid_stream(mirror, "kills", 10, count)
        for partition in range(partitions):
            append_batches(sites.dc1, "kills", [batch(count, 9)], partition)
        mirror.start()
        for partition in range(partitions):
            mirror.wait_mirrored("kills", count + 9, partition)
    finally:
        mirror.end()
    for partition in range(partitions):
        assert_same_records(sites, "kills", partition)
        found = read_all(sites.dc2, "kills", partition)
        numbers = [dict(one.headers() or [])["b"] for one in found]
        assert numbers == [b"%d" % number for number in range(count + 9)]


def test_sigkills_over_a_source_with_holes_keep_the_map_exact(sites: Sites, tmp_path: Path) -> None:
    """What another mirror wrote into the source is left out: each such batch is a hole."""
    create_topic(sites.dc1, map_topic_name("dc2"))
    append_batches(sites.dc1, map_topic_name("dc2"), [map_batch(mirror_producer(LOOP))])
    register_map_writer(sites, tmp_path, "dc2", "dc1")
    create_topic(sites.dc1, "holes")
    chance, batches, sequence = random.Random(3), [], 0
    for place in range(400):
        count = chance.randrange(1, 6)
        if chance.random() < 0.4:
            batches.append(
                batch(
                    place * 10,
                    count,
                    producer_id=LOOP.producer_id,
                    base_sequence=sequence,
                )
            )
            sequence += count
        else:
            batches.append(batch(place * 10, count))
    append_batches(sites.dc1, "holes", batches)
    source = read_batches(sites.dc1, "holes")
    end = source[-1].header.next_offset
    own = [one for one in source if one.header.producer_id != LOOP.producer_id]
    mirror = MirrorProcess(configure(sites, tmp_path, "holes", SLOWLY, back="holes"))
    try:
        kill_in_mid_stream(mirror, "holes", 3, end)
        mirror.start()
        mirror.wait_mirrored("holes", end)
    finally:
        mirror.end()
    target = read_batches(sites.dc2, "holes")
    written = [record for one in own for record in iterate_records(one.data)]
    mirrored = [record for one in target for record in iterate_records(one.data)]
    assert [record[1:] for record in mirrored] == [record[1:] for record in written]
    offset_map = read_map(sites, "holes", target[-1].header.next_offset)
    assert offset_map.mirrored_source_end == end
    for record, copy in zip(written, mirrored, strict=True):
        assert translate(offset_map, record.offset) == copy.offset


def read_map(sites: Sites, topic: str, target_end: int) -> OffsetMap:
    """Return the map of partition 0 as its topic tells it."""
    state = MapState()
    for one in read_batches(sites.dc2, map_topic_name("dc1")):
        for record in iterate_records(one.data):
            state.replay(record.key, record.value)
    assert state.rejected == []
    state.maps[TopicPartition(topic, 0)].advance(target_end)
    return state.maps[TopicPartition(topic, 0)]


@pytest.mark.story
def test_a_killed_target_broker_costs_time_and_nothing_else(sites: Sites, tmp_path: Path) -> None:
    create_topic(sites.dc1, "restart")
    append_batches(sites.dc1, "restart", [batch(n, 3) for n in range(0, 1_500, 3)])
    with run_mirror(configure(sites, tmp_path, "restart", SLOWLY)) as mirror:
        wait_until("the first records", lambda: mirror.mirrored_end("restart") > 0)
        [broker] = sites.dc2.pids
        sites.dc2.kill_broker(broker)
        mirror.wait_state("restart", "waiting")
        append_batches(sites.dc1, "restart", [batch(1_500, 9)])
        sites.dc2.start_broker(broker)
        mirror.wait_mirrored("restart", 1_509)
    assert_same_records(sites, "restart")


@pytest.mark.story
def test_a_daemon_whose_target_is_away_still_leaves_when_asked(
    sites: Sites, tmp_path: Path
) -> None:
    create_topic(sites.dc1, "leave")
    append_batches(sites.dc1, "leave", [batch(n, 3) for n in range(0, 1_500, 3)])
    with run_mirror(configure(sites, tmp_path, "leave", SLOWLY)) as mirror:
        wait_until("the first records", lambda: mirror.mirrored_end("leave") > 0)
        [broker] = sites.dc2.pids
        sites.dc2.kill_broker(broker)
        try:
            assert mirror.stop() == 0
        finally:
            sites.dc2.start_broker(broker)
        mirror.start()
        mirror.wait_mirrored("leave", 1_500)
    assert_same_records(sites, "leave")


def test_topics_are_created_with_their_settings_and_grow_ahead_of_their_data(
    sites: Sites, tmp_path: Path
) -> None:
    admin = AdminClient({"bootstrap.servers": sites.dc1.bootstrap, **QUIET})
    settings = {"retention.ms": "86400000", "cleanup.policy": "compact"}
    admin.create_topics([NewTopic("grow", 2, 1, config=settings)])["grow"].result(60)
    with run_mirror(configure(sites, tmp_path, "grow|later")) as mirror:
        mirror.wait_state("grow", "streaming", 1)
        target = AdminClient({"bootstrap.servers": sites.dc2.bootstrap, **QUIET})
        resource = ConfigResource(ConfigResource.Type.TOPIC, "grow")
        found = target.describe_configs([resource])[resource].result(60)
        assert {name: found[name].value for name in settings} == settings
        admin.create_partitions([NewPartitions("grow", 4)])["grow"].result(60)
        produce(sites.dc1, "grow", range(10), 3)
        mirror.wait_mirrored("grow", 10, 3)
        create_topic(sites.dc1, "later")
        produce(sites.dc1, "later", range(10))
        mirror.wait_mirrored("later", 10)
        topics = target.list_topics(timeout=60).topics
        assert len(topics["grow"].partitions) == 4
        assert not any(name.startswith("__") for name in topics if mirror.partition(name))


def test_somebody_elses_write_on_the_target_stops_the_partition(
    sites: Sites, tmp_path: Path
) -> None:
    create_topic(sites.dc1, "foreign", 2)
    produce(sites.dc1, "foreign", range(10), 0)
    with run_mirror(configure(sites, tmp_path, "foreign")) as mirror:
        mirror.wait_mirrored("foreign", 10, 0)
        mirror.wait_state("foreign", "streaming", 1)
        produce(sites.dc2, "foreign", [99], 0)
        produce(sites.dc1, "foreign", range(10, 12), 0)
        line = mirror.wait_state("foreign", "target diverged")
        assert "was put at 11" in line["reason"]
        produce(sites.dc1, "foreign", range(5), 1)
        mirror.wait_mirrored("foreign", 5, 1)


def test_a_damaged_batch_is_never_forwarded_and_all_before_it_is(
    sites: Sites, tmp_path: Path
) -> None:
    create_topic(sites.dc1, "damaged")
    append_batches(sites.dc1, "damaged", [batch(n * 4, 4) for n in range(3)])
    [segment] = sites.dc1.data.rglob("damaged-0/*.log")
    content = bytearray(segment.read_bytes())
    content[-1] ^= 1
    segment.write_bytes(content)
    with run_mirror(configure(sites, tmp_path, "damaged")) as mirror:
        line = mirror.wait_state("damaged", "source corrupt")
        assert line["mirrored_source_end"] == 8
        assert "checksum of the batch at offset 8" in line["reason"]
    assert sum(one.header.record_count for one in read_batches(sites.dc2, "damaged")) == 8
    with run_mirror(configure(sites, tmp_path, "damaged", "on_source_corrupt: skip")) as mirror:
        mirror.wait_mirrored("damaged", 12)
        append_batches(sites.dc1, "damaged", [batch(12, 4)])
        mirror.wait_mirrored("damaged", 16)
        after = mirror.partition("damaged")
        assert after is not None
        assert after["skipped_records"] == 4
    assert sum(one.header.record_count for one in read_batches(sites.dc2, "damaged")) == 12


def test_a_source_that_has_lost_what_was_mirrored_stops_its_partition_alone(
    sites: Sites, tmp_path: Path
) -> None:
    create_topic(sites.dc1, "back", 2)
    append_batches(sites.dc1, "back", [batch(n * 4, 4) for n in range(3)])
    with run_mirror(configure(sites, tmp_path, "back")) as mirror:
        mirror.wait_mirrored("back", 12)
        cut_last_batch(sites.dc1, "back-0")
        line = mirror.wait_state("back", "source went back")
        assert "source ends at 8, but offsets up to 11 were mirrored" in line["reason"]
        produce(sites.dc1, "back", range(5), 1)
        mirror.wait_mirrored("back", 5, 1)
    assert sum(one.header.record_count for one in read_batches(sites.dc2, "back")) == 12


@pytest.mark.story
def test_a_source_that_was_cut_and_has_grown_again_stops_its_partition_alone(
    sites: Sites, tmp_path: Path
) -> None:
    create_topic(sites.dc1, "regrown", 2)
    append_batches(sites.dc1, "regrown", [batch(n * 4, 4) for n in range(3)])
    produce(sites.dc1, "regrown", range(3), 1)
    file = configure(sites, tmp_path, "regrown")
    with run_mirror(file) as mirror:
        mirror.wait_mirrored("regrown", 12)
        mirror.wait_mirrored("regrown", 3, 1)
        os.kill(mirror.pid, signal.SIGSTOP)
        try:
            cut_last_batch(sites.dc1, "regrown-0")
            append_batches(sites.dc1, "regrown", [batch(n * 4, 4) for n in (7, 8, 9)])
        finally:
            os.kill(mirror.pid, signal.SIGCONT)
        line = mirror.wait_state("regrown", "source went back")
        assert "source offset 11 holds another record than was mirrored" in line["reason"]
        produce(sites.dc1, "regrown", range(3, 5), 1)
        mirror.wait_mirrored("regrown", 5, 1)
        assert mirror.stop() == 0
    with run_mirror(file, "again") as mirror:
        line = mirror.wait_state("regrown", "source went back")
        assert "source offset 11 holds another record than was mirrored" in line["reason"]
        mirror.wait_mirrored("regrown", 5, 1)
    assert sum(one.header.record_count for one in read_batches(sites.dc2, "regrown")) == 12


def cut_last_batch(cluster: RunningCluster, folder: str) -> None:
    """Let the cluster lose the last batch of a partition while it is down."""
    cluster.stop()
    [segment] = cluster.data.rglob(f"{folder}/*.log")
    last, _ = list(iterate_batches(segment.read_bytes()))[-1]
    with segment.open("r+b") as log:
        log.truncate(segment.stat().st_size - last.batch_bytes)
    cluster.start()


def test_a_target_that_holds_other_data_is_not_written(sites: Sites, tmp_path: Path) -> None:
    create_topic(sites.dc1, "taken")
    create_topic(sites.dc2, "taken")
    produce(sites.dc2, "taken", range(3))
    produce(sites.dc1, "taken", range(5))
    with run_mirror(configure(sites, tmp_path, "taken")) as mirror:
        line = mirror.wait_state("taken", "target diverged")
        assert "offsets 0 to 2 that no mirror has written" in line["reason"]
    assert values_of(read_all(sites.dc2, "taken")) == [0, 1, 2]


@pytest.mark.story
def test_a_topic_that_was_deleted_and_made_again_is_not_mixed_with_the_old_one(
    sites: Sites, tmp_path: Path
) -> None:
    create_topic(sites.dc1, "again")
    produce(sites.dc1, "again", range(5))
    admin = AdminClient({"bootstrap.servers": sites.dc1.bootstrap, **QUIET})
    with run_mirror(configure(sites, tmp_path, "again")) as mirror:
        mirror.wait_mirrored("again", 5)
        admin.delete_topics(["again"])["again"].result(60)
        mirror.wait_state("again", "source gone")
        assert mirror.stop() == 0
        create_topic(sites.dc1, "again")
        produce(sites.dc1, "again", range(100, 110))
        mirror.start()
        mirror.wait_state("again", "topic recreated")
    assert values_of(read_all(sites.dc2, "again")) == [0, 1, 2, 3, 4]

"""`mirror run` with Apache Kafka as source, as target and as both."""

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.interop.sites import (
    QUIET,
    RunningPair,
    Site,
    append_batches,
    commit,
    committed,
    create_topic,
    end_of,
    read_batches,
    read_committed,
    write,
    write_transactions,
)
from tests.mirror.daemon import MirrorProcess, run_mirror, wait_until
from wire.compression import Compression
from wire.record_batch import Record, build_batch, iterate_records

pytestmark = pytest.mark.matrix(subject="The mirror between kinds of clusters")


def values(cluster: Any, topic: str, partition: int = 0) -> list[bytes | None]:
    return [value for _, _, value in read_committed(cluster, topic, partition)]


def wait_committed(site: Site, group: str, topic: str, offset: int, partition: int = 0) -> None:
    """Wait until a group's position is this one."""
    wait_until(
        f"{group} at {topic}-{partition} {offset}",
        lambda: committed(site, group, topic, partition) == offset,
    )


def batch(first: int, count: int, codec: Compression = Compression.NONE) -> bytes:
    """Return a batch with nulls, and headers that repeat."""
    records = [
        Record(
            number,
            1_700_000_000_000 + number * 7,
            None if number % 3 == 0 else b"key-%d" % number,
            None if number % 5 == 0 else b"value-%d" % number * 10,
            (("a", b"1"), ("a", None)),
        )
        for number in range(first, first + count)
    ]
    return build_batch(records, compression=codec)


def test_batches_of_every_codec_pass_byte_for_byte(sites: RunningPair, tmp_path: Path) -> None:
    create_topic(sites.dc1, "codecs")
    append_batches(
        sites.dc1,
        "codecs",
        [batch(place * 40, 40, codec) for place, codec in enumerate(Compression)],
    )
    with run_mirror(sites.configure(tmp_path, "codecs")) as mirror:
        mirror.wait_mirrored("codecs", 200)
        append_batches(sites.dc1, "codecs", [batch(200, 7)])
        mirror.wait_mirrored("codecs", 207)
        assert mirror.stop() == 0
    source = read_batches(sites.dc1, "codecs")
    target = read_batches(sites.dc2, "codecs")
    assert [one.header.base_offset for one in target] == [one.header.base_offset for one in source]
    assert [one.records for one in target] == [one.records for one in source]


def test_sigkills_in_mid_stream_neither_lose_nor_double_a_record(
    sites: RunningPair, tmp_path: Path
) -> None:
    count = 3_000
    create_topic(sites.dc1, "kills")
    append_batches(sites.dc1, "kills", [batch(n, 3) for n in range(0, count, 3)])
    slowly = "partition_fetch_bytes: 1024\n    fetch_max_bytes: 1024"
    mirror = MirrorProcess(sites.configure(tmp_path, "kills", slowly))
    try:
        for kill in range(5):
            mirror.start()
            mirror.wait_mirrored("kills", count * kill // 5 + 30)
            mirror.kill()
        mirror.start()
        mirror.wait_mirrored("kills", count)
        assert mirror.stop() == 0
    finally:
        mirror.end()
    source, target = (
        [record for one in read_batches(site, "kills") for record in iterate_records(one.data)]
        for site in (sites.dc1, sites.dc2)
    )
    assert len(source) == count
    assert target == source


def test_positions_arrive_and_follow_even_into_an_empty_partition(
    sites: RunningPair, tmp_path: Path
) -> None:
    create_topic(sites.dc1, "positions", 2)
    append_batches(sites.dc1, "positions", [batch(n, 10) for n in range(0, 500, 10)])
    commit(sites.dc1, "readers", "positions", 123)
    commit(sites.dc1, "readers", "positions", 0, partition=1)
    with run_mirror(sites.configure(tmp_path, "positions")) as mirror:
        mirror.wait_mirrored("positions", 500)
        wait_committed(sites.dc2, "readers", "positions", 123)
        wait_committed(sites.dc2, "readers", "positions", 0, partition=1)
        for offset in (499, 50):
            commit(sites.dc1, "readers", "positions", offset)
            wait_committed(sites.dc2, "readers", "positions", offset)
        assert mirror.stop() == 0


def test_committed_transactions_pass_and_positions_in_their_holes_are_exact(
    sites: RunningPair, tmp_path: Path
) -> None:
    create_topic(sites.dc1, "transactions")
    write_transactions(sites.dc1, "transactions", count=30, each=7)
    source = read_committed(sites.dc1, "transactions")
    assert len(source) == 20 * 7
    with run_mirror(sites.configure(tmp_path, "transactions")) as mirror:
        mirror.wait_mirrored("transactions", end_of(sites.dc1, "transactions"))
        assert [one[1:] for one in read_committed(sites.dc2, "transactions")] == [
            one[1:] for one in source
        ]
        for place in (0, 1, 6, 7, 8, 60, 139):
            offset = source[place][0]
            commit(sites.dc1, "exact", "transactions", offset)
            wait_committed(sites.dc2, "exact", "transactions", place)
        commit(sites.dc1, "exact", "transactions", end_of(sites.dc1, "transactions"))
        wait_committed(sites.dc2, "exact", "transactions", len(source))
        write(sites.dc1, "transactions", 1_000, 5)
        write_transactions(sites.dc1, "transactions", count=4, each=3)
        mirror.wait_mirrored("transactions", end_of(sites.dc1, "transactions"))
        assert mirror.stop() == 0
    assert values(sites.dc2, "transactions") == values(sites.dc1, "transactions")


def test_what_is_not_committed_passes_where_that_is_asked_for(
    sites: RunningPair, tmp_path: Path
) -> None:
    create_topic(sites.dc1, "open")
    producer = Producer(
        {"bootstrap.servers": sites.dc1.bootstrap, "transactional.id": "open", **QUIET}
    )
    producer.init_transactions(20)
    producer.begin_transaction()
    for number in range(5):
        producer.produce("open", b"%d" % number, partition=0)
    assert producer.flush(60) == 0
    with run_mirror(sites.configure(tmp_path, "open", "isolation: read_uncommitted")) as mirror:
        mirror.wait_mirrored("open", 5)
        mirror.wait_state("open", "streaming")
        producer.abort_transaction(20)
        write(sites.dc1, "open", 5, 3)
        mirror.wait_mirrored("open", end_of(sites.dc1, "open"))
        assert mirror.stop() == 0
    assert values(sites.dc1, "open") == [b"5", b"6", b"7"]
    assert values(sites.dc2, "open") == [b"%d" % number for number in range(8)]


def test_a_source_whose_start_was_deleted_is_mirrored_from_there(
    sites: RunningPair, tmp_path: Path
) -> None:
    create_topic(sites.dc1, "trimmed")
    append_batches(sites.dc1, "trimmed", [batch(n, 10) for n in range(0, 100, 10)])
    admin = AdminClient({"bootstrap.servers": sites.dc1.bootstrap, **QUIET})
    place = TopicPartition("trimmed", 0, 35)
    admin.delete_records([place])[place].result(60)
    commit(sites.dc1, "trimmed-readers", "trimmed", 40)
    with run_mirror(sites.configure(tmp_path, "trimmed")) as mirror:
        mirror.wait_mirrored("trimmed", 100)
        wait_until("40 arrived", lambda: committed(sites.dc2, "trimmed-readers", "trimmed") >= 0)
        assert mirror.stop() == 0
    there = read_committed(sites.dc2, "trimmed")
    here = read_committed(sites.dc1, "trimmed")
    assert [one[1:] for one in there][-len(here) :] == [one[1:] for one in here]
    at = committed(sites.dc2, "trimmed-readers", "trimmed")
    assert there[at][1:] == here[5][1:]


def test_a_compacted_source_arrives_with_its_positions(sites: RunningPair, tmp_path: Path) -> None:
    create_topic(
        sites.dc1,
        "compacted",
        cleanup_policy="compact",
        segment_bytes=str(1024 * 1024),
        min_cleanable_dirty_ratio="0.01",
        delete_retention_ms="100",
        segment_ms="500",
    )
    write(sites.dc1, "compacted", 0, 2_000, value_bytes=2_000)
    if sites.pair.has_apache_source:
        wait_until("compaction", lambda: len(read_committed(sites.dc1, "compacted")) < 1_900, 60)
    source = read_committed(sites.dc1, "compacted")
    middle = source[len(source) // 2][0]
    commit(sites.dc1, "compacted-readers", "compacted", middle)
    with run_mirror(sites.configure(tmp_path, "compacted")) as mirror:
        mirror.wait_mirrored("compacted", end_of(sites.dc1, "compacted"))
        wait_until(
            "the position",
            lambda: committed(sites.dc2, "compacted-readers", "compacted") >= 0,
        )
        assert mirror.stop() == 0
    there = read_committed(sites.dc2, "compacted")
    assert {key: value for _, key, value in there} == {key: value for _, key, value in source}
    # A value begins with its own source offset, so that it tells which side of the position it is.
    at = committed(sites.dc2, "compacted-readers", "compacted")
    numbers = [int((value or b"").rstrip(b".")) for _, _, value in there]
    assert all(number < middle for number in numbers[:at])
    assert all(number >= middle for number in numbers[at:])


@pytest.mark.parametrize("which", ["source", "target"])
def test_a_restarted_cluster_is_waited_for(sites: RunningPair, tmp_path: Path, which: str) -> None:
    topic = f"restarted-{which}"
    create_topic(sites.dc1, topic)
    append_batches(sites.dc1, topic, [batch(n, 10) for n in range(0, 300, 10)])
    slowly = "partition_fetch_bytes: 2048\n    fetch_max_bytes: 2048"
    with run_mirror(sites.configure(tmp_path, topic, slowly)) as mirror:
        mirror.wait_mirrored(topic, 20)
        (sites.dc1 if which == "source" else sites.dc2).restart()
        append_batches(sites.dc1, topic, [batch(n, 10) for n in range(300, 600, 10)])
        mirror.wait_mirrored(topic, 600)
        assert mirror.stop() == 0
    assert values(sites.dc2, topic) == values(sites.dc1, topic)

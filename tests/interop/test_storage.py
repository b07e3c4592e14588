"""Segments, indexes and compaction beside Apache Kafka's own, on files of both."""

import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Final

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from broker.log.checkpoints import (
    CLEANER_OFFSETS,
    META_PROPERTIES,
    read_meta_properties,
    read_offsets,
)
from broker.log.config import LogConfig
from broker.log.log_manager import LogManager
from broker.log.partition_log import PartitionLog
from tests.broker.log.cleaning import add, batches_left, clean, records_of
from tests.broker.log.logs import NOW_MS, batch, marker, scanned
from tests.interop.matrix import Peer
from tests.interop.peers import (
    KAFKA_3_ZOOKEEPER,
    KAFKA_4_KRAFT,
    NEWEST_3,
    NEWEST_4,
    Kind,
    run_kafka,
)
from tests.interop.peers.kafka import SETTINGS, KafkaCluster
from tests.interop.peers.tools import dump_log_segments, run_tool
from wire.compression import Compression
from wire.record_batch import Record, iterate_records
from wire.topic_partition import TopicPartition as LogName

pytestmark = pytest.mark.matrix(
    subject="The bundled broker and Apache Kafka on one data folder",
    against=str(KAFKA_3_ZOOKEEPER),
)

PATIENCE_S: Final = 120
KEYED: Final = LogConfig(
    cleanup_policy=frozenset({"compact"}),
    segment_bytes=20_000,
    index_interval_bytes=1_000,
    retention_ms=-1,
)
JAVA: Final = [Peer(name="DumpLogSegments", version=version) for version in (NEWEST_3, NEWEST_4)]


def opened(folder: Path, config: LogConfig) -> LogManager:
    """Open a log folder as its own broker."""
    owner = read_meta_properties(folder / META_PROPERTIES)
    return LogManager.open(
        [folder],
        broker_id=owner.broker_id if owner else 1,
        cluster_id=owner.cluster_id if owner else "test",
        config_of=lambda _: config,
        now_ms=NOW_MS,
    )


def filled(folder: Path) -> PartitionLog:
    """Write keys over and over in every codec, transactions of both ends, and compact most."""
    manager = opened(folder, KEYED)
    log = manager.create("kept", 0, topic_id=bytes(range(16)), config=KEYED, now_ms=NOW_MS)
    for number in range(400):
        codec = Compression(number % len(Compression))
        keys = [b"key %d" % ((number * 7 + slot) % 90) for slot in range(5)]
        values = [None if slot == 4 and number % 9 == 0 else b"v" * 60 for slot in range(5)]
        stamp = NOW_MS + 100 * number
        add(log, batch(values, keys=keys, compression=codec, timestamp_ms=stamp))
        if number % 20 == 0:
            producer = (number % 3, 0, 5 * (number // 20))
            sent = batch(
                [b"t"] * 5, keys=keys, producer=producer, is_transactional=True, timestamp_ms=stamp
            )
            add(log, sent)
        if number % 20 == 7:
            add(log, marker((number - 7) % 3, is_abort=number % 40 == 7, timestamp_ms=stamp))
        if number == 300:
            clean(log)
    manager.close()
    return log


@pytest.mark.parametrize("java", JAVA, ids=str)
def test_compacted_and_transactional_files_are_read_by_dump_log_segments(
    java: Peer, tmp_path: Path
) -> None:
    log = filled(tmp_path)
    manager = opened(tmp_path, KEYED)
    kept = manager.logs[LogName("kept", 0)]
    aborted = kept.aborted_transactions(0, kept.log_end_offset)
    assert set(scanned(kept)[0]) < set(aborted)
    records = records_of(kept)
    headers = batches_left(kept)
    assert any(header.record_count == 0 for header, _ in headers)
    assert any(header.has_offset_holes for header, _ in headers)
    manager.close()
    files = sorted(log.folder.iterdir())

    said = dump(java, files, ".log", "--deep-iteration", "--print-data-log")
    assert said.count("| offset:") == len(records)
    assert said.count("isvalid: true") == said.count("baseOffset:") == len(headers)
    assert said.count("deleteHorizonMs: OptionalLong[") > 0
    indexes = [file for file in files if file.suffix in {".index", ".timeindex"}]
    said = dump(java, indexes, "", "--index-sanity-check")
    assert said.count("passed sanity check") + said.count("is empty") == len(indexes)
    assert said.count("passed sanity check") > len(indexes) / 2
    said = dump(java, indexes, "", "--verify-index-only")
    assert "Mismatches" not in said
    assert "not found" not in said
    assert "out of order" not in said.lower()
    said = dump(java, files, ".txnindex")
    assert [line for line in said.splitlines() if line.startswith("version: 0")] == [
        f"version: 0 producerId: {one.producer_id} firstOffset: {one.first_offset} "
        f"lastOffset: {one.last_offset} lastStableOffset: {one.last_stable_offset}"
        for one in aborted
    ]
    said = dump(java, files, ".snapshot")
    assert said.count("producerId: ") >= 3
    assert "corrupt" not in said.lower()


def dump(java: Peer, files: Iterable[Path], suffix: str, *arguments: str) -> str:
    """Return what DumpLogSegments says of the files that end so."""
    names = ",".join(str(file) for file in files if file.name.endswith(suffix))
    assert names
    return run_tool(java.version, dump_log_segments(java.version), "--files", names, *arguments)


SMALL_SEGMENTS: Final = {
    "log.segment.bytes": "20000",
    "log.index.interval.bytes": "1000",
    "log.cleanup.policy": "compact",
    "log.cleaner.enable": "false",
    "log.retention.ms": "-1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
}
CLEANING: Final = {
    "log.cleaner.enable": "true",
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.cleaner.delete.retention.ms": "3600000",
}


@pytest.mark.parametrize("kafka", [KAFKA_3_ZOOKEEPER, KAFKA_4_KRAFT], ids=str)
def test_apache_kafkas_transactions_are_told_as_it_tells_them(kafka: Kind, tmp_path: Path) -> None:
    overrides = SMALL_SEGMENTS
    if kafka is KAFKA_4_KRAFT:  # which takes no smaller ones
        overrides = overrides | {"log.segment.bytes": str(2**20)}
    with run_kafka(tmp_path, kafka, name="apache", overrides=overrides) as apache:
        produce_transactions(apache)
        expected = read_committed(apache)
        shutil.copytree(apache.log_folder(0), tmp_path / "killed")
    for folder in (apache.log_folder(0), tmp_path / "killed"):
        if kafka is KAFKA_4_KRAFT:  # its owner is no broker with ZooKeeper; its logs are the same
            (folder / META_PROPERTIES).unlink()
        manager = opened(folder, KEYED)
        log = manager.logs[LogName("keyed", 0)]
        aborted, open_ones = scanned(log)
        assert aborted
        assert not open_ones
        assert log.aborted_transactions(0, log.log_end_offset) == aborted
        assert log.last_stable_offset(log.log_end_offset) == log.log_end_offset
        assert committed(log) == expected
        manager.abandon()


def test_both_compact_to_the_same_records(tmp_path: Path) -> None:
    with run_kafka(tmp_path, KAFKA_3_ZOOKEEPER, name="apache", overrides=SMALL_SEGMENTS) as apache:
        produce_transactions(apache)
    shutil.copytree(apache.data, tmp_path / "cleaned")
    (tmp_path / "cleaned" / "broker-0" / SETTINGS).unlink()
    overrides = SMALL_SEGMENTS | CLEANING
    with run_kafka(tmp_path, KAFKA_3_ZOOKEEPER, name="cleaned", overrides=overrides) as theirs:
        end = wait_cleaned(theirs.log_folder(0))
    by_kafka = opened(theirs.log_folder(0), KEYED)
    kafkas = by_kafka.logs[LogName("keyed", 0)]
    by_us = opened(apache.log_folder(0), replace(KEYED, delete_retention_ms=3_600_000))
    ours = by_us.logs[LogName("keyed", 0)]
    before = len(records_of(ours))
    assert clean(ours).next_dirty == end
    assert len(records_of(ours)) < before
    assert places(ours, end) == places(kafkas, end)
    assert ours.aborted_transactions(0, end) == kafkas.aborted_transactions(0, end)
    by_us.close()
    by_kafka.abandon()
    # Apache Kafka goes on with what this broker compacted.
    (apache.data / "broker-0" / SETTINGS).unlink()
    shutil.copytree(apache.data, tmp_path / "again")
    with run_kafka(tmp_path, KAFKA_3_ZOOKEEPER, name="again", overrides=SMALL_SEGMENTS) as again:
        assert read_committed(again) == committed(kafkas)


def places(log: PartitionLog, end: int) -> list[tuple[int, bytes | None, bytes | None, int]]:
    """Return what is left of the records before an offset."""
    return [
        (record.offset, record.key, record.value, record.timestamp_ms)
        for record in records_of(log)
        if record.offset < end
    ]


def committed(log: PartitionLog) -> list[tuple[int, bytes | None, bytes | None]]:
    """Return what a read-committed consumer gets, told from the batches and the index."""
    aborted = log.aborted_transactions(0, log.log_end_offset)
    found: list[Record] = []
    for header, data in batches_left(log):
        is_cut = header.is_transactional and any(
            one.producer_id == header.producer_id
            and one.first_offset <= header.base_offset < one.last_offset
            for one in aborted
        )
        if not is_cut and not header.is_control:
            found += iterate_records(data)
    return [(record.offset, record.key, record.value) for record in found]


def produce_transactions(apache: KafkaCluster) -> None:
    """Write keys over and over, in transactions of which every third is aborted."""
    settings = {"bootstrap.servers": apache.bootstrap, "linger.ms": 1}
    admin = AdminClient({"bootstrap.servers": apache.bootstrap})
    made = admin.create_topics([NewTopic("keyed", num_partitions=1, replication_factor=1)])
    made["keyed"].result(PATIENCE_S)
    one = Producer(settings | {"transactional.id": "one", "compression.type": "lz4"})
    other = Producer(settings | {"enable.idempotence": True, "compression.type": "gzip"})
    one.init_transactions(PATIENCE_S)
    for number in range(60):
        one.begin_transaction()
        for slot in range(10):
            value = None if (number + slot) % 11 == 0 else b"%d.%d" % (number, slot) * 8
            one.produce("keyed", key=b"key %d" % ((number + slot * 3) % 25), value=value)
            other.produce("keyed", key=b"other %d" % (slot % 7), value=b"v" * 50)
        other.flush(PATIENCE_S)
        if number % 3:
            one.commit_transaction(PATIENCE_S)
        else:
            one.flush(PATIENCE_S)
            one.abort_transaction(PATIENCE_S)


def read_committed(
    apache: KafkaCluster,
) -> list[tuple[int | None, bytes | None, bytes | None]]:
    """Return what a consumer reads."""
    consumer = Consumer(
        {
            "bootstrap.servers": apache.bootstrap,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition("keyed", 0, 0)])
    found: list[tuple[int | None, bytes | None, bytes | None]] = []
    deadline = monotonic() + PATIENCE_S
    while monotonic() < deadline:
        message = consumer.poll(1)
        if message is None:
            continue
        error = message.error()
        if error is not None and error.code() == KafkaError._PARTITION_EOF:
            break
        assert error is None
        found.append((message.offset(), message.key(), message.value()))
    consumer.close()
    return found


def wait_cleaned(folder: Path) -> int:
    """Return up to where Apache Kafka has compacted, once that is the last segment."""
    deadline = monotonic() + PATIENCE_S
    while monotonic() < deadline:
        cleaned = read_offsets(folder / CLEANER_OFFSETS).get(LogName("keyed", 0), 0)
        active = max(int(file.stem) for file in (folder / "keyed-0").glob("*.log"))
        if cleaned == active > 0:
            return cleaned
        Event().wait(0.1)
    raise AssertionError(f"not compacted within {PATIENCE_S} s")

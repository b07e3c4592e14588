"""What changes on a source, or is unusual there, reaches the target or is named."""

from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
)

from tests.interop.peers import KAFKA_3_KRAFT, KAFKA_4_KRAFT
from tests.interop.sites import (
    QUIET,
    TIMEOUT_S,
    Pair,
    RunningPair,
    Site,
    append_batches,
    create_topic,
    end_of,
    read_batches,
    read_committed,
    write,
)
from tests.mirror.daemon import run_mirror, wait_until
from wire.compression import Compression
from wire.record_batch import Record, build_batch, iterate_records

pytestmark = pytest.mark.matrix(subject="The mirror between kinds of clusters")


def admin_of(sites: RunningPair) -> AdminClient:
    return AdminClient({"bootstrap.servers": sites.dc1.bootstrap, **QUIET})


def test_new_partitions_are_grown_and_filled(sites: RunningPair, tmp_path: Path) -> None:
    create_topic(sites.dc1, "growing")
    write(sites.dc1, "growing", 0, 100)
    with run_mirror(sites.configure(tmp_path, "growing")) as mirror:
        mirror.wait_mirrored("growing", 100)
        admin = admin_of(sites)
        admin.create_partitions([NewPartitions("growing", 3)])["growing"].result(60)
        wait_until("the third", lambda: mirror.partition("growing", 2) is not None)
        write(sites.dc1, "growing", 100, 300)
        for partition in range(3):
            mirror.wait_mirrored("growing", end_of(sites.dc1, "growing", partition), partition)
        assert mirror.stop() == 0
    for partition in range(3):
        assert read_committed(sites.dc2, "growing", partition) == read_committed(
            sites.dc1, "growing", partition
        )


def test_a_source_that_was_cut_and_has_grown_again_is_noticed(
    sites: RunningPair, tmp_path: Path
) -> None:
    create_topic(sites.dc1, "regrown")
    append_batches(sites.dc1, "regrown", [numbered(n) for n in (0, 1)])
    file = sites.configure(tmp_path, "regrown")
    with run_mirror(file) as mirror:
        mirror.wait_mirrored("regrown", 2)
        assert mirror.stop() == 0
    sites.dc1.kill()
    [segment] = sites.dc1.data.rglob("regrown-0/*.log")
    with segment.open("r+b") as log:
        log.truncate(len(numbered(0)))
    sites.dc1.start()
    append_batches(sites.dc1, "regrown", [numbered(n) for n in (8, 9)])
    with run_mirror(file, "again") as mirror:
        line = mirror.wait_state("regrown", "source went back")
        assert "source offset 1 holds another record than was mirrored" in line["reason"]
        assert mirror.stop() == 0
    assert [value for _, _, value in read_committed(sites.dc2, "regrown")] == [b"0", b"1"]


def numbered(number: int) -> bytes:
    """Return a batch of one record."""
    value = b"%d" % number
    return build_batch([Record(offset=0, timestamp_ms=1_000, key=b"k", value=value)])


def test_records_larger_than_the_default_limit_pass(sites: RunningPair, tmp_path: Path) -> None:
    create_topic(sites.dc1, "large", max_message_bytes="6000000")
    value = bytes(range(256)) * 16_000
    batches = [
        build_batch(
            [Record(offset=0, timestamp_ms=1_000, key=None, value=value)], compression=codec
        )
        for codec in (Compression.NONE, Compression.LZ4)
    ]
    append_batches(sites.dc1, "large", batches)
    with run_mirror(sites.configure(tmp_path, "large")) as mirror:
        mirror.wait_mirrored("large", 2)
        assert mirror.stop() == 0
    assert [one.records for one in read_batches(sites.dc2, "large")] == [
        one.records for one in read_batches(sites.dc1, "large")
    ]


def refused_settings(pair: Pair) -> dict[str, str]:
    """Return settings that the source takes and the target does not."""
    if (pair.source, pair.target) == (KAFKA_3_KRAFT, KAFKA_4_KRAFT):
        return {"message.downconversion.enable": "false", "segment.bytes": "20000"}
    pytest.skip("the target takes every setting of the source")


def settings_of(site: Site, topic: str) -> dict[str, str]:
    """Return a topic's settings, defaults too."""
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    admin = AdminClient({"bootstrap.servers": site.bootstrap, **QUIET})
    entries = admin.describe_configs([resource])[resource].result(TIMEOUT_S)
    return {name: entry.value for name, entry in entries.items()}


def test_settings_that_the_target_refuses_do_not_hold_up_the_records(
    sites: RunningPair, tmp_path: Path
) -> None:
    refused = refused_settings(sites.pair)
    create_topic(sites.dc1, "refused", config={"flush.messages": "77", **refused})
    write(sites.dc1, "refused", 0, 50)
    configuration = sites.configure(tmp_path, "refused")
    with run_mirror(configuration) as mirror:
        mirror.wait_mirrored("refused", 50)
        told = {one["setting"]: one["value"] for one in mirror.status()["refused_settings"]}
        assert told == refused
        assert settings_of(sites.dc2, "refused")["flush.messages"] == "77"
        metrics = mirror.metrics()
        assert all(f'setting="{name}",topic="refused"' in metrics for name in refused)
        assert mirror.log.count("is mirrored without") == len(refused)
        assert mirror.stop() == 0
    change = ConfigResource(
        ConfigResource.Type.TOPIC,
        "refused",
        incremental_configs=[
            ConfigEntry("flush.messages", "88", incremental_operation=AlterConfigOpType.SET)
        ],
    )
    admin = admin_of(sites)
    admin.incremental_alter_configs([change])[change].result(TIMEOUT_S)
    with run_mirror(configuration) as mirror:
        wait_until("88", lambda: settings_of(sites.dc2, "refused")["flush.messages"] == "88")
        wait_until("told", lambda: len(mirror.status()["refused_settings"]) == len(refused))
        assert mirror.stop() == 0


def test_times_set_by_the_source_broker_survive(sites: RunningPair, tmp_path: Path) -> None:
    create_topic(sites.dc1, "stamped", message_timestamp_type="LogAppendTime")
    write(sites.dc1, "stamped", 0, 50)
    with run_mirror(sites.configure(tmp_path, "stamped")) as mirror:
        mirror.wait_mirrored("stamped", 50)
        assert mirror.stop() == 0
    here, there = (
        [
            (record.offset, record.timestamp_ms, record.value)
            for one in read_batches(site, "stamped")
            for record in iterate_records(one.data)
        ]
        for site in (sites.dc1, sites.dc2)
    )
    assert there == here


def test_retention_that_overtakes_the_mirror_is_counted(sites: RunningPair, tmp_path: Path) -> None:
    create_topic(sites.dc1, "overtaken")
    for first in range(0, 100, 10):
        write(sites.dc1, "overtaken", first, 10)
    configuration = sites.configure(tmp_path, "overtaken")
    with run_mirror(configuration) as mirror:
        mirror.wait_mirrored("overtaken", 100)
        assert mirror.stop() == 0
    write(sites.dc1, "overtaken", 100, 50)
    place = TopicPartition("overtaken", 0, 130)
    admin = admin_of(sites)
    admin.delete_records([place])[place].result(60)
    with run_mirror(configuration) as mirror:
        wait_until("30 are lost", lambda: _lost(mirror.partition("overtaken")) == 30)
        line = mirror.partition("overtaken")
        assert line is not None
        assert line["state"] != "discovering"


def _lost(line: object) -> int:
    return int(line["lost_records"]) if isinstance(line, dict) else 0


def test_a_topic_made_anew_on_the_source_is_not_mixed_with_the_old(
    sites: RunningPair, tmp_path: Path
) -> None:
    create_topic(sites.dc1, "anew")
    write(sites.dc1, "anew", 0, 30)
    with run_mirror(sites.configure(tmp_path, "anew")) as mirror:
        mirror.wait_mirrored("anew", 30)
        before = read_committed(sites.dc2, "anew")
        admin = admin_of(sites)
        admin.delete_topics(["anew"])["anew"].result(60)
        wait_until("room for the new one", lambda: _is_made(sites, "anew"))
        write(sites.dc1, "anew", 1_000, 60)
        wait_until("named", lambda: _state(mirror.partition("anew")) not in {"", "streaming"})
        assert read_committed(sites.dc2, "anew") == before


def _is_made(sites: RunningPair, topic: str) -> bool:
    """Create a topic again; say no while the old one is still being deleted."""
    try:
        create_topic(sites.dc1, topic)
    except KafkaException as refused:
        fault = refused.args[0]
        if not isinstance(fault, KafkaError) or fault.code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
        return False
    return True


def _state(line: object) -> str:
    return str(line["state"]) if isinstance(line, dict) else ""

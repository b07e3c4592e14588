"""Positions that are odd, and records that are none: passed over while everything else goes on."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from offset_translation import map_topic_name
from tests.clusters import RunningCluster, cluster_in, run_together
from tests.failover.two_sites import (
    Sites,
    create_topic,
    delete_records,
    delete_topic,
    produce,
    read_all,
)
from tests.mirror.daemon import append_batches, configure, run_mirror, wait_until
from wire.consumer_offsets import OffsetKey, OffsetValue, encode_key, encode_offset_value
from wire.errors import ErrorCode
from wire.net import open_cluster
from wire.net.operations import (
    GroupOffset,
    append,
    commit_group_offsets,
    fetch_group_offsets,
)
from wire.record_batch import Record, build_batch
from wire.topic_partition import TopicPartition

pytestmark = pytest.mark.integration

RECORDS = 20
RECORDS_AT = 61
"""Where a batch's records begin."""
FOREIGN = build_batch([Record(0, 1, b"?", b"?"), Record(1, 1, b"", b"?")])
LONG = "m" * 5_000
"""Metadata that dc1 takes and dc2 does not."""


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory, witness: str) -> Iterator[Sites]:
    folder = tmp_path_factory.mktemp("sites")
    roomy = {"offset.metadata.max.bytes": "32000"}
    dc1 = cluster_in(folder, 1, "dc1", roomy, shares_zookeeper=True)
    dc2 = cluster_in(folder, 1, "dc2", shares_zookeeper=True)
    with run_together(dc1, dc2):
        yield Sites(dc1, dc2, witness)


def commit(cluster: RunningCluster, group: str, topic: str, offset: int, words: str = "") -> None:
    async def ask() -> None:
        async with open_cluster(cluster.addresses, client_id="test") as client:
            codes = await commit_group_offsets(
                client, group, {TopicPartition(topic, 0): (offset, words)}
            )
            assert codes == {(topic, 0): ErrorCode.NONE}

    trio.run(ask)


def stored(cluster: RunningCluster, group: str, topic: str) -> GroupOffset | None:
    async def ask() -> GroupOffset | None:
        async with open_cluster(cluster.addresses, client_id="test") as client:
            return (await fetch_group_offsets(client, group)).get(TopicPartition(topic, 0))

    return trio.run(ask)


def wait_stored(sites: Sites, group: str, topic: str, offset: int) -> GroupOffset:
    found: list[GroupOffset] = []

    def is_there() -> bool:
        there = stored(sites.dc2, group, topic)
        found[:] = [] if there is None else [there]
        return bool(found) and found[0].offset == offset

    wait_until(f"{group!a} at {offset} of {topic}", is_there)
    return found[0]


def write_foreign_records(cluster: RunningCluster) -> None:
    """Put records among the groups' that no coordinator writes, as a broker's client."""
    key = encode_key(OffsetKey(group="plain", topic="odd", partition=0))
    value = encode_offset_value(OffsetValue(offset=9, commit_timestamp_ms=1))
    records = [(b"", value), (b"foreign", b"?"), (key, b"?"), (key + b"?", value)]

    async def write() -> None:
        async with open_cluster(cluster.addresses, client_id="__admin_client") as client:
            for partition in range(3):
                batch = build_batch([Record(n, 1, *one) for n, one in enumerate(records)])
                answer = await append(client, "__consumer_offsets", partition, batch)
                assert answer.error_code == ErrorCode.NONE

    trio.run(write)


@pytest.mark.story
def test_odd_positions_are_brought_over_and_foreign_records_passed_over(
    sites: Sites, tmp_path: Path
) -> None:
    for topic in ("odd", "odd-trimmed", "odd-gone"):
        create_topic(sites.dc1, topic)
        produce(sites.dc1, topic, range(RECORDS))
    delete_records(sites.dc1, "odd-trimmed", 5)
    named = ("größe 消费者 🚀", "line\nbreak\x00", " ", "e\u0301\u202e", "g" * 3_000)
    for number, group in enumerate(named):
        commit(sites.dc1, group, "odd", number + 1)
    commit(sites.dc1, "wordy", "odd", 7, LONG)
    commit(sites.dc1, "chatty", "odd", 8, "größe" * 500)
    commit(sites.dc1, "past the end", "odd", 1_000)
    commit(sites.dc1, "before the start", "odd-trimmed", 2)
    commit(sites.dc1, "of the gone", "odd-gone", 6)
    write_foreign_records(sites.dc1)
    with run_mirror(configure(sites, tmp_path, "odd.*")) as mirror:
        for number, group in enumerate(named):
            assert wait_stored(sites, group, "odd", number + 1).metadata == ""
        assert wait_stored(sites, "wordy", "odd", 7).metadata == ""
        assert wait_stored(sites, "chatty", "odd", 8).metadata == "größe" * 500
        wait_stored(sites, "past the end", "odd", RECORDS)
        wait_stored(sites, "of the gone", "odd-gone", 6)
        first = read_all(sites.dc2, "odd-trimmed")[0]
        assert (first.value(), first.offset()) == (b"5", stored_at(sites, "odd-trimmed"))
        assert mirror.log.count("takes no metadata of 5000 bytes") == 1
        assert mirror.log.count("left out; further ones are counted only") == 1
        malformed = (
            'mirror_malformed_records_total{flow="dc1->dc2",topic="__consumer_offsets"} 12.0'
        )
        assert malformed in mirror.metrics()

        delete_topic(sites.dc1, "odd-gone")
        mirror.wait_state("odd-gone", "source gone")
        commit(sites.dc1, "wordy", "odd", 17, LONG)
        assert wait_stored(sites, "wordy", "odd", 17).metadata == ""
        assert mirror.log.count("takes no metadata of 5000 bytes") == 1
        assert mirror.stop() == 0
    # A mirror that starts with a checkpoint of the partition that is gone does as well.
    delete_topic(sites.dc2, "odd-gone")
    map_topic, checkpoints = map_topic_name("dc1"), "dc1.checkpoints.internal"
    for topic in (map_topic, checkpoints):
        append_batches(sites.dc2, topic, [FOREIGN])
    damage_first_batch(sites.dc2, checkpoints)
    with run_mirror(configure(sites, tmp_path, "odd.*"), "again") as mirror:
        commit(sites.dc1, "chatty", "odd", 18)
        wait_stored(sites, "chatty", "odd", 18)
        metrics = mirror.metrics()
        for topic in (map_topic, checkpoints):
            assert f'mirror_unbelieved_records{{flow="dc1->dc2",topic="{topic}"}} 2.0' in metrics
        malformed = f'mirror_malformed_records_total{{flow="dc1->dc2",topic="{checkpoints}"}} 1.0'
        assert malformed in metrics
        assert len(re.findall(rf"{checkpoints}: .* left out; further ones are", mirror.log)) == 1
        assert mirror.stop() == 0


def damage_first_batch(cluster: RunningCluster, topic: str) -> None:
    """Change a byte of the records, as a failing disk does."""
    [segment] = cluster.data.rglob(f"{topic}-0/*.log")
    with segment.open("r+b") as log:
        log.seek(RECORDS_AT + 4)
        [byte] = log.read(1)
        log.seek(RECORDS_AT + 4)
        log.write(bytes([byte ^ 1]))


def stored_at(sites: Sites, topic: str) -> int | None:
    wait_until("the position", lambda: stored(sites.dc2, "before the start", topic) is not None)
    there = stored(sites.dc2, "before the start", topic)
    return None if there is None else there.offset

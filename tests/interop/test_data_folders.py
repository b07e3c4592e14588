"""One data folder, two brokers: Apache Kafka goes on with what the bundled one stored, and back.

Only in ZooKeeper mode, where metadata, settings and logs all lie in formats that both know.
"""

import shutil
from pathlib import Path
from typing import Final

import pytest

from tests.clusters import RunningCluster, run_cluster
from tests.interop.client_calls import create_topic, read_records, wait_leaders
from tests.interop.peers import KAFKA_3_ZOOKEEPER, KafkaCluster, run_kafka
from wire.compression import Compression
from wire.errors import ErrorCode
from wire.net import open_cluster
from wire.net.operations import (
    append,
    commit_group_offsets,
    fetch_group_offsets,
    list_offsets,
)
from wire.record_batch import Record, build_batch
from wire.topic_partition import TopicPartition

pytestmark = pytest.mark.matrix(
    subject="The bundled broker and Apache Kafka on one data folder",
    against=str(KAFKA_3_ZOOKEEPER),
)

PLACE: Final = TopicPartition("kept", 1)
OVERRIDES: Final = {
    "log.segment.bytes": "20000",
    "offsets.topic.num.partitions": "4",
    "offsets.topic.replication.factor": "1",
    "zookeeper.set.acl": "false",  # Apache Kafka's clients do not know the brokers' login
}
BATCHES: Final = 200


async def test_apache_kafka_goes_on_with_the_data_of_the_bundled_broker(tmp_path: Path) -> None:
    with run_cluster(tmp_path, overrides=OVERRIDES) as bundled:
        written = await _write(bundled)
    shutil.copytree(bundled.data, tmp_path / "apache")
    with run_kafka(tmp_path, KAFKA_3_ZOOKEEPER, name="apache", overrides=OVERRIDES) as apache:
        await _check_kept(apache, written)


async def test_the_bundled_broker_goes_on_with_the_data_of_apache_kafka(tmp_path: Path) -> None:
    with run_kafka(tmp_path, KAFKA_3_ZOOKEEPER, name="apache", overrides=OVERRIDES) as apache:
        written = await _write(apache)
    shutil.copytree(apache.data, tmp_path / "dc1")
    with run_cluster(tmp_path, overrides=OVERRIDES) as bundled:
        await _check_kept(bundled, written)


async def _write(broker: RunningCluster | KafkaCluster) -> list[Record]:
    """Fill one partition with batches of every compression, commit a position, return all."""
    async with open_cluster(broker.addresses, client_id="interop") as cluster:
        assert await create_topic(cluster, PLACE[0], partitions=2) == ErrorCode.NONE
        for number in range(BATCHES):
            records = [
                Record(offset=n, timestamp_ms=10_000 * number + n, key=b"k", value=b"v" * 90)
                for n in range(10)
            ]
            compression = Compression(number % len(Compression))
            answer = await append(cluster, *PLACE, build_batch(records, compression=compression))
            assert answer.error_code == ErrorCode.NONE
        await commit_group_offsets(cluster, "keepers", {PLACE: (777, "here")})
        return await read_records(cluster, *PLACE, 10 * BATCHES)


async def _check_kept(broker: RunningCluster | KafkaCluster, written: list[Record]) -> None:
    """Read everything back, by offset and by time, and append behind it."""
    async with open_cluster(broker.addresses, client_id="interop") as cluster:
        await wait_leaders(cluster, PLACE[0], 2)
        assert len(written) == 10 * BATCHES
        assert await read_records(cluster, *PLACE, 10 * BATCHES) == written
        assert await list_offsets(cluster, [PLACE], 10_000 * 150 + 4) == {PLACE: 1504}
        stored = await fetch_group_offsets(cluster, "keepers")
        assert (stored[PLACE].offset, stored[PLACE].metadata) == (777, "here")
        view = await cluster.metadata((PLACE[0],))
        assert len(view.topics[PLACE[0]].partitions) == 2
        record = Record(offset=0, timestamp_ms=1, key=None, value=b"next")
        answer = await append(cluster, *PLACE, build_batch([record]))
        assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, 10 * BATCHES)

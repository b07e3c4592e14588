"""The mirror beside Apache Kafka clusters of three brokers that lose a leader in mid-stream."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from tests.clusters import run_cluster
from tests.interop.peers import KAFKA_3_ZOOKEEPER, KAFKA_4_KRAFT, KafkaCluster, Kind, run_kafka
from tests.interop.sites import (
    BUNDLED,
    QUIET,
    TIMEOUT_S,
    Pair,
    RunningPair,
    Site,
    create_topic,
    end_of,
    read_committed,
    write,
)
from tests.mirror.daemon import run_mirror
from tests.zookeeper import run_witness

pytestmark = pytest.mark.matrix(subject="The mirror between kinds of clusters")

SLOWLY = "partition_fetch_bytes: 4096\n    fetch_max_bytes: 4096\n    replication_factor: {copies}"
RECORDS = 60_000
PAIRS = (
    Pair(source=KAFKA_3_ZOOKEEPER, target=BUNDLED),
    Pair(source=KAFKA_4_KRAFT, target=BUNDLED),
    Pair(source=BUNDLED, target=KAFKA_3_ZOOKEEPER),
    Pair(source=BUNDLED, target=KAFKA_4_KRAFT),
)


@pytest.fixture(scope="module", params=PAIRS, ids=str)
def sites(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningPair]:
    pair: Pair = request.param
    folder = tmp_path_factory.mktemp("sites")
    with ExitStack() as stack:
        running: list[Site] = []
        for kind, name in ((pair.source, "dc1"), (pair.target, "dc2")):
            if isinstance(kind, Kind):
                running.append(stack.enter_context(run_kafka(folder, kind, 3, name)))
            else:
                running.append(stack.enter_context(run_cluster(folder, name=name)))
        witness = stack.enter_context(run_witness(folder / "witness"))
        yield RunningPair(pair=pair, dc1=running[0], dc2=running[1], witness=witness)


def leader_of(cluster: KafkaCluster, topic: str) -> int:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, **QUIET})
    leader: int = admin.list_topics(topic, timeout=TIMEOUT_S).topics[topic].partitions[0].leader
    return leader


def test_a_leader_killed_in_mid_stream_costs_nothing(sites: RunningPair, tmp_path: Path) -> None:
    apache = sites.dc1 if isinstance(sites.dc1, KafkaCluster) else sites.dc2
    assert isinstance(apache, KafkaCluster)
    copies = 3 if apache is sites.dc1 else 1
    create_topic(sites.dc1, "led", copies=copies)
    write(sites.dc1, "led", 0, RECORDS, value_bytes=200)
    more = SLOWLY.format(copies=1 if apache is sites.dc1 else 3)
    with run_mirror(sites.configure(tmp_path, "led", more)) as mirror:
        mirror.wait_mirrored("led", 500)
        victim = leader_of(apache, "led")
        apache.kill_broker(victim)
        # Writes were under way to a target; a source is asked again for what was not answered.
        assert apache is sites.dc1 or mirror.mirrored_end("led") < RECORDS
        mirror.wait_mirrored("led", RECORDS)
        write(sites.dc1, "led", RECORDS, 500)
        mirror.wait_mirrored("led", end_of(sites.dc1, "led"))
        apache.start_broker(victim)
        assert mirror.stop() == 0
    assert read_committed(sites.dc2, "led") == read_committed(sites.dc1, "led")

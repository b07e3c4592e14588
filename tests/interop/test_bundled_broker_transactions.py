"""Apache Kafka's own transactional programs, of both transaction versions, against `broker up`.

Those of Kafka 4 are of transaction version 2: they name no partitions, and each end gives them
another epoch. Those of Kafka 3 stay with the first version.
"""

from collections.abc import Iterator
from typing import Final

import pytest

from tests.clusters import RunningCluster, run_cluster
from tests.interop.matrix import Peer
from tests.interop.peers import NEWEST_3, run_tool
from tests.interop.peers.tools import (
    PRODUCER_PERFORMANCE,
    TRANSACTIONAL_COPIER,
    TRANSACTIONS,
    VERIFIABLE_PRODUCER,
)
from tests.interop.secured import JAVA
from tests.interop.sites import create_topic, read_committed

SUBJECT: Final = "The bundled broker with foreign clients"
RECORDS: Final = 2_000

pytestmark = [
    pytest.mark.matrix(subject=SUBJECT),
    pytest.mark.parametrize("java", JAVA, ids=str),
]


@pytest.fixture(scope="module")
def bundled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    overrides = {"offsets.topic.num.partitions": "4", "transaction.state.log.num.partitions": "4"}
    with run_cluster(tmp_path_factory.mktemp("bundled"), brokers=3, overrides=overrides) as cluster:
        yield cluster


def epoch_of(bundled: RunningCluster, java: Peer, transactional_id: str) -> int:
    """Return the epoch that Kafka's tool shows of a transactional id at rest."""
    at = ("--bootstrap-server", bundled.bootstrap)
    told = run_tool(
        java.version, TRANSACTIONS, *at, "describe", "--transactional-id", transactional_id
    )
    header, row = (line.split() for line in told.splitlines()[-2:])
    found = dict(zip(header, row, strict=False))
    assert found["TransactionState"] == "CompleteCommit"
    return int(found["ProducerEpoch"])


def test_a_transactional_java_producer_is_read_whole(bundled: RunningCluster, java: Peer) -> None:
    topic = transactional_id = f"perf-{java.version}"
    create_topic(bundled, topic, 3)
    said = run_tool(
        java.version,
        PRODUCER_PERFORMANCE,
        *("--topic", topic, "--num-records", str(RECORDS), "--record-size", "100"),
        *("--throughput", "2000", "--transactional-id", transactional_id),
        *("--transaction-duration-ms", "50"),
        *("--producer-props", f"bootstrap.servers={bundled.bootstrap}", "acks=all"),
    )
    assert f"{RECORDS} records sent" in said
    assert sum(len(read_committed(bundled, topic, index)) for index in range(3)) == RECORDS
    epoch = epoch_of(bundled, java, transactional_id)
    assert epoch == 0 if java.version == NEWEST_3 else epoch > 5


def test_the_java_copier_copies_each_record_once_though_it_aborts_at_random(
    bundled: RunningCluster, java: Peer
) -> None:
    source, target = f"copied-{java.version}", f"copy-{java.version}"
    for topic in (source, target):
        create_topic(bundled, topic, 1)
    at = ("--bootstrap-server", bundled.bootstrap)
    run_tool(
        java.version, VERIFIABLE_PRODUCER, *at, "--topic", source, "--max-messages", str(RECORDS)
    )
    run_tool(
        java.version,
        TRANSACTIONAL_COPIER,
        *("--broker-list", bundled.bootstrap, "--transactional-id", target),
        *("--consumer-group", f"{target}-group", "--input-topic", source, "--input-partition", "0"),
        *("--output-topic", target, "--max-messages", str(RECORDS)),
        *("--transaction-size", "100", "--enable-random-aborts", "--group-mode"),
    )
    values = [int(value or b"-1") for _, _, value in read_committed(bundled, target, 0)]
    assert values == list(range(RECORDS))

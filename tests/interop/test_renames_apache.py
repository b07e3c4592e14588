"""A topic with another name on each of two sites of Apache Kafka: moved there and back.

Two workers mirror it. Groups that were at the end, in the middle and at the beginning read each
record once over both moves. The first partition has aborted transactions, so that its positions
differ between the sites.
"""

from pathlib import Path
from typing import Final, cast

import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AclOperation, ResourceType

from tests.clusters import RunningCluster
from tests.dc_yaml import dc_yaml, flow
from tests.failover.both_ways import go_on_reading, promote, wait_logged
from tests.failover.promoting import run_mirror, tell
from tests.interop.closing import Stage, stage, write_as_user
from tests.interop.peers import KAFKA_3_KRAFT, KAFKA_3_ZOOKEEPER, KAFKA_4_KRAFT, Kind
from tests.interop.programs import run_program
from tests.interop.rights import give
from tests.interop.sites import (
    OFTEN,
    QUIET,
    TIMEOUT_S,
    TIMEOUTS,
    Site,
    create_topic,
    write_transactions,
)
from tests.secured_cluster import USER

pytestmark = pytest.mark.matrix(subject="Topics under other names")

HERE: Final = "orders"
THERE: Final = "orders-eu"
PARTITIONS: Final = 3
SHARES: Final = {"ahead": 1.0, "behind": 0.5, "slow": 0.0}
"""How much of what there is a group has read when a site is left."""


def configure(at: Stage, folder: Path) -> Path:
    """Both directions, each with the name turned round."""
    file = folder / "renamed.yaml"
    file.write_text(
        dc_yaml(
            flow("dc1", "dc2", HERE, rename={HERE: THERE}, **OFTEN),
            flow("dc2", "dc1", THERE, rename={THERE: HERE}, **OFTEN),
            dc1=at.dc1.cluster.bootstrap,
            dc2=at.dc2.cluster.bootstrap,
            witness=at.witness,
            path="/renamed",
            coordination={"session_timeout_ms": 4_000},
            failover={"initial_active": "dc1", **TIMEOUTS},
            audit={"output": str(folder / "audit")},
        )
    )
    return file


class Applications:
    """Writes numbers to each partition, and has groups read them on whichever site is active."""

    def __init__(self) -> None:
        self.written: list[list[int]] = [[] for _ in range(PARTITIONS)]
        self.read = {group: [list[int]() for _ in range(PARTITIONS)] for group in SHARES}

    def write_transactions(self, site: Site, topic: str) -> None:
        """Write six transactions of five records, of which the third and the sixth are aborted."""
        write_transactions(site, topic, count=6, each=5)
        self.written[0] += [one for one in range(30) if one // 5 % 3 != 2]

    def write(self, site: Site, topic: str, first: int, count: int) -> None:
        producer = Producer({"bootstrap.servers": site.bootstrap, **QUIET})
        for partition, written in enumerate(self.written):
            numbers = range(first + 1_000 * partition, first + 1_000 * partition + count)
            for number in numbers:
                producer.produce(topic, str(number).encode(), partition=partition)
            written.extend(numbers)
        assert producer.flush(TIMEOUT_S) == 0

    def read_on(self, site: Site, topic: str, shares: dict[str, float]) -> None:
        """Have each group go on where it is, until it has its share of each partition."""
        for group, share in shares.items():
            for partition, (written, read) in enumerate(
                zip(self.written, self.read[group], strict=True)
            ):
                count = int(share * len(written)) - len(read)
                cluster = cast("RunningCluster", site)  # of which the address is used
                read.extend(go_on_reading(cluster, group, topic, count, partition))


@pytest.mark.parametrize(
    ("source", "target"),
    [(KAFKA_3_ZOOKEEPER, KAFKA_4_KRAFT), (KAFKA_4_KRAFT, KAFKA_3_KRAFT)],
    ids=str,
)
def test_groups_on_a_renamed_topic_read_each_record_once_there_and_back(
    tmp_path: Path, source: Kind, target: Kind
) -> None:
    with stage(tmp_path, source, target) as at:
        dc1, dc2, applications = at.dc1.cluster, at.dc2.cluster, Applications()
        create_topic(dc1, HERE, PARTITIONS)
        give(dc1, USER, ResourceType.TOPIC, HERE, AclOperation.ALL)
        file = configure(at, tmp_path)
        with run_mirror(file), run_mirror(file):
            wait_logged(file, "3 partitions of 2 workers")
            applications.write_transactions(dc1, HERE)
            applications.write(dc1, HERE, 100, 40)
            applications.read_on(dc1, HERE, SHARES)
            assert f"names    on dc2 {HERE} is {THERE}" in tell("plan", "dc2", str(file)).output
            promote("dc2", file)
            refused = write_as_user(at.dc1, HERE)
            assert refused is not None
            assert refused.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
            applications.write(dc2, THERE, 200, 30)
            applications.read_on(dc2, THERE, SHARES)
            promote("dc1", file)
            applications.write(dc1, HERE, 300, 10)
            applications.read_on(dc1, HERE, dict.fromkeys(SHARES, 1.0))
            wait_logged(file, "dc1->dc2: running")
        assert applications.read == dict.fromkeys(SHARES, applications.written)
        clean = run_program("spark_audit.cli", "run", str(file))
        assert clean.returncode == 0, clean.stdout + clean.stderr

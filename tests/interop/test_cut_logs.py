"""Logs that were cut and have grown again, as restored disks leave them, behind a failback.

Their ends say that nothing is missing. Both clusters are bundled ones, and the mirror is down
meanwhile.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest
from confluent_kafka import Producer

from tests.clusters import RunningCluster
from tests.commands import run_mirror_command
from tests.failover.both_ways import configure_both_ways, promote, wait_logged
from tests.failover.promoting import run_mirror, tell, wait_mirroring
from tests.failover.two_sites import (
    QUIET,
    READ_TIMEOUT_S,
    Sites,
    create_topic,
    pause,
    produce,
    read_what_is_there,
    run_sites,
    values_of,
    wait_length,
)

pytestmark = pytest.mark.matrix(subject="cut logs", against="broker up")

TOPIC = "cut"
FORGOTTEN = (
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    ".kafka_cleanshutdown",
)
"""A broker without them reads its logs as they are."""


@pytest.fixture
def sites(witness: str, tmp_path: Path) -> Iterator[Sites]:
    with run_sites(tmp_path / "sites", witness) as running:
        yield running


def folder_of(cluster: RunningCluster) -> Path:
    [found] = cluster.data.rglob(f"{TOPIC}-0")
    return found


def keep(cluster: RunningCluster, copy: Path) -> None:
    """Copy the topic's log as it is now."""
    cluster.stop()
    shutil.copytree(folder_of(cluster), copy)
    cluster.start()


def restore(cluster: RunningCluster, copy: Path) -> None:
    """Have the broker find the log as it was."""
    cluster.stop()
    log = folder_of(cluster)
    shutil.rmtree(log)
    shutil.copytree(copy, log)
    for name in FORGOTTEN:
        (log.parent / name).unlink(missing_ok=True)
    cluster.start()


def lose_last_batch(cluster: RunningCluster) -> None:
    """Take the last batch from the log: here, the marker that ends a transaction."""
    cluster.stop()
    log = folder_of(cluster)
    segment = max(log.glob("*.log"))
    data, last, position = segment.read_bytes(), 0, 0
    while position < len(data):
        last = position
        position += 12 + int.from_bytes(data[position + 8 : position + 12], "big")
    segment.write_bytes(data[:last])
    for index in (*log.glob("*.snapshot"), *log.glob("*.txnindex")):
        index.unlink()
    for name in FORGOTTEN:
        (log.parent / name).unlink(missing_ok=True)
    cluster.start()


def failed_back(sites: Sites, folder: Path) -> Path:
    """Go over to dc2 and back, with records of both sites; return the configuration file."""
    create_topic(sites.dc1, TOPIC)
    file = configure_both_ways(sites, folder, f"/{folder.name}", TOPIC)
    with run_mirror(file):
        wait_mirroring(file, READ_TIMEOUT_S)
        produce(sites.dc1, TOPIC, range(5))
        wait_length(sites.dc2, TOPIC, 5)
        promote("dc2", file)
        produce(sites.dc2, TOPIC, range(50, 53))
        wait_length(sites.dc1, TOPIC, 8)
        promote("dc1", file)
        produce(sites.dc1, TOPIC, range(5, 8))
        wait_length(sites.dc2, TOPIC, 11)
    return file


@pytest.mark.parametrize("grown", [4, 7], ids=["as-long", "longer"])
def test_a_source_that_has_grown_again_behind_a_failback_is_not_taken_for_mirrored(
    sites: Sites, tmp_path: Path, grown: int
) -> None:
    file = failed_back(sites, tmp_path)
    keep(sites.dc1, tmp_path / "kept")
    with run_mirror(file):
        produce(sites.dc1, TOPIC, range(10, 14))
        wait_length(sites.dc2, TOPIC, 15)
    restore(sites.dc1, tmp_path / "kept")
    produce(sites.dc1, TOPIC, range(800, 800 + grown))
    with run_mirror(file):
        wait_logged(file, "source offset 14 holds another record than was mirrored")
        # At once: the mirror may not have told the witness yet that the partition stands still.
        refused = tell("promote", "dc2", str(file))
    assert refused.status == 2, refused
    told = refused.output + refused.complaint
    assert "source went back" in told or "was cut, and has grown again" in told


def test_a_record_in_the_place_of_a_lost_marker_is_missing_until_it_is_mirrored(
    sites: Sites, tmp_path: Path
) -> None:
    file = failed_back(sites, tmp_path)
    with run_mirror(file):
        producer = Producer(
            {"bootstrap.servers": sites.dc1.bootstrap, "transactional.id": "t", **QUIET}
        )
        producer.init_transactions(READ_TIMEOUT_S)
        producer.begin_transaction()
        producer.produce(TOPIC, b"10", b"k", 0)
        producer.commit_transaction(READ_TIMEOUT_S)
        wait_length(sites.dc2, TOPIC, 12)
    lose_last_batch(sites.dc1)
    produce(sites.dc1, TOPIC, [800])
    with run_mirror(file):
        deadline = monotonic() + READ_TIMEOUT_S
        while not lag(file):
            assert monotonic() < deadline, "it counts as mirrored, as if the marker were there"
            pause(0.2)
    # It waits for the transaction, which nobody has ended any more.
    assert values_of(read_what_is_there(sites.dc2, TOPIC))[-1] == 10


def lag(file: Path) -> int | None:
    """Return how many records `mirror status` calls missing on dc2, None where it does not know."""
    told = json.loads(run_mirror_command("status", file, "--json").stdout)
    [flow] = (one for one in told["flows"] if one["flow"] == "dc1->dc2")
    lags: list[int | None] = [one["lag_records"] for one in flow["partitions"]]
    return lags[0] if lags else None

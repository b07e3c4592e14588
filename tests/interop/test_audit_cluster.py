"""The audit on a Spark cluster: a standalone master and two workers, each in a process of its own.

Nothing comes back by a disk: executors return their rows to the driver over the network.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.clusters import RunningCluster, cluster_in, run_together
from tests.dc_yaml import dc_yaml, flow

pytestmark = pytest.mark.matrix(
    subject="Audit on a Spark cluster", against="Spark standalone, two workers"
)

RECORDS = 2_000
LOST = {700, 1_500}
MASTER = "local-cluster[2,1,512]"
"""Spark's own name for it: master and workers run here, executors in JVMs of their own."""
TIMEOUT_S = 500


def test_on_a_spark_cluster_the_audit_compares_everything_and_finds_what_was_lost(
    tmp_path: Path,
) -> None:
    source, target = cluster_in(tmp_path, 1, "dc1"), cluster_in(tmp_path, 1, "dc2")
    with run_together(source, target):
        _fill(source, set())
        _fill(target, LOST)
        file = tmp_path / "dc.yaml"
        file.write_text(
            dc_yaml(
                flow(),
                dc1=source.bootstrap,
                dc2=target.bootstrap,
                witness=target.zookeeper,
                failover={"initial_active": "dc1"},
            )
        )
        output = tmp_path / "audit"
        done = _audit(file, output)
    assert done.returncode == 1, done.stdout + done.stderr
    verdict = json.loads((output / "verdict.json").read_text())
    assert verdict["counts"]["lost"] == len(LOST)
    assert verdict["records_compared"] == {"source": RECORDS, "target": RECORDS - len(LOST)}
    assert verdict["flows"][0]["coverage"]["source"]["not compared"] == 0


def _fill(cluster: RunningCluster, without: set[int]) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    topic = NewTopic("orders", 2, 1, config={"retention.ms": "-1"})
    admin.create_topics([topic])["orders"].result(60)
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    for number in range(RECORDS):
        if number not in without:
            producer.produce(
                "orders",
                key=str(number),
                value=f"value {number}",
                partition=number % 2,
                timestamp=1_790_000_000_000 + number,
            )
    assert producer.flush(60) == 0


def _audit(file: Path, output: Path) -> "subprocess.CompletedProcess[str]":
    settings = ("--conf", "spark.executor.memory=512m", "--conf", "spark.driver.host=127.0.0.1")
    command = [sys.executable, "-m", "spark_audit.cli", "run", "--master", MASTER, *settings]
    return subprocess.run(
        [*command, "--output", str(output), str(file)],
        env={**os.environ, "SPARK_SCALA_VERSION": "2.13"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )

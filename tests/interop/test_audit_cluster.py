"""The audit on a Spark cluster: a standalone master and two workers that share no disk.

What executors find comes back over the network, and what lets them in at brokers lies in no file
of theirs.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.dc_yaml import dc_yaml, flow
from tests.interop.peers.spark_standalone import run_standalone_spark
from tests.secured_cluster import RIGHT, run_secured_cluster
from wire.net.security import Mechanism

pytestmark = pytest.mark.matrix(
    subject="Audit on a Spark cluster", against="Spark standalone, two workers"
)

RECORDS = 2_000
LOST = {700, 1_500}
PROTOCOL = "SASL_SSL"
TIMEOUT_S = 500


def test_on_a_spark_cluster_the_audit_compares_everything_and_finds_what_was_lost(
    tmp_path: Path,
) -> None:
    driver, shared = tmp_path / "driver", tmp_path / "configuration"
    for folder in (driver, shared):
        folder.mkdir()
    output = driver / "audit"
    with (
        run_secured_cluster(tmp_path / "sites", name="dc1") as source,
        run_secured_cluster(tmp_path / "sites", name="dc2") as target,
        run_standalone_spark(tmp_path / "spark", hidden=[driver]) as spark,
    ):
        _fill(source.client(PROTOCOL), set())
        _fill(target.client(PROTOCOL), LOST)
        file = shared / "dc.yaml"
        file.write_text(
            dc_yaml(
                flow(),
                dc1=source.section(PROTOCOL, Mechanism.SCRAM_SHA_512),
                dc2=target.section(PROTOCOL, Mechanism.SCRAM_SHA_512),
                witness=target.zookeeper,
                failover={"initial_active": "dc1"},
            )
        )
        assert yaml.safe_load(file.read_text())["clusters"]["dc1"]["sasl"]["password"] == RIGHT
        done = _audit(file, output, spark.master, driver)
        assert done.returncode == 1, done.stdout + done.stderr
        assert spark.holds("spark_audit"), "workers have files, and they were looked at"
        assert spark.holds(RIGHT) == []
    verdict = json.loads((output / "verdict.json").read_text())
    assert verdict["counts"]["lost"] == len(LOST)
    assert verdict["records_compared"] == {"source": RECORDS, "target": RECORDS - len(LOST)}
    assert verdict["flows"][0]["coverage"]["source"]["not compared"] == 0


def _fill(client: Mapping[str, Any], without: set[int]) -> None:
    admin = AdminClient(dict(client))
    topic = NewTopic("orders", 2, 1, config={"retention.ms": "-1"})
    admin.create_topics([topic])["orders"].result(60)
    producer = Producer(dict(client))
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


def _audit(
    file: Path, output: Path, master: str, scratch: Path
) -> "subprocess.CompletedProcess[str]":
    settings = ("--conf", "spark.executor.memory=512m", "--conf", "spark.driver.host=127.0.0.1")
    command = [sys.executable, "-m", "spark_audit.cli", "run", "--master", master, *settings]
    return subprocess.run(
        [*command, "--output", str(output), str(file)],
        env={**os.environ, "SPARK_SCALA_VERSION": "2.13", "TMPDIR": str(scratch)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )

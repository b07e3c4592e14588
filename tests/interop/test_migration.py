"""A real MirrorMaker 2 is stopped, and our mirror goes on where it was: every record once."""

import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from tests.clusters import RunningCluster, run_cluster
from tests.interop.peers import (
    NEWEST_3,
    NEWEST_MIRROR_MAKER,
    SAME_NAMES,
    SINGLE_COPY,
    MirrorMaker,
    Site,
)
from tests.interop.sites import commit, committed, create_topic, end_of, read_committed, write
from tests.mirror.daemon import run_mirror, wait_until
from tests.zookeeper import run_witness

pytestmark = pytest.mark.matrix(subject="Our mirror in the place of MirrorMaker")

PARTITIONS = 2
OWN_PORTS = "metrics: {mirror_port: 0, failover_port: 0, audit_port: 0}\n"


def topic_exists(site: RunningCluster, topic: str) -> bool:
    admin = AdminClient({"bootstrap.servers": site.bootstrap})
    return topic in admin.list_topics(timeout=60).topics


def run(*words: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "mirror.cli", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


def mirror_with(theirs: MirrorMaker, topic: str, target: RunningCluster, how: str) -> None:
    """Let MirrorMaker copy the 2,000 records that there are, and end it."""

    def copied() -> int:
        return sum(len(read_committed(target, topic, index)) for index in range(PARTITIONS))

    theirs.start()
    try:
        wait_until("MirrorMaker's copy", lambda: topic_exists(target, topic), 60)
        wait_until("MirrorMaker's records", lambda: copied() == 2_000, 60)
        (theirs.kill if how == "killed" else theirs.stop)()
    finally:
        theirs.kill()


@pytest.mark.parametrize(
    ("version", "policy", "topic", "how"),
    [
        (NEWEST_MIRROR_MAKER, {}, "dc1.orders", "killed"),
        (NEWEST_3, SAME_NAMES, "orders", "stopped"),
    ],
    ids=["killed", "stopped"],
)
def test_no_record_is_lost_or_repeated_when_ours_replaces_mirror_maker(
    version: str, policy: dict[str, str], topic: str, how: str, tmp_path: Path
) -> None:
    with (
        run_cluster(tmp_path, name="dc1") as dc1,
        run_cluster(tmp_path, name="dc2") as dc2,
        run_witness(tmp_path / "witness") as witness,
    ):
        create_topic(dc1, "orders", PARTITIONS)
        write(dc1, "orders", 0, 2_000)
        theirs = MirrorMaker(
            version=version,
            folder=tmp_path / "mm2",
            source=Site(alias="dc1", bootstrap=dc1.bootstrap),
            target=Site(alias="dc2", bootstrap=dc2.bootstrap),
            settings={**SINGLE_COPY, **policy, "topics": "orders"},
        )
        mirror_with(theirs, topic, dc2, how)
        write(dc1, "orders", 2_000, 500)
        commit(dc1, "behind", "orders", 30)
        commit(dc1, "ahead", "orders", end_of(dc1, "orders") - 10)

        properties = tmp_path / "mm2" / "mm2.properties"
        imported = run("import-mm2", "--write", "--zookeeper", witness, properties)
        assert imported.returncode == 0, imported.stderr
        file = properties.with_suffix(".yaml")
        file.write_text(file.read_text() + OWN_PORTS)
        takings = []

        def is_taken() -> bool:
            """A worker that was killed stays in its group for a while, and is heeded."""
            takings.append(run("take-over", "--write", file))
            return takings[-1].returncode == 0

        wait_until("taken over", is_taken, 40)
        assert all("stop it first" in refused.stderr for refused in takings[:-1])
        assert takings[-1].stdout.count("orders-") == PARTITIONS
        if how == "stopped":
            assert "had committed" not in takings[-1].stdout
        with run_mirror(file) as mirror:
            for index in range(PARTITIONS):
                mirror.wait_mirrored("orders", end_of(dc1, "orders", index), index)
            write(dc1, "orders", 2_500, 500)
            for index in range(PARTITIONS):
                mirror.wait_mirrored("orders", end_of(dc1, "orders", index), index)
            # What is not mirrored yet holds a position back, and may have been when it was applied.
            ahead = committed(dc1, "ahead", "orders")
            wait_until("group", lambda: committed(dc2, "ahead", topic) == ahead)
            wait_until("group", lambda: committed(dc2, "behind", topic) == 30)
            assert mirror.log.count("ERROR") == 0
        for index in range(PARTITIONS):
            ours = [(key, value) for _, key, value in read_committed(dc2, topic, index)]
            original = [(key, value) for _, key, value in read_committed(dc1, "orders", index)]
            assert ours == original

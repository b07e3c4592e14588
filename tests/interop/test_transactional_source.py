"""A bundled source whose applications write transactions, through the whole story.

Java's producer of transaction version 2 and librdkafka's of the first write. Java's copier commits
its positions in transactions. The mirror, a promotion and the audit follow.
"""

from pathlib import Path

import pytest

from tests.clusters import run_cluster
from tests.interop.matrix import Peer
from tests.interop.peers import NEWEST_4, run_tool
from tests.interop.peers.tools import PRODUCER_PERFORMANCE, TRANSACTIONAL_COPIER
from tests.interop.programs import active_site, run_program
from tests.interop.sites import (
    BUNDLED,
    Pair,
    RunningPair,
    committed,
    create_topic,
    end_of,
    read_committed,
    write_transactions,
)
from tests.mirror.daemon import run_mirror, wait_until
from tests.zookeeper import run_witness

JAVA = Peer(name="Java clients", version=NEWEST_4)
BY_JAVA = 600


def write_by_java(bootstrap: str, topic: str) -> None:
    run_tool(
        NEWEST_4,
        PRODUCER_PERFORMANCE,
        *("--topic", topic, "--num-records", str(BY_JAVA), "--record-size", "50"),
        *("--throughput", "1000", "--transactional-id", "java", "--transaction-duration-ms", "50"),
        *("--producer-props", f"bootstrap.servers={bootstrap}", "acks=all"),
    )


def copy(bootstrap: str, source: str, target: str, count: int) -> None:
    """Copy so many records and commit where in transactions, some of which are aborted."""
    run_tool(
        NEWEST_4,
        TRANSACTIONAL_COPIER,
        *("--broker-list", bootstrap, "--transactional-id", "copier", "--consumer-group", "copier"),
        *("--input-topic", source, "--input-partition", "0", "--output-topic", target),
        *("--max-messages", str(count), "--transaction-size", "50", "--enable-random-aborts"),
    )


@pytest.mark.matrix(subject="Failover and audit between kinds of clusters")
@pytest.mark.parametrize("java", [JAVA], ids=str)
def test_a_bundled_source_with_transactions_is_mirrored_promoted_and_audited(
    java: Peer,  # noqa: ARG001 - names the column
    tmp_path: Path,
) -> None:
    with (
        run_cluster(tmp_path, name="dc1") as dc1,
        run_cluster(tmp_path, name="dc2") as dc2,
        run_witness(tmp_path / "witness") as witness,
    ):
        pair = Pair(source=BUNDLED, target=BUNDLED)
        sites = RunningPair(pair=pair, dc1=dc1, dc2=dc2, witness=witness)
        for topic in ("story", "story-copy"):
            create_topic(dc1, topic)
        write_by_java(dc1.bootstrap, "story")
        write_transactions(dc1, "story", count=12, each=5)
        source = read_committed(dc1, "story")
        assert len(source) == BY_JAVA + 8 * 5, "every third of librdkafka's was aborted"
        configuration = sites.configure(tmp_path, "story.*")
        with run_mirror(configuration) as mirror:
            copy(dc1.bootstrap, "story", "story-copy", len(source))
            for topic in ("story", "story-copy"):
                mirror.wait_mirrored(topic, end_of(dc1, topic))
            wait_until("its place", lambda: committed(dc2, "copier", "story") == len(source))
            promoted = run_program("failover.cli", "promote", "dc2", str(configuration))
            assert promoted.returncode == 0, promoted.stdout + promoted.stderr
            assert mirror.stop() == 0
        assert active_site(configuration) == "dc2"
        for topic in ("story", "story-copy"):
            there = [one[1:] for one in read_committed(dc2, topic)]
            assert there == [one[1:] for one in source]
            assert end_of(dc2, topic) == len(source), "no marker and nothing aborted has come along"
        audited = run_program("spark_audit.cli", "run", str(configuration))
        assert audited.returncode == 0, audited.stdout + audited.stderr

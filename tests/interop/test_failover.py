"""`failover` and `spark-audit` with Apache Kafka on either side.

Apache Kafka without an authorizer cannot be closed for writes: where it is the source, a planned
promotion must find that out and say so before it touches anything (`test_closing` has those with
one). A lost source needs no fence.
"""

from pathlib import Path

import pytest

from tests.interop.programs import active_site, run_program
from tests.interop.sites import (
    RunningPair,
    append_batches,
    commit,
    committed,
    create_topic,
    end_of,
    read_committed,
    write,
    write_transactions,
)
from tests.mirror.daemon import run_mirror, wait_until
from wire.record_batch import Record, build_batch

pytestmark = pytest.mark.matrix(subject="Failover and audit between kinds of clusters")


def test_a_planned_promotion_closes_the_source_or_says_that_it_cannot(
    sites: RunningPair, tmp_path: Path
) -> None:
    create_topic(sites.dc1, "planned", 2)
    write(sites.dc1, "planned", 0, 500)
    commit(sites.dc1, "planners", "planned", 100)
    configuration = sites.configure(tmp_path, "planned")
    with run_mirror(configuration) as mirror:
        mirror.wait_state("planned", "streaming")
        ended = run_program("failover.cli", "promote", "dc2", str(configuration))
        said = ended.stdout + ended.stderr
        if sites.pair.has_apache_source:
            assert ended.returncode == 2, said
            assert (
                "dc1 cannot be closed for writes: it has no write fence, and no authorizer" in said
            )
            assert active_site(configuration) == "dc1"
            write(sites.dc1, "planned", 500, 10)
            mirror.wait_mirrored("planned", end_of(sites.dc1, "planned"))
        else:
            assert ended.returncode == 0, said
            assert active_site(configuration) == "dc2"
            assert committed(sites.dc2, "planners", "planned") == 100
            write(sites.dc2, "planned", 500, 10)


def test_a_promotion_after_the_source_was_lost_takes_place(
    sites: RunningPair, tmp_path: Path
) -> None:
    create_topic(sites.dc1, "lost")
    write(sites.dc1, "lost", 0, 500)
    commit(sites.dc1, "losers", "lost", 123)
    configuration = sites.configure(tmp_path, "lost")
    with run_mirror(configuration) as mirror:
        mirror.wait_mirrored("lost", 500)
        wait_until("123", lambda: committed(sites.dc2, "losers", "lost") == 123)
        sites.dc1.kill()
        try:
            ended = run_program(
                "failover.cli", "promote", "dc2", "--source-lost", str(configuration)
            )
            assert ended.returncode == 0, ended.stdout + ended.stderr
            assert active_site(configuration) == "dc2"
            assert committed(sites.dc2, "losers", "lost") == 123
            write(sites.dc2, "lost", 500, 10)
        finally:
            sites.dc1.start()


def test_the_audit_finds_both_logs_equal_and_a_planted_phantom(
    sites: RunningPair, tmp_path: Path
) -> None:
    create_topic(sites.dc1, "audited")
    write(sites.dc1, "audited", 0, 300)
    write_transactions(sites.dc1, "audited", count=6, each=5)
    configuration = sites.configure(tmp_path, "audited")
    with run_mirror(configuration) as mirror:
        mirror.wait_mirrored("audited", end_of(sites.dc1, "audited"))
        assert mirror.stop() == 0
    assert len(read_committed(sites.dc2, "audited")) == len(read_committed(sites.dc1, "audited"))
    clean = run_program("spark_audit.cli", "run", str(configuration))
    assert clean.returncode == 0, clean.stdout + clean.stderr
    phantom = Record(offset=0, timestamp_ms=1_700_000_000_000, key=b"k", value=b"phantom")
    append_batches(sites.dc2, "audited", [build_batch([phantom])])
    found = run_program("spark_audit.cli", "run", str(configuration))
    assert found.returncode == 1, found.stdout + found.stderr

"""Which rows three brokers have, and that their clients' failures are told."""

from pathlib import Path

import pytest

from tests.bench.measure.ledger import RunFailed
from tests.bench.measure.results import BROKER_CONSUME, BROKER_P99, BROKER_PRODUCE, BROKER_RSS
from tests.bench.rows.clients import RECORD_BYTES, Answers, result_of
from tests.bench.rows.replicated import ReplicatedPlan, all_cells
from tests.interop.peers.child import Child, start_child

PLAN = ReplicatedPlan(codecs=("none", "lz4"), data_bytes=10 * RECORD_BYTES, trickle_s=1, runs=1)


def saying(folder: Path, script: str) -> Child:
    return start_child("produce", ["/bin/sh", "-c", script], log=folder / "said.log")


def test_every_row_says_how_many_brokers_and_replicas_there_are() -> None:
    rows = all_cells(PLAN)
    assert {bench for _, bench in rows} == {
        BROKER_PRODUCE,
        BROKER_CONSUME,
        BROKER_RSS,
        BROKER_P99,
    }
    assert all("3 brokers, rf 3" in workload for workload, _ in rows)
    assert len(rows) == len(set(rows)) == 2 * 3 + 2 * 2 + 1
    assert PLAN.records == 10


def test_a_clients_figures_are_the_last_line_it_says(tmp_path: Path) -> None:
    child = saying(tmp_path, """echo "a warning"; echo '{"seconds": 1.5}'""")
    assert result_of(child) == {"seconds": 1.5}


def test_a_client_that_fails_is_told_in_its_own_words(tmp_path: Path) -> None:
    child = saying(tmp_path, "echo 'no leader' >&2; exit 1")
    with pytest.raises(RunFailed, match="produce: no leader"):
        result_of(child)


def test_a_record_counts_from_when_it_was_due() -> None:
    answers = Answers()
    answers.to(0.0)(None, None)  # type: ignore[arg-type] # the message is not looked at
    assert len(answers.latencies_ms) == 1
    assert answers.latencies_ms[0] > 0
    assert answers.errors == []

"""The part `broker` when nothing can be measured: reasons, and no fault of its own."""

from dataclasses import replace
from pathlib import Path

from tests.bench.brokers import QUICK, BrokerPlan, all_cells, run_brokers
from tests.bench.ledger import Ledger
from tests.bench.results import APACHE, OURS, Place
from tests.bench.rounds import Rounds
from tests.bench.workloads import MIB

PLAN = BrokerPlan(workloads=[replace(QUICK[0], data_bytes=MIB)], rates=(), rounds=Rounds(runs=2))


def test_a_round_that_begins_too_late_leaves_a_reason_in_every_row(tmp_path: Path) -> None:
    ledger = Ledger(ends_at=0.0)
    run_brokers(tmp_path / "broker", PLAN, ledger)
    assert ledger.measured == []
    assert {each.place for each in ledger.not_run} == {
        Place(bench=bench, workload=workload, system=system)
        for workload, bench in all_cells(PLAN)
        for system in (OURS, APACHE)
    }
    assert {each.reason for each in ledger.not_run} == {
        "the time that this benchmark may take was over before its turn"
    }

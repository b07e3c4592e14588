"""The part `broker` when there is nothing to measure: reasons, and no fault of its own."""

from dataclasses import replace
from pathlib import Path

from tests.bench.measure.ledger import Ledger
from tests.bench.measure.results import APACHE, OURS, RowId
from tests.bench.measure.workloads import MIB
from tests.bench.rows.brokers import QUICK, BrokerPlan, all_cells, run_brokers

PLAN = BrokerPlan(workloads=[replace(QUICK[0], data_bytes=MIB)], rates=(), runs=2)


def test_a_round_that_begins_too_late_leaves_a_reason_in_every_row(tmp_path: Path) -> None:
    ledger = Ledger(ends_at=0.0)
    run_brokers(tmp_path / "broker", PLAN, ledger)
    assert ledger.measured == []
    assert {each.row for each in ledger.missed} == {
        RowId(bench=bench, workload=workload, system=system)
        for workload, bench in all_cells(PLAN)
        for system in (OURS, APACHE)
    }
    assert {each.reason for each in ledger.missed} == {
        "the time of this part was over before its turn"
    }

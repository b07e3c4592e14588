"""Which rows the audit has, and which days its increment is measured on."""

from dataclasses import dataclass, replace
from pathlib import Path
from zlib import crc32

import pytest

from spark_audit.evidence.links import REREAD_OFFSETS, Turns
from tests.bench.measure.ledger import Ledger, RunFailed
from tests.bench.measure.results import AUDIT_CPU, CONNECTOR, OURS, READER
from tests.bench.rows.auditing import (
    FULL,
    INCREMENT,
    SMALL_TOPIC,
    AuditPlan,
    Turned,
    audit_cells,
    growth_cells,
)
from tests.bench.stage.audited import Auditor, Cost

PLAN = AuditPlan(workloads=FULL, increment=INCREMENT, runs=1)


@dataclass(slots=True)
class Priced(Auditor):
    """Takes what it is told to."""

    def start(self) -> None:
        """Start nothing."""

    def compare(self, topic: str, timeout_s: float) -> Cost:
        """Return the next price."""
        del timeout_s
        cpu_s = PRICES[topic].pop(0)
        return Cost(cpu_s=cpu_s, seconds=1, reader_bytes=7)


PRICES = {SMALL_TOPIC: [9.0, 0.5, 0.7, 0.6], "large": [3.6], "little": [0.75]}


def test_a_topics_own_price_is_what_comes_on_top_of_the_small_ones_median(tmp_path: Path) -> None:
    turned = Turned(auditor=Priced(command=(), folder=tmp_path, reader="python"), ledger=Ledger())
    turned.warm_up()
    assert turned.start_cpu_s == 9.0
    own, most = turned.behind_the_fixed_price("large")
    assert (round(own, 6), most) == (3.0, 7)
    with pytest.raises(RunFailed, match=r"the fixed price varies by 0\.20"):
        turned.behind_the_fixed_price("little")


def test_every_workload_has_a_row_of_ours_of_the_connector_and_of_the_limit() -> None:
    rows = audit_cells(PLAN)
    assert set(rows) == {OURS, CONNECTOR, READER}
    for of_system in rows.values():
        assert {one.name for one in FULL} <= {workload for workload, _ in of_system}
    assert {bench for _, bench in growth_cells(PLAN)[READER]} == {AUDIT_CPU}
    assert len(growth_cells(PLAN)[OURS]) == 2 * len(PLAN.grown_bytes)


def test_a_part_of_the_log_has_its_turn_on_the_day_of_the_increment() -> None:
    day = INCREMENT.day("night-0")
    turns = Turns(since=day - 1, tonight=day, days=90)
    parts = range(INCREMENT.workload.records // REREAD_OFFSETS)
    assert sum(turns.have_come(part + crc32(b"night-0")) for part in parts) == 1
    assert INCREMENT.new.records * 99 < INCREMENT.workload.records
    assert replace(INCREMENT, workload=INCREMENT.new).name != INCREMENT.name

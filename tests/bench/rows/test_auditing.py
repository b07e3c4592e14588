"""Which rows the audit has, and which days its increment is measured on."""

from dataclasses import dataclass, replace
from pathlib import Path
from zlib import crc32

import pytest

from spark_audit.compare.settling import MOST_WINDOW_RECORDS
from spark_audit.evidence.links import NightNumbers
from tests.bench.measure.ledger import Ledger, RunFailed
from tests.bench.measure.results import AUDIT_CPU, AUDIT_RSS, CONNECTOR, OURS, READER
from tests.bench.rows.auditing import (
    DIFFERING,
    FAR,
    FULL,
    INCREMENT,
    SMALL_TOPIC,
    AuditPlan,
    Turned,
    audit_cells,
    growth_cells,
)
from tests.bench.rows.far_logs import far_cells
from tests.bench.stage.audited import DIFFERENT, DONE, Auditor, Cost

PLAN = AuditPlan(workloads=FULL, increment=INCREMENT, runs=1)


@dataclass(slots=True)
class Priced(Auditor):
    """Takes what it is told to."""

    def start(self) -> None:
        """Start nothing."""

    def compare(self, topic: str, timeout_s: float, answer: str = DONE) -> Cost:
        """Return the next price."""
        del timeout_s, answer
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


def test_what_differs_has_rows_of_ours_alone_with_the_memory_of_a_worker() -> None:
    rows = growth_cells(replace(PLAN, differing=DIFFERING))
    differing = {one.name for one in DIFFERING}
    assert {(name, AUDIT_RSS) for name in differing} <= set(rows[OURS])
    assert not differing & {name for name, _ in rows[READER]}
    compared = [one for one in DIFFERING if one.answer == DIFFERENT]
    assert all(one.workload.records < MOST_WINDOW_RECORDS for one in compared), "one by one"


def test_no_part_of_the_log_has_its_turn_in_the_night_of_the_increment_and_one_in_the_next() -> (
    None
):
    day = INCREMENT.day("night-0")
    shift = crc32(b"night-0")
    for night, parts in ((day, 0), (day + 1, 1)):
        turns = NightNumbers(since=night - 1, tonight=night, days=90)
        assert sum(turns.have_come(part + shift) for part in range(INCREMENT.parts)) == parts
    assert INCREMENT.new.records * 99 < INCREMENT.workload.records
    assert replace(INCREMENT, workload=INCREMENT.new).name != INCREMENT.name


def test_each_workload_that_is_read_from_afar_is_read_nearby_too() -> None:
    cells = far_cells(FAR)
    assert len(cells) == 2 * len(FAR) == len(set(cells))
    assert [name.rpartition(", ")[2] for name, _ in cells] == ["near", "80 ms away"] * len(FAR)
    assert set(cells) <= set(audit_cells(replace(PLAN, far=FAR))[OURS])

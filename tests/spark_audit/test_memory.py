"""A worker's memory does not grow with the logs, nor with what differs between them.

Executors of 1 GiB are to compare logs of 20 GiB and any difference. Here both are a two-thousandth
of that, and so is what a worker looks at one by one.
"""

import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pytest

from spark_audit import flow_audit
from spark_audit.compare import settling
from spark_audit.compare.key_ends import KeyEnds
from spark_audit.compare.looks import LONG_RECORDS
from spark_audit.compare.settling import Differences
from spark_audit.flow_audit import audit_flow
from spark_audit.no_pandas import forgo_pandas
from spark_audit.scan.scan_plan import ScanTask
from tests.spark_audit.audits import planner_of
from tests.spark_audit.logs import MemoryReader, Pair, snapshot_of

SCALE = 2_000
WORKER_BYTES = (1 << 30) // SCALE
LOG_BYTES = (20 << 30) // SCALE
ONE_BY_ONE = 2_000
"""Records of a window that are compared one by one: a few ranges, which are as long as ever."""
EACH = 16
VALUE = "v" * 1_000
BATCHES = LOG_BYTES // (EACH * 1_024) // 2 * 2


@dataclass(slots=True)
class Weighed:
    """Reads logs in memory, and weighs what each call takes beside them."""

    reader: MemoryReader
    most: int = 0

    def scan(self, tasks: Sequence[ScanTask]) -> pa.Table:
        return self._weigh(lambda: self.reader.scan(tasks))

    def settle(self, questions: Sequence[Differences | KeyEnds]) -> pa.Table:
        return self._weigh(lambda: self.reader.settle(questions))

    def _weigh(self, work: Callable[[], pa.Table]) -> pa.Table:
        tracemalloc.start()
        try:
            table = work()
            self.most = max(self.most, tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
        return table


def contents(batch: int, mark: str = "") -> list[str]:
    return [f"{batch * EACH + place}:{mark}{VALUE}" for place in range(EACH)]


def retention_ahead(pair: Pair) -> None:
    for batch in range(BATCHES):
        pair.mirror(*contents(batch))
    half = len(pair.target.batches) // 2
    pair.target.start = pair.target.batches[half - 1][0]
    del pair.target.batches[:half]


def all_altered(pair: Pair) -> None:
    for batch in range(BATCHES):
        pair.source.append(*contents(batch))
        pair.target.append(*contents(batch, "altered"))


def every_other_lost(pair: Pair) -> None:
    for batch in range(BATCHES):
        pair.source.append(*contents(batch))
        pair.target.append(*contents(batch)[::2])


@pytest.mark.parametrize(
    ("differ", "column"),
    [(retention_ahead, "explained"), (all_altered, "altered"), (every_other_lost, "altered")],
    ids=["retention ahead", "all altered", "every other lost"],
)
def test_a_worker_of_a_gib_compares_20_gib_and_any_difference(
    differ: Callable[[Pair], None], column: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flow_audit, "LONG_RECORDS", ONE_BY_ONE)
    monkeypatch.setattr(settling, "MOST_WINDOW_RECORDS", ONE_BY_ONE)
    monkeypatch.setattr(settling, "MOST_UNMATCHED", settling.MOST_UNMATCHED // SCALE)
    forgo_pandas()  # or its import would be weighed
    pair = Pair()
    differ(pair)
    pairs = {("orders", 0): pair}
    snapshot = snapshot_of(pairs)
    weighed = Weighed(MemoryReader(pairs))
    [row] = audit_flow(weighed, snapshot, planner_of(snapshot)).summary
    assert row[column] >= BATCHES * EACH // 2
    assert 0 < weighed.most < WORKER_BYTES


def test_retention_ahead_by_900_000_small_records_takes_a_worker_less_than_300_mib(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All at a hundredth of that; one by one these records would take three times as much."""
    monkeypatch.setattr(flow_audit, "LONG_RECORDS", LONG_RECORDS // 100)
    forgo_pandas()
    pair = Pair()
    for batch in range(12_000 // EACH):
        pair.mirror(*(f"{batch * EACH + place:>60}" for place in range(EACH)))
    gone = 9_000 // EACH
    pair.target.start = pair.target.batches[gone - 1][0]
    del pair.target.batches[:gone]
    pairs = {("orders", 0): pair}
    snapshot = snapshot_of(pairs)
    weighed = Weighed(MemoryReader(pairs))
    [row] = audit_flow(weighed, snapshot, planner_of(snapshot)).summary
    assert row["explained"] == gone * EACH
    assert 0 < weighed.most < (300 << 20) // 100

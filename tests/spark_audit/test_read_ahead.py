"""Where both directions are audited, one night reads each log once."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from spark_audit.compare.key_ends import KeyEnds
from spark_audit.compare.settling import Differences
from spark_audit.flow_audit import audit_flow, first_tasks
from spark_audit.read_ahead import ReadAhead
from spark_audit.scan.scan_plan import ScanTask
from tests.spark_audit.audits import planner_of
from tests.spark_audit.logs import MemoryReader, Pair, snapshot_of

PAIRS = {("orders", 0): Pair()}
for _ in range(3):
    PAIRS["orders", 0].mirror("a", "b")


@dataclass(slots=True)
class Counted:
    """Reads logs in memory, and keeps what was asked for."""

    reader: MemoryReader = field(default_factory=lambda: MemoryReader(PAIRS))
    asked: list[list[ScanTask]] = field(default_factory=list)

    def scan(self, tasks: Sequence[ScanTask]) -> pa.Table:
        self.asked.append(list(tasks))
        return self.reader.scan(tasks)

    def settle(self, questions: Sequence[Differences | KeyEnds]) -> pa.Table:
        return self.reader.settle(questions)


def test_the_second_direction_reads_no_log_again() -> None:
    forth = snapshot_of(PAIRS)
    back = replace(forth, flow="dc2->dc1", source="dc2", target="dc1")
    counted = Counted()
    plans = [planner_of(snapshot) for snapshot in (forth, back)]
    reader = ReadAhead(counted, [first_tasks(one) for one in plans])
    for snapshot, planner in zip((forth, back), plans, strict=True):
        [row] = audit_flow(reader, snapshot, planner).summary
        assert (row["source_records"], row["target_records"]) == (6, 6)
    [asked] = counted.asked
    assert len(asked) == 2, "one for the log of each site"
    assert all(len(task.also) == 1 for task in asked)


def test_what_is_asked_for_a_second_time_is_read_again() -> None:
    counted = Counted()
    planner = planner_of(snapshot_of(PAIRS))
    reader = ReadAhead(counted, [first_tasks(planner)])
    first, second = (reader.scan(first_tasks(planner)) for _ in range(2))
    assert first.equals(second)
    assert len(counted.asked) == 2

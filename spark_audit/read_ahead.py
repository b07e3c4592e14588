"""Reads the logs of all flows before the first is audited: each log once, in one job."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from spark_audit.compare.key_ends import KeyEnds
from spark_audit.compare.settling import Differences
from spark_audit.flow_audit import LogReader
from spark_audit.scan.scan_plan import ScanTask, read_once


class ReadAhead:
    """See `flow_audit.Reader`; what was read ahead is not read again."""

    def __init__(self, reader: LogReader, flows: Sequence[Sequence[ScanTask]]) -> None:
        """Read the tasks of these flows, each the first that its audit asks for."""
        self._reader = reader
        table = reader.scan(read_once(task for tasks in flows for task in tasks))
        self._ahead = [
            (list(tasks), table.filter(pc.equal(table["flow"], tasks[0].log.flow)))
            for tasks in flows
            if tasks
        ]

    def scan(self, tasks: Sequence[ScanTask]) -> pa.Table:
        """Return the rows of these tasks."""
        for number, (ahead, table) in enumerate(self._ahead):
            if ahead == list(tasks):
                del self._ahead[number]
                return table
        return self._reader.scan(tasks)

    def settle(self, questions: Sequence[Differences | KeyEnds]) -> pa.Table:
        """Return the judgements of these partitions."""
        return self._reader.settle(questions)

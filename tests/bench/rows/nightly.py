"""What a night's increment costs beside a full audit of the same logs, by the data alone.

    full     an audit that reads both logs
    tonight  1 % is new on both sides: each site's digest, which reads that and what has its turn of
             the rest, and an audit that takes both sites' evidence

All of it runs in this process, without Spark, whose start would be a hundred times what is to be
measured. Evidence goes through Parquet as it does there. What the same steps take for a small topic
is left out.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from time import process_time
from typing import Final
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from runtime.configuration.config import load
from spark_audit.compare.key_ends import KeyEnds
from spark_audit.compare.settling import Differences
from spark_audit.evidence.links import REREAD_OFFSETS
from spark_audit.evidence.rows import Night, nights_of, table_of
from spark_audit.result.verdict import Answer
from spark_audit.run import run_audit
from spark_audit.scan.scan import scan
from spark_audit.scan.scan_plan import ScanTask, each_of, read_together
from spark_audit.scan.scan_rows import ARROW_SCAN, arrow_batches
from spark_audit.site_digest import DAY_MS, take_night
from tests.bench.measure.ledger import RunFailed
from tests.bench.measure.workloads import Workload, size

NEW_SHARE: Final = 0.01
NIGHTS: Final = 90
"""`audit.reread_nights` as it is by itself."""
SITES: Final = ("dc1", "dc2")


@dataclass(frozen=True, slots=True, kw_only=True)
class Increment:
    """One partition of a log, and 1 % more."""

    workload: Workload

    @property
    def name(self) -> str:
        """Return how tables call it."""
        one = self.workload
        return f"{size(one.record_bytes)}, 1 % of {one.records / 1e6:.1f} million records new"

    @property
    def new(self) -> Workload:
        """Return what is written on top."""
        return replace(self.workload, data_bytes=int(NEW_SHARE * self.workload.data_bytes))

    def day(self, topic: str) -> int:
        """Return a day, since the epoch, on which a part of the log has its turn.

        Of a log of this size there is a day with one part, or none; of one with `NIGHTS` parts
        every day has one.
        """
        parts = self.workload.records // REREAD_OFFSETS
        shift = crc32(topic.encode())
        return next(day for day in range(20_000, 20_090) if (day - shift) % NIGHTS < parts)


@dataclass(frozen=True, slots=True)
class InProcess:
    """Reads logs as Spark's workers do, in this process; see `flow_audit.Reader`."""

    spark: object

    def scan(self, tasks: Sequence[ScanTask]) -> pa.Table:
        """Return the rows of these tasks."""
        batches = [
            batch
            for some in read_together(tasks)
            for task, rows in zip(each_of(some), scan(some), strict=True)
            for batch in arrow_batches(task.log, rows)
        ]
        return pa.Table.from_batches(batches, schema=ARROW_SCAN)

    def settle(self, questions: Sequence[Differences | KeyEnds]) -> pa.Table:
        """Raise RunFailed: both logs are equal."""
        raise RunFailed(f"{questions[0].topic} differs, which was written alike")


@dataclass(slots=True)
class Memory:
    """Evidence as files of Parquet, by place."""

    files: dict[str, list[bytes]] = field(default_factory=dict)

    def load(self, _: object, path: str) -> list[Night]:
        """Return what is kept at a place."""
        tables = [pq.read_table(BytesIO(file)) for file in self.files.get(path, ())]
        return nights_of(pa.concat_tables(tables), path) if tables else []

    def save(self, _: object, path: str, night: Night, *, is_anew: bool) -> None:
        """Add a night."""
        assert not is_anew, "no night is taken anew here"
        file = BytesIO()
        pq.write_table(table_of(night), file)
        self.files.setdefault(path, []).append(file.getvalue())


@contextmanager
def _without_spark(day: int) -> Iterator[None]:
    """Run audits and digests in this process, on that day and, for digests, the one before."""
    memory = Memory()
    nights: dict[str, int] = {}

    @contextmanager
    def no_session(**_: object) -> Iterator[None]:
        yield None

    with pytest.MonkeyPatch.context() as patch:
        for program in ("run", "site_digest"):
            patch.setattr(f"spark_audit.{program}.open_session", no_session)
            patch.setattr(f"spark_audit.{program}.SparkReader", InProcess)
            patch.setattr(f"spark_audit.{program}.load", memory.load)
        patch.setattr("spark_audit.site_digest.save", memory.save)

        def of_day() -> int:
            nights["taken"] = nights.get("taken", 0) + 1
            return (day - 1 if nights["taken"] <= len(SITES) else day) * DAY_MS

        patch.setattr("spark_audit.site_digest.now_ms", of_day)
        yield


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """CPU-seconds."""

    full: float
    tonight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Growing:
    """A topic that both clusters have."""

    topic: str
    file: Path
    """A configuration that moves this topic alone, with a place for the evidence of each site."""
    grow: Callable[[], None]
    """Writes 1 % more."""


def increment_percent(folder: Path, increment: Increment, small: Growing, large: Growing) -> float:
    """Return tonight's cost in percent of a full audit's, by the data alone.

    Raises RunFailed where an audit is not clean.
    """
    fixed, all_of_it = (_costs(folder, increment, one) for one in (small, large))
    return 100 * (all_of_it.tonight - fixed.tonight) / (all_of_it.full - fixed.full)


def _costs(folder: Path, increment: Increment, growing: Growing) -> Costs:
    configuration = load(growing.file)

    def audit(*, reads_all: bool) -> None:
        verdict = run_audit(configuration, [], folder / growing.topic, reads_all=reads_all)
        if verdict.answer is not Answer.CLEAN:
            raise RunFailed(f"{growing.topic}: {verdict.answer.value} {verdict.problem or ''}")

    def digest() -> None:
        for site in SITES:
            report = take_night(configuration, site)
            if report.problems:
                raise RunFailed(report.problems[0])

    with _without_spark(increment.day(growing.topic)):
        digest()
        growing.grow()
        began = process_time()
        digest()
        audit(reads_all=False)
        tonight = process_time() - began
        audit(reads_all=True)
        return Costs(full=process_time() - began - tonight, tonight=tonight)

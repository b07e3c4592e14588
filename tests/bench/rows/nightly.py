"""What a night's increment costs beside a full audit of the same logs, by the data alone.

    full     an audit that reads both logs
    tonight  1 % is new on both sides: each site's digest, which reads that, and an audit that takes
             both sites' evidence
    again    the night after, with nothing new: each site's digest reads again what has its turn

All of it runs in this process, without Spark, whose start would be a hundred times what is to be
measured. Evidence goes through Parquet as it does there. What the same steps take for a small topic
is left out.
"""

from collections.abc import Callable, Iterator
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
from spark_audit.evidence.links import REREAD_OFFSETS
from spark_audit.evidence.rows import Night, table_of
from spark_audit.result.verdict import Answer
from spark_audit.run import run_audit
from spark_audit.site_digest import DAY_MS, take_night
from tests.auditing import without_spark
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

    @property
    def parts(self) -> int:
        """Return how many parts of the log have turns to be read again, each on one day."""
        return self.workload.records // REREAD_OFFSETS

    def day(self, topic: str) -> int:
        """Return a day, since the epoch, on which no part has its turn; the day after has one.

        Of a log with `NIGHTS` parts every day has one.
        """
        shift = crc32(topic.encode())
        return next(day for day in range(20_000, 20_090) if (day + 1 - shift) % NIGHTS == 0)


@dataclass(slots=True)
class Memory:
    """Evidence as files of Parquet, by place."""

    files: dict[str, list[bytes]] = field(default_factory=dict)

    def load(self, _: object, path: str) -> pa.Table | None:
        """Return what is kept at a place."""
        tables = [pq.read_table(BytesIO(file)) for file in self.files.get(path, ())]
        return pa.concat_tables(tables) if tables else None

    def save(self, _: object, path: str, night: Night, *, is_anew: bool) -> None:
        """Add a night."""
        assert not is_anew, "no night is taken anew here"
        file = BytesIO()
        pq.write_table(table_of(night), file)
        self.files.setdefault(path, []).append(file.getvalue())


@contextmanager
def _without_spark(day: int) -> Iterator[None]:
    """Run audits and digests in this process; the digests of both sites on the day before that day,
    on that day, and on the one after.
    """
    memory = Memory()
    nights: dict[str, int] = {}

    with pytest.MonkeyPatch.context() as patch:
        without_spark(patch)
        for program in ("run", "site_digest"):
            patch.setattr(f"spark_audit.{program}.load", memory.load)
        patch.setattr("spark_audit.site_digest.save", memory.save)

        def of_day() -> int:
            taken = nights.get("taken", 0)
            nights["taken"] = taken + 1
            return (day - 1 + taken // len(SITES)) * DAY_MS

        patch.setattr("spark_audit.site_digest.now_ms", of_day)
        yield


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """CPU-seconds."""

    full: float
    tonight: float
    again: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Growing:
    """A topic that both clusters have."""

    topic: str
    file: Path
    """A configuration that moves this topic alone, with a place for the evidence of each site."""
    grow: Callable[[], None]
    """Writes 1 % more."""


def nightly_percents(
    folder: Path, increment: Increment, small: Growing, large: Growing
) -> tuple[float, float]:
    """Return what tonight and what is read again cost in percent of a full audit, by the data.

    Raises RunFailed where an audit is not clean.
    """
    fixed, all_of_it = (_costs(folder, increment, one) for one in (small, large))
    full = all_of_it.full - fixed.full
    tonight, again = all_of_it.tonight - fixed.tonight, all_of_it.again - fixed.again
    return 100 * tonight / full, 100 * again / full


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
        by_tonight = process_time()
        digest()
        by_again = process_time()
        audit(reads_all=True)
        return Costs(
            full=process_time() - by_again,
            tonight=by_tonight - began,
            again=by_again - by_tonight,
        )

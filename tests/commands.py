"""Our commands, run to their end inside this process.

A new process takes a second to import what every command needs, and commands are run hundreds of
times. That they work as processes is shown by daemons, promotions and `tests/bad_input`.
"""

import json
import logging
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path
from subprocess import CompletedProcess
from types import FrameType
from typing import Final, TypeAlias

from jsonschema import Draft202012Validator

import broker.cli
import failover.cli
import mirror.cli
import spark_audit.cli
from docs.generate.commands import PROGRAMS
from docs.generate.output_shapes import schema_of
from docs.generate.outputs import LINES, SHAPES

TIMEOUT_S: Final = 180
AUDIT_TIMEOUT_S: Final = 600

Main: TypeAlias = Callable[[Sequence[str]], int]
"""What a program is: it takes its command line and returns its exit status."""


def run_mirror_command(*words: str | Path) -> "CompletedProcess[str]":
    """Run a command of `mirror`; return what it said, and its exit status."""
    return _run(mirror.cli.main, [*map(str, words)])


def run_broker_command(*words: str | Path) -> "CompletedProcess[str]":
    """Run a command of `broker`; return what it said, and its exit status."""
    return _run(broker.cli.main, [*map(str, words)])


def run_failover_command(*words: str | Path) -> "CompletedProcess[str]":
    """Run a command of `failover`; return what it said, and its exit status."""
    return _run(failover.cli.main, [*map(str, words)])


def run_audit_command(*words: str | Path) -> "CompletedProcess[str]":
    """Run a command of `spark-audit`; return what it said, and its exit status."""
    return _run(spark_audit.cli.main, [*map(str, words)], AUDIT_TIMEOUT_S)


def _run(main: Main, words: list[str], timeout_s: int = TIMEOUT_S) -> "CompletedProcess[str]":
    output, complaint = StringIO(), StringIO()
    with (
        logging_is_its_own(),
        _signals_are_its_own(),
        _ended_in_time(words, timeout_s),
        redirect_stdout(output),
        redirect_stderr(complaint),
    ):
        status = main(words)
    if "--json" in words:
        require_published_shape(main, words, output.getvalue())
    return CompletedProcess(words, status, output.getvalue(), complaint.getvalue())


def require_published_shape(main: Main, words: Sequence[str], printed: str) -> None:
    """Look whether what a command printed with --json is as its published schema says."""
    [program] = [one for one in PROGRAMS if sys.modules[main.__module__].PROGRAM is one]
    name = program.parse(list(words)).command.name
    is_of_lines = name in {"divergence", "status"} and printed.count("}\n{") > 0
    for document in printed.splitlines() if is_of_lines else filter(None, [printed]):
        _published(program.name, name).validate(json.loads(document))


@cache
def _published(program: str, command: str) -> Draft202012Validator:
    """Return what holds documents against a schema, which `tests/docs` looks at itself.

    To check a schema as well takes up to 0.2 s of processor time, a document 0.002 s.
    """
    return Draft202012Validator(schema_of(SHAPES[program].get(command, LINES)))


@contextmanager
def logging_is_its_own() -> Iterator[None]:
    """Let a program set up logging, and have afterwards what was before."""
    loggers = [logging.getLogger(), logging.getLogger("kazoo")]
    before = [(one, one.handlers, one.level) for one in loggers]
    for one in loggers:
        one.handlers = []
    try:
        yield
    finally:
        for one, handlers, level in before:
            one.handlers = handlers
            one.setLevel(level)


@contextmanager
def _signals_are_its_own() -> Iterator[None]:
    """Let a program handle signals, and have afterwards the handlers that were there before."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _ended_in_time(words: Sequence[str], timeout_s: int) -> Iterator[None]:
    def give_up(_: int, __: FrameType | None) -> None:
        raise TimeoutError(f"{words} took longer than {timeout_s} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(timeout_s)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)

"""Interop runs: only when asked for, a row of the matrix for each test, named reasons.

A peer that cannot be had or does not start makes its rows `not run: reason` and the exit status
2; everything else goes on.
"""

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.interop.matrix import (
    DIFFERS,
    FAILED,
    NOT_APPLICABLE,
    NOT_RUN,
    PASSED,
    Peer,
    Row,
    by_subject,
    merged,
    read_rows,
    table,
    write_rows,
)
from tests.interop.peers import (
    KINDS,
    KafkaCluster,
    Kind,
    PeerFailed,
    PeerUnavailable,
    run_kafka,
)
from tests.interop.sites import PAIRS, Pair, Sites, run_sites

HERE: Final = Path(__file__).parent
ROWS: Final = pytest.StashKey[list[Row]]()
NOTHING_TOLD: Final = 2
"""The exit status when a row was not run: it could not be told."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "interop: works with Apache Kafka or foreign clients")
    config.addinivalue_line(
        "markers", "matrix(subject, against=None): the rows of the matrix that these tests fill"
    )
    no_rows: list[Row] = []
    config.stash[ROWS] = no_rows


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    """Leave these tests out unless they are named: they take minutes and fetch jars."""
    is_named = any("interop" in argument for argument in config.invocation_params.args)
    return None if is_named else True


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.interop)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    fault = _peer_fault(call)
    if fault is not None:
        report.outcome = "skipped"
        report.longrepr = (str(item.path), item.location[1] or 0, f"{NOT_RUN}{fault}")
    outcome = _outcome(report, fault)
    row = None if outcome is None else _row(item, outcome)
    if row is not None:
        rows = item.config.stash[ROWS]
        rows[:] = merged(list(rows), [row])
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    rows = session.config.stash[ROWS]
    if not rows:
        return
    write_rows(merged(read_rows(), rows))
    if session.exitstatus == pytest.ExitCode.OK and any(row.was_not_run for row in rows):
        session.exitstatus = NOTHING_TOLD


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    rows = config.stash[ROWS]
    for subject, filled in by_subject(rows).items():
        terminalreporter.section(subject)
        for line in table(filled):
            terminalreporter.line(line)


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: kind.label)
def kafka(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KafkaCluster]:
    """One Apache Kafka broker of each kind, shared by the tests of a module."""
    kind: Kind = request.param
    with run_kafka(tmp_path_factory.mktemp(kind.label), kind) as cluster:
        yield cluster


@pytest.fixture(scope="module", params=PAIRS, ids=str)
def sites(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Sites]:
    """Two clusters of each pair of kinds, and a witness, shared by the tests of a module."""
    pair: Pair = request.param
    with run_sites(tmp_path_factory.mktemp("sites"), pair) as running:
        yield running


def _peer_fault(call: pytest.CallInfo[None]) -> PeerFailed | PeerUnavailable | None:
    fault = None if call.excinfo is None else call.excinfo.value
    while isinstance(fault, BaseExceptionGroup) and len(fault.exceptions) == 1:
        fault = fault.exceptions[0]
    return fault if isinstance(fault, PeerFailed | PeerUnavailable) else None


def _outcome(report: pytest.TestReport, fault: Exception | None) -> str | None:
    """Return the cell of the matrix; None while there is nothing new to say."""
    if fault is not None:
        return NOT_RUN + str(fault).splitlines()[0]
    if report.failed:
        return FAILED
    if hasattr(report, "wasxfail"):
        return DIFFERS + report.wasxfail.removeprefix("reason: ")
    if report.skipped:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        return NOT_APPLICABLE + reason.removeprefix("Skipped: ")
    return PASSED if report.when == "call" else None


def _row(item: pytest.Item, outcome: str) -> Row | None:
    marker = item.get_closest_marker("matrix")
    if marker is None:
        return None
    params = getattr(getattr(item, "callspec", None), "params", {})
    kinds = [str(value) for value in params.values() if isinstance(value, Kind | Peer | Pair)]
    told = dict(item.user_properties).get("against")
    name = getattr(item, "originalname", item.name)
    variants = [value for value in params.values() if isinstance(value, str)]
    return Row(
        subject=marker.kwargs["subject"],
        behaviour=": ".join([name.removeprefix("test_").replace("_", " "), *variants]),
        against=str(told) if told else " + ".join(kinds) or marker.kwargs.get("against", ""),
        outcome=outcome,
    )

"""Interop runs: only when asked for, a row of the matrix for each test, named reasons.

A peer that cannot be had or does not start makes its rows `not run: reason`; everything else goes
on. One that ran and does not come back is a failure. `python -m tests.interop` makes an exit status
of it.
"""

from collections.abc import Generator, Iterator
from pathlib import Path
from time import monotonic
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
    table,
    write_rows,
)
from tests.interop.peers import (
    KINDS,
    KafkaCluster,
    Kind,
    PeerUnavailable,
    run_kafka,
    why_not_run,
)
from tests.interop.selection import is_quick
from tests.interop.sites import PAIRS, Pair, RunningPair, run_sites

HERE: Final = Path(__file__).parent
ROWS: Final = pytest.StashKey[list[Row]]()
STARTED_S: Final = pytest.StashKey[float]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("interop")
    group.addoption("--rows", metavar="FILE", help="write the rows of the matrix there")
    group.addoption("--quick", action="store_true", help="only a selection of every kind of peer")
    group.addoption("--limit-s", type=float, metavar="S", help="begin no test later than that")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "interop: works with Apache Kafka or foreign clients")
    config.addinivalue_line(
        "markers", "matrix(subject, against=None): the rows of the matrix that these tests fill"
    )
    no_rows: list[Row] = []
    config.stash[ROWS] = no_rows
    config.stash[STARTED_S] = monotonic()


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    """Leave these tests out unless they are named: they take minutes and fetch jars."""
    is_named = any("interop" in argument for argument in config.invocation_params.args)
    return None if is_named else True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    ours = [item for item in items if item.path.is_relative_to(HERE)]
    for item in ours:
        item.add_marker(pytest.mark.interop)
    if config.getoption("--quick", default=False):
        left_out = [item for item in ours if not _is_quick(item)]
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=left_out)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    limit_s = item.config.getoption("--limit-s", default=None)
    if limit_s is not None and monotonic() - item.config.stash[STARTED_S] > limit_s:
        raise PeerUnavailable(f"{limit_s:g} s were over")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    fault = why_not_run(None if call.excinfo is None else call.excinfo.value)
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
    file = session.config.getoption("--rows", default=None)
    rows = session.config.stash[ROWS]
    if file is not None:
        write_rows(rows, Path(file))


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
) -> Iterator[RunningPair]:
    """Two clusters of each pair of kinds, and a witness, shared by the tests of a module."""
    pair: Pair = request.param
    with run_sites(tmp_path_factory.mktemp("sites"), pair) as running:
        yield running


def _is_quick(item: pytest.Item) -> bool:
    name = getattr(item, "originalname", item.name)
    return is_quick(item.path.name, name, getattr(getattr(item, "callspec", None), "params", {}))


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

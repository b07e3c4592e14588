"""The order in which files are run, and the ZooKeeper that all share.

Hypothesis is derandomized by default; `tests.properties` has its profiles.

pytest-trio takes a clock only from the arguments of a test. With `usefixtures` the clock is made,
and the test waits for real, so each such test names `autojump_clock` itself.
"""

import fcntl
import gc
import logging
import os
from collections.abc import Generator, Iterator
from logging import StreamHandler
from pathlib import Path
from typing import Any, Final

import pytest
from xdist.scheduler.loadfile import LoadFileScheduling

from tests.clusters import words_of_running
from tests.failover.two_sites import Sites, run_sites
from tests.properties import keep_nothing, register_profiles, seed_by_name
from tests.scheduling import rank, unit
from tests.zookeeper import end_shared, make_empty, run_witness

NEW_OBJECTS: Final = 10_000
"""After so many the garbage collector looks at them; Python's default is 700."""

BUILD: Final = Path(__file__).parents[1] / "build"
os.environ["XDG_CACHE_HOME"] = str(BUILD / "cache")
"""Archives of Java's classes: kept for the next run of this checkout, and gone with it."""

register_profiles()

gc.disable()
"""Until `pytest_collection_finish`: what is imported and collected stays, and is much to walk."""


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Look at the options before Hypothesis does."""
    keep_nothing(config)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect in one process at a time: the others read the modules that the first has compiled.

    In a fresh clone pytest takes four times as long to rewrite all asserts as to collect the rest.
    """
    BUILD.mkdir(exist_ok=True)
    with (BUILD / "collecting.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return (yield)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files that take long first; test processes take whole files in this order."""
    slow = {item.path for item in items if item.get_closest_marker("integration") is not None}
    items.sort(key=lambda item: rank(item.nodeid, is_in_slow_file=item.path in slow))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Say which examples a property is tried with."""
    seed_by_name(item)


def pytest_collection_finish() -> None:
    """Leave modules and collected tests, which stay, to no garbage collector: it walks them else.

    And have it look less often at what is new, most of which is gone by then. A seventh of the
    processor time of the tests without brokers went there.
    """
    gc.collect()
    gc.freeze()
    gc.enable()
    gc.set_threshold(NEW_OBJECTS)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """Leave nothing running that tests of several modules have used."""
    end_shared()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show with a test that failed what the clusters that run said last."""
    report = yield
    if report.failed:
        report.sections += words_of_running().items()
    return report


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling:
    """Distribute files, but all that share a Spark session to one process."""
    return _ByUnit(config, log)


class _ByUnit(LoadFileScheduling):  # type: ignore[misc] # xdist has no types
    """Asked by xdist which tests belong together."""

    def _split_scope(self, nodeid: str) -> str:
        return unit(nodeid)


LEVELS: Final = {one: one.level for one in (logging.getLogger(), logging.getLogger("kazoo"))}
"""Of the loggers that programs set up."""


@pytest.fixture(autouse=True)
def _logging_of_one_test() -> Iterator[None]:
    """Take back what programs that run inside of this process have set up for their logs.

    The tests behind it would else see lines of a level that they did not ask for.
    """
    yield
    for one, level in LEVELS.items():
        one.setLevel(level)
        for handler in [handler for handler in one.handlers if type(handler) is StreamHandler]:
            one.removeHandler(handler)


@pytest.fixture(scope="session")
def witness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a ZooKeeper in which everybody writes below a path of its own."""
    with run_witness(tmp_path_factory.mktemp("witness")) as address:
        yield address


@pytest.fixture(scope="session")
def shared_sites(witness: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    """Two clusters for most modules; topics, groups and paths in the witness are a test's own.

    What a test kills of them it starts again. A map of the way back that no mirror has written
    would stop the mirrors of other modules: such tests have clusters of their own.
    """
    with run_sites(
        tmp_path_factory.mktemp("shared-sites"), witness, shares_zookeeper=True
    ) as running:
        yield running


@pytest.fixture
def empty_zookeeper(witness: str) -> str:
    """The same without any nodes: not beside a fixture of a module that has some there."""
    make_empty(witness)
    return witness

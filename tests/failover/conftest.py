"""The two clusters that all share; tests have topics and paths of their own."""

from collections.abc import Callable, Iterator

import pytest
import trio

import failover.sites.pair_evidence
from failover.commands import promotion
from tests.failover.promoting import At
from tests.failover.two_sites import Sites, run_sites


@pytest.fixture(scope="module")
def sites(shared_sites: Sites) -> Sites:
    return shared_sites


@pytest.fixture(scope="module")
def own_sites(witness: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    """Two clusters of which no other module closes or mirrors anything."""
    with run_sites(tmp_path_factory.mktemp("sites"), witness, shares_zookeeper=True) as running:
        yield running


@pytest.fixture
def mortal_sites(sites: Sites) -> Iterator[Sites]:
    """The same, and what a test kills of them runs again when it is over."""
    yield sites
    for cluster in (sites.dc1, sites.dc2):
        if not cluster.is_up:
            cluster.start()


@pytest.fixture
def taken_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fake clusters, which make no topics, take evidence; `test_pair_evidence` is about that."""

    async def take(*_: object, **__: object) -> None:
        await trio.lowlevel.checkpoint()

    monkeypatch.setattr(failover.sites.pair_evidence, "write_evidence", take)


@pytest.fixture
def when_step_ends(monkeypatch: pytest.MonkeyPatch) -> At:
    """Have something done as soon as a promotion in this process has ended a step."""

    def install(step: str, act: Callable[[], None]) -> None:
        shown = promotion.show_if_anybody_reads
        is_due = True

        def show(line: str) -> None:
            nonlocal is_due
            shown(line)
            if is_due and line.startswith(f"{step} "):
                is_due = False
                act()

        monkeypatch.setattr(promotion, "show_if_anybody_reads", show)

    return install

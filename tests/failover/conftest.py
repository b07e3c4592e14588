"""Two clusters for each module that wants them; its tests have topics and paths of their own."""

from collections.abc import Iterator

import pytest
import trio

import failover.sites.pair_evidence
from tests.failover.two_sites import Sites, run_sites


@pytest.fixture(scope="module")
def sites(witness: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    with run_sites(tmp_path_factory.mktemp("sites"), witness) as running:
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

"""Two clusters for each module that wants them; its tests have topics and paths of their own."""

from collections.abc import Iterator

import pytest

from tests.failover.two_sites import Sites, run_sites


@pytest.fixture(scope="module")
def sites(witness: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    with run_sites(tmp_path_factory.mktemp("sites"), witness, shares_zookeeper=True) as running:
        yield running

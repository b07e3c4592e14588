"""What is seen of the sites: what they have closed, and what an idle one has not."""

from pathlib import Path
from typing import Any

import pytest

import failover.view.status
from failover.sites.fence import Fence
from failover.view.status import _read_sites
from runtime.configuration.config import load
from tests.doubles.fake_cluster import run_fake_cluster
from tests.failover.two_sites import promotable


async def test_the_open_topics_of_an_idle_site_are_those_that_a_flow_takes_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def read_fence(_: Any) -> Fence:
        return Fence(topics=("o-closed",), allowed_clients=())

    monkeypatch.setattr(failover.view.status, "read_fence", read_fence)
    async with run_fake_cluster() as cluster:
        for name in ("o-closed", "o-new", "another"):
            cluster.create_topic(name, 0)
        [(host, port)] = cluster.bootstrap
        address, file = f"{host}:{port}", tmp_path / "dc.yaml"
        file.write_text(
            promotable(dc1=address, dc2=address, witness="w:1", path="/r", topics="o-.*")
        )
        for active, found in (("dc2", ("o-new",)), ("dc1", ())):
            dc1, _ = await _read_sites(load(file), active)
            assert (dc1.fault, dc1.open_topics) == (None, found)

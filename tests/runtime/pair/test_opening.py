"""Looking at the witness and at both clusters."""

from pathlib import Path
from typing import cast

import pytest
import trio

import runtime.pair.opening
from runtime.config import load
from runtime.pair.evidence import SiteSeen
from runtime.pair.opening import look_at_pair
from runtime.witness import ActiveSite, Pair, WitnessPaths
from runtime.zookeeper import Node, ZooKeeper
from tests.dc_yaml import dc_yaml, flow
from wire.net import Cluster

PATHS = WitnessPaths(root="/kafka-dr")


class LaggingServer:
    """One server of a witness, which hears of the last switch when it asks the leading one."""

    def __init__(self) -> None:
        self.active = ActiveSite(site="dc1", epoch=0)

    async def sync(self) -> None:
        self.active = ActiveSite(site="dc2", epoch=1)

    async def get(self, path: str) -> Node:
        pair = Pair(pair="p", clusters={})
        data = self.active.encode() if path == PATHS.active else pair.encode()
        return Node(data=data, version=0, created_zxid=1, modified_zxid=1, ephemeral_owner=0)

    async def children(self, _: str) -> list[str]:
        return []


async def test_a_server_of_the_witness_that_lags_does_not_seem_an_old_copy(tmp_path: Path) -> None:
    file = tmp_path / "dc.yaml"
    file.write_text(dc_yaml(flow("dc1", "dc2")))
    seen = await look_at_pair(load(file), cast("ZooKeeper", LaggingServer()), {})
    assert seen.active == ActiveSite(site="dc2", epoch=1)


@pytest.mark.parametrize("is_first_start", [True, False])
async def test_patterns_of_other_pairs_are_tried_at_a_first_start_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_first_start: bool
) -> None:
    """They are somebody else's, and one that takes for ever would stop every program."""
    tried: list[bool] = []

    class Server(LaggingServer):
        async def get(self, path: str) -> Node | None:  # type: ignore[override]
            return None if is_first_start else await super().get(path)

    async def look(*_: object, with_rivals: bool) -> SiteSeen:
        await trio.lowlevel.checkpoint()
        tried.append(with_rivals)
        return SiteSeen()

    monkeypatch.setattr(runtime.pair.opening, "look_at_site", look)
    file = tmp_path / "dc.yaml"
    file.write_text(dc_yaml(flow("dc1", "dc2")))
    clusters = {"dc1": cast("Cluster", None)}
    await look_at_pair(load(file), cast("ZooKeeper", Server()), clusters)
    assert tried == [is_first_start]

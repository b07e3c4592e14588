# ruff: noqa: ARG001 - asking for the clock is what makes it jump
"""What a promotion says on both clusters, and how long it waits for one that keeps silent."""

from pathlib import Path
from typing import Any, cast

import pytest
import trio
from trio.testing import MockClock

import failover.sites.pair_evidence
from failover.sites.pair_evidence import BESIDE_S, TIMEOUT_S, PairEvidence
from failover.sites.site import Site, SiteUnclear
from runtime.configuration.config import load
from runtime.coordination.witness import ActiveSite, EvidenceNumber, Pair, WitnessPaths
from runtime.coordination.zookeeper import ZNode, ZooKeeper
from runtime.pair.evidence import Evidence, PairSeen, SiteSeen
from tests.failover.two_sites import promotable
from wire.net import NetworkFault
from wire.net.errors import RequestTimedOut

BOTH = frozenset({"dc1", "dc2"})


class Witness:
    def __init__(self) -> None:
        paths = WitnessPaths(root="/r")
        self.nodes = {
            paths.active: ActiveSite(site="dc1", epoch=0).encode(),
            paths.pair: Pair(pair="p", clusters={}).encode(),
        }

    async def get(self, path: str) -> ZNode | None:
        await trio.lowlevel.checkpoint()
        if path not in self.nodes:
            return None
        return ZNode(
            data=self.nodes[path], version=0, created_zxid=1, modified_zxid=1, ephemeral_owner=0
        )

    async def create(self, path: str, data: bytes, *, make_parents: bool = False) -> None:
        assert make_parents or path == WitnessPaths(root="/r").pair
        await self.set(path, data, version=0)

    async def set(self, path: str, data: bytes, *, version: int) -> None:
        assert version == 0
        await trio.lowlevel.checkpoint()
        self.nodes[path] = data


def evidence(
    folder: Path, patch: pytest.MonkeyPatch, dc1: NetworkFault | float
) -> tuple[PairEvidence, list[str]]:
    """Evidence whose dc1 fails, or takes so many seconds; and where it was written."""
    written: list[str] = []

    async def write(cluster: object, _: Evidence, __: int, **___: object) -> None:
        if cluster == "dc1" and isinstance(dc1, NetworkFault):
            raise dc1
        await trio.sleep(dc1 if cluster == "dc1" and isinstance(dc1, float) else 0.1)
        written.append(str(cluster))

    patch.setattr(failover.sites.pair_evidence, "write_evidence", write)
    file = folder / "dc.yaml"
    file.write_text(promotable("a:1", "b:1", "w:1", "/r", ".*"))
    sites = {name: Site(name=name, cluster=cast("Any", name)) for name in BOTH}
    return PairEvidence(load(file), cast("ZooKeeper", Witness()), sites), written


async def test_a_lost_site_that_swallows_requests_holds_no_switch_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    ours, written = evidence(tmp_path, monkeypatch, 60.0)
    failed = await ours.say_moving("dc2", 1, frozenset({"dc2"}))
    assert failed == {"dc1": f"no answer within {BESIDE_S:g} s"}
    assert written == ["dc2"]
    assert trio.current_time() == BESIDE_S


async def test_a_required_site_is_waited_for_and_its_silence_ends_the_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    ours, written = evidence(tmp_path, monkeypatch, TIMEOUT_S - 0.5)
    assert await ours.say_moving("dc2", 1, BOTH) == {}
    assert sorted(written) == ["dc1", "dc2"]
    ours, _ = evidence(tmp_path, monkeypatch, 60.0)
    with pytest.raises(SiteUnclear, match="dc1 took no evidence within 3 s"):
        await ours.say_moving("dc2", 1, BOTH)
    ours, _ = evidence(tmp_path, monkeypatch, RequestTimedOut("gone"))
    with pytest.raises(RequestTimedOut):
        await ours.say_moving("dc2", 1, BOTH)


async def test_the_witness_holds_the_number_of_evidence_before_any_cluster_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers: list[tuple[int, int]] = []
    witness = Witness()

    async def write(_: object, evidence: Evidence, __: int, **___: object) -> None:
        await trio.lowlevel.checkpoint()
        held = EvidenceNumber.decode(witness.nodes[WitnessPaths(root="/r").evidence_number])
        numbers.append((held.number, evidence.number))

    monkeypatch.setattr(failover.sites.pair_evidence, "write_evidence", write)
    file = tmp_path / "dc.yaml"
    file.write_text(promotable("a:1", "b:1", "w:1", "/r", ".*"))
    sites = {name: Site(name=name, cluster=cast("Any", name)) for name in BOTH}
    ours = PairEvidence(load(file), cast("ZooKeeper", witness), sites)
    await ours.require_writable(BOTH)
    await ours.say_moving("dc2", 1, BOTH)
    await ours.say_active()
    assert numbers == [(1, 1)] * 2 + [(2, 2)] * 2 + [(3, 3)] * 2


async def test_a_witness_that_lacks_the_pair_gets_it_before_evidence_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, written = evidence(tmp_path, monkeypatch, 0.0)
    witness = cast("Witness", ours._zookeeper)
    paths = WitnessPaths(root="/r")
    del witness.nodes[paths.pair]

    async def look(*_: object) -> PairSeen:
        await trio.lowlevel.checkpoint()
        sites = {"dc1": SiteSeen(fault="away"), "dc2": SiteSeen(cluster_id="two")}
        return PairSeen(
            path="/r", initial_active="dc1", active=None, pair=None, journals=(), sites=sites
        )

    monkeypatch.setattr(failover.sites.pair_evidence, "look_at_pair", look)
    await ours.require_writable(frozenset({"dc2"}))
    assert written == ["dc2"]
    assert Pair.decode(witness.nodes[paths.pair]).clusters == {"dc1": "", "dc2": "two"}


async def test_evidence_that_is_required_is_never_left_out_in_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, written = evidence(tmp_path, monkeypatch, 0.0)
    del cast("Witness", ours._zookeeper).nodes[WitnessPaths(root="/r").active]
    with pytest.raises(SiteUnclear, match="dc2 took no evidence: the witness does not name"):
        await ours.say_moving("dc2", 1, frozenset({"dc2"}))
    assert written == []

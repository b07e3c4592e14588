"""Looking at the witness and at both clusters."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
import trio

import runtime.pair.opening
from mirror.flow.pair_watch import told_pair
from runtime.configuration.config import load
from runtime.configuration.name_patterns import NamePattern
from runtime.configuration.topic_sets import TopicSets
from runtime.coordination.witness import ActiveSite, EvidenceNumber, Pair, WitnessPaths
from runtime.coordination.zookeeper import ZNode, ZooKeeper
from runtime.pair.evidence import (
    TOPIC,
    Contradicted,
    Evidence,
    EvidenceUnknown,
    FirstStart,
    PairSeen,
    SiteSeen,
    judge,
)
from runtime.pair.opening import (
    PairContradicted,
    PairUnknown,
    begin_pair,
    look_at_pair,
    look_at_site,
    require_pair,
)
from runtime.pair.rivals import RivalsUnknown
from tests.dc_yaml import dc_yaml, flow
from tests.doubles.fake_cluster import run_fake_cluster
from tests.doubles.memory_nodes import MemoryTree
from tests.with_sets import SETS, having, with_sets
from wire.net import Cluster, open_cluster
from wire.record_batch import Record, build_batch

PATHS = WitnessPaths(root="/kafka-dr")


class LaggingServer:
    """One server of a witness, which hears of the last switch when it asks the leading one."""

    def __init__(self) -> None:
        self.active = ActiveSite(site="dc1", epoch=0)

    async def sync(self) -> None:
        self.active = ActiveSite(site="dc2", epoch=1)

    async def get(self, path: str) -> ZNode:
        data = {
            PATHS.active: self.active.encode(),
            PATHS.pair: Pair(pair="p", clusters={}).encode(),
            PATHS.evidence_number: EvidenceNumber(number=self.active.epoch).encode(),
        }[path]
        return ZNode(data=data, version=0, created_zxid=1, modified_zxid=1, ephemeral_owner=0)

    async def children(self, _: str) -> list[str]:
        return []


async def test_a_server_of_the_witness_that_lags_does_not_seem_an_old_copy(tmp_path: Path) -> None:
    file = tmp_path / "dc.yaml"
    file.write_text(dc_yaml(flow("dc1", "dc2")))
    seen = await look_at_pair(load(file), cast("ZooKeeper", LaggingServer()), {})
    assert (seen.active, seen.number) == (ActiveSite(site="dc2", epoch=1), 1)


@pytest.mark.parametrize("is_first_start", [True, False])
async def test_patterns_of_other_pairs_are_tried_at_a_first_start_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_first_start: bool
) -> None:
    """They are somebody else's, and one that takes for ever would stop every program."""
    tried: list[bool] = []

    class Server(LaggingServer):
        async def get(self, path: str) -> ZNode | None:  # type: ignore[override]
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


@pytest.mark.parametrize(("brokers", "missing"), [(1, 0), (2, 1), (3, 2), (5, 2)])
async def test_replicas_that_the_evidence_could_have_by_now_are_counted(
    tmp_path: Path, brokers: int, missing: int
) -> None:
    file = tmp_path / "dc.yaml"
    file.write_text(dc_yaml(flow("dc1", "dc2")))
    async with (
        run_fake_cluster(brokers) as fake,
        open_cluster(fake.bootstrap, client_id="t") as cluster,
    ):
        assert (await look_at_site(cluster, "dc1", load(file))).missing_replicas == 0
        fake.create_topic(TOPIC, 0)  # with the only replica that it got at a first start
        cluster.forget(TOPIC)
        assert (await look_at_site(cluster, "dc1", load(file))).missing_replicas == missing


async def test_rivals_of_which_nobody_can_tell_keep_a_first_start_from_being_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def find(*_: object) -> Mapping[str, Evidence]:
        await trio.lowlevel.checkpoint()
        raise RivalsUnknown("which topics other pairs move could not be found out")

    monkeypatch.setattr(runtime.pair.opening, "find_rivals", find)
    file = tmp_path / "dc.yaml"
    file.write_text(dc_yaml(flow("dc1", "dc2")))
    async with (
        run_fake_cluster() as fake,
        open_cluster(fake.bootstrap, client_id="t") as cluster,
    ):
        seen = await look_at_site(cluster, "dc1", load(file), with_rivals=True)
    nothing = PairSeen(
        path="/r", initial_active="dc1", active=None, pair=None, journals=(), sites={"dc1": seen}
    )
    judgement = judge(nothing)
    assert isinstance(judgement, EvidenceUnknown)
    assert "dc1: which topics other pairs move could not be found out" in judgement.reason


@pytest.mark.parametrize(
    ("start", "end", "key", "has_lost"),
    [
        (0, 0, None, False),
        (3, 3, None, True),
        (0, 3, None, True),
        (2, 3, b"/other a b", True),
        (0, 1, b"/other a b", False),
    ],
)
async def test_evidence_whose_records_are_gone_is_no_first_start(
    tmp_path: Path, start: int, end: int, key: bytes | None, *, has_lost: bool
) -> None:
    file = tmp_path / "dc.yaml"
    file.write_text(dc_yaml(flow("dc1", "dc2")))
    async with (
        run_fake_cluster() as fake,
        open_cluster(fake.bootstrap, client_id="t") as cluster,
    ):
        log = fake.create_topic(TOPIC, 0).partitions[0]
        log.start, log.end = start, end
        if key is not None:
            log.batches.append(build_batch([Record(0, 0, key, b"x")], base_offset=end - 1))
        seen = await look_at_site(cluster, "dc1", load(file))
    assert seen.has_lost_evidence is has_lost
    judgement = judge(
        PairSeen(
            path="/r",
            initial_active="dc1",
            active=None,
            pair=None,
            journals=(),
            sites={"dc1": seen},
        )
    )
    assert isinstance(judgement, Contradicted if has_lost else FirstStart)


def test_a_check_warns_of_evidence_that_goes_with_one_broker() -> None:
    seen = PairSeen(
        path="/r",
        initial_active="dc1",
        active=ActiveSite(site="dc1", epoch=0),
        pair=None,
        journals=(),
        sites={"dc1": SiteSeen(missing_replicas=2), "dc2": SiteSeen()},
    )
    [warning, _] = told_pair(seen)[0]
    assert warning.startswith(f"warning: {TOPIC} on dc1 has 2 replicas less than it could")


async def test_all_sets_of_topics_begin_with_their_pair(tmp_path: Path) -> None:
    whole, tree = with_sets(tmp_path), MemoryTree()
    zookeeper = cast("ZooKeeper", tree)
    await begin_pair(whole.of_set("payments"), zookeeper, {})
    paths = whole.coordination.paths
    first = ActiveSite(site="dc1", epoch=0)
    for one in (paths, paths.of_set("payments"), paths.of_set("stock")):
        assert ActiveSite.decode(tree.nodes[one.active][0]) == first
        assert tree.nodes[one.pair] == tree.nodes[paths.pair]
    for of_set in whole.by_set().values():
        assert (await require_pair(of_set, zookeeper, {})).active == first


async def test_a_set_that_the_file_has_and_the_witness_has_not_is_no_first_start(
    tmp_path: Path,
) -> None:
    whole, tree = with_sets(tmp_path), MemoryTree()
    zookeeper = cast("ZooKeeper", tree)
    await begin_pair(
        having(whole, TopicSets(named=SETS.named[:1])).of_set("default"), zookeeper, {}
    )
    with pytest.raises(PairUnknown, match="holds nothing of the set of topics stock at"):
        await begin_pair(whole.of_set("stock"), zookeeper, {})
    assert not await tree.exists(whole.of_set("stock").coordination.paths.active)
    assert (await begin_pair(whole.of_set("payments"), zookeeper, {})).active is not None


async def test_a_set_that_the_file_has_not_or_with_other_patterns_is_named(tmp_path: Path) -> None:
    whole, tree = with_sets(tmp_path), MemoryTree()
    zookeeper = cast("ZooKeeper", tree)
    await begin_pair(whole.of_set("default"), zookeeper, {})
    payments, stock = SETS.named
    fewer = having(whole, TopicSets(named=(payments,)))
    for one in (fewer.of_set("default"), fewer.of_set("payments")):
        with pytest.raises(PairContradicted, match=r"the witness has the set of topics stock"):
            await require_pair(one, zookeeper, {})
    with pytest.raises(PairContradicted, match=r"the witness has the set of topics payments"):
        await require_pair(having(whole, TopicSets()), zookeeper, {})
    more = replace(stock, patterns=(*stock.patterns, NamePattern("refunds")))
    other = having(whole, TopicSets(named=(payments, more)))
    said = "stock has begun with stock, and this file gives it refunds, stock: a topic would go"
    for one in other.by_set().values():
        with pytest.raises(PairContradicted, match=said):
            await require_pair(one, zookeeper, {})

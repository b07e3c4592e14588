"""Sets of topics for a pair that has begun: where they begin, and what is in the way."""

from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from failover.adopt import CannotAdopt, _begin
from failover.journal.journal import encode_journal
from failover.journal.journals import read_journals
from failover.journal.steps import PromotionState
from runtime.configuration.config import Configuration
from runtime.configuration.topic_sets import NO_SETS
from runtime.coordination.witness import ActiveSite
from runtime.coordination.zookeeper import NodeExists, ZooKeeper
from runtime.pair.opening import begin_pair, require_pair
from tests.doubles.memory_nodes import MemoryTree
from tests.failover.journals import begun
from tests.with_sets import having, with_sets

MOVED = replace(begun(), state=PromotionState.DONE)


async def begun_pair(folder: Path) -> tuple[Configuration, MemoryTree]:
    """Return a file with sets, and a witness of a pair without, which has moved to dc2."""
    whole, tree = with_sets(folder), MemoryTree()
    await begin_pair(having(whole, NO_SETS), cast("ZooKeeper", tree), {})
    paths = whole.coordination.paths
    await tree.set(paths.active, ActiveSite(site="dc2", epoch=1).encode())
    await tree.create(paths.journal(1), encode_journal(MOVED))
    await tree.create(paths.orders("dc2", "dc1"), b"orders")
    await tree.create(paths.assignment("dc2", "dc1"), b"assignment")
    return whole, tree


async def test_a_set_begins_where_the_default_set_is_with_what_that_knows(tmp_path: Path) -> None:
    whole, tree = await begun_pair(tmp_path)
    zookeeper, payments = cast("ZooKeeper", tree), whole.of_set("payments")
    before = dict(tree.nodes)
    await _begin(payments, zookeeper)
    paths, pair = payments.coordination.paths, whole.coordination.paths
    assert ActiveSite.decode(tree.nodes[paths.active][0]) == ActiveSite(site="dc2", epoch=1)
    assert tree.nodes[paths.pair][0] == tree.nodes[pair.pair][0]
    assert await read_journals(zookeeper, paths) == [MOVED]
    for copied in (paths.orders, paths.assignment):
        name = copied("dc2", "dc1").rpartition("/")[2]
        assert tree.nodes[copied("dc2", "dc1")][0] == name.encode()
    assert {path: tree.nodes[path] for path in before} == before
    assert (
        await require_pair(
            having(whole, replace(whole.sets, named=whole.sets.named[:1])).of_set("payments"),
            zookeeper,
            {},
        )
    ).known_active.site == "dc2"


async def test_what_a_killed_adoption_has_left_is_written_again(tmp_path: Path) -> None:
    whole, tree = await begun_pair(tmp_path)
    paths = whole.of_set("payments").coordination.paths
    await tree.create(paths.orders("dc2", "dc1"), b"older")
    await tree.create(paths.journal(1), b"older")
    await _begin(whole.of_set("payments"), cast("ZooKeeper", tree))
    assert tree.nodes[paths.orders("dc2", "dc1")][0] == b"orders"
    assert tree.nodes[paths.journal(1)][0] == encode_journal(MOVED)


class Vanishing(MemoryTree):
    """Somebody deletes a node as soon as another has found it there."""

    async def create(self, path: str, data: bytes = b"", *, make_parents: bool = True) -> str:
        try:
            return await super().create(path, data, make_parents=make_parents)
        except NodeExists:
            await self.delete(path)
            raise


async def test_no_set_begins_without_a_node_that_somebody_deletes_meanwhile(tmp_path: Path) -> None:
    """A set that began without its assignment would fence no worker that is asleep."""
    whole, tree = await begun_pair(tmp_path)
    paths = whole.of_set("payments").coordination.paths
    left = paths.assignment("dc2", "dc1")
    await tree.create(left, b"older")
    vanishing = Vanishing()
    vanishing.nodes = tree.nodes
    with pytest.raises(CannotAdopt, match=f"{left} has gone meanwhile: look again"):
        await _begin(whole.of_set("payments"), cast("ZooKeeper", vanishing))
    assert not await tree.exists(paths.active)


async def test_no_set_begins_beside_an_unfinished_promotion(tmp_path: Path) -> None:
    whole, tree = await begun_pair(tmp_path)
    unfinished = encode_journal(replace(begun(), epoch=2))
    await tree.create(whole.coordination.paths.journal(2), unfinished)
    with pytest.raises(CannotAdopt, match=r"promotion of dc2 \(epoch 2\) is unfinished: finish it"):
        await _begin(whole.of_set("payments"), cast("ZooKeeper", tree))
    assert not await tree.exists(whole.of_set("payments").coordination.paths.active)


@pytest.mark.parametrize("node", ["worker", "workers"])
async def test_no_set_begins_while_somebody_runs_a_flow_of_the_pair(
    tmp_path: Path, node: str
) -> None:
    whole, tree = await begun_pair(tmp_path)
    paths = whole.coordination.paths
    where = paths.worker("dc1", "dc2") if node == "worker" else f"{paths.workers('dc1', 'dc2')}/1-1"
    await tree.create(where, b"")
    with pytest.raises(CannotAdopt, match="somebody runs the flow dc1->dc2: stop all `mirror run`"):
        await _begin(whole.of_set("payments"), cast("ZooKeeper", tree))


async def test_a_set_is_begun_once(tmp_path: Path) -> None:
    whole, tree = await begun_pair(tmp_path)
    await _begin(whole.of_set("payments"), cast("ZooKeeper", tree))
    with pytest.raises(CannotAdopt, match="the witness has changed meanwhile"):
        await _begin(whole.of_set("payments"), cast("ZooKeeper", tree))

"""A worker's node goes with its engine, and a node of the witness that makes no sense is heeded."""

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import trio

from mirror.flow.membership import Membership, Nodes
from mirror.flow.run_decision import Role
from mirror.flow.runner import FlowRunner
from mirror.report.status import faults_by_part
from runtime.configuration.running_flow import describe_running
from runtime.coordination.witness import ActiveSite, FlowCommand, WitnessPaths
from runtime.coordination.zookeeper import NoNode, SessionState, ZNode, ZooKeeper
from runtime.coordination.zookeeper_faults import ZooKeeperUnreachable
from runtime.pair.opening import PairContradicted
from runtime.process.tasks import background_tasks
from tests.mirror.building import INFO, runner_in

STOP = FlowCommand(epoch=1, run=False)
WRONG = b"{"


class Witness:
    """Nodes in memory; loses the connection, and not the session, as often as it is told."""

    def __init__(self) -> None:
        self.state = SessionState.CONNECTED
        self.session_id = 7
        self.nodes: dict[str, bytes] = {}
        self.losses = 0

    async def delete(self, path: str) -> None:
        if self.losses:
            self.losses -= 1
            raise ZooKeeperUnreachable(path)
        if self.nodes.pop(path, None) is None:
            raise NoNode(path)

    async def children(self, path: str) -> list[str]:
        return [one.removeprefix(f"{path}/") for one in self.nodes if one.startswith(f"{path}/")]

    async def get(self, path: str) -> ZNode | None:
        return node(self.nodes[path]) if path in self.nodes else None

    async def set(self, path: str, data: bytes) -> None:
        self.nodes[path] = data


def node(data: bytes) -> ZNode:
    return ZNode(data=data, version=0, created_zxid=1, modified_zxid=1, ephemeral_owner=7)


def see(runner: FlowRunner, **data: bytes | None) -> None:
    """Have it read these nodes, in this order."""
    by_name = {
        "active": runner._see_active,
        "command": runner._see_command,
        "orders": runner._see_orders,
    }
    for name, one in data.items():
        nodes = None if one is None else node(one)
        runner._see(cast("ZooKeeper", None), nodes, by_name[name])


async def test_a_worker_with_another_file_than_the_leading_one_says_so(tmp_path: Path) -> None:
    """It gets a share of the work, and does it by its own file: by other names and policies."""
    runner, witness = runner_in(tmp_path), Witness()
    zookeeper: Any = witness
    path = WitnessPaths(root="/kafka-dr").running("dc1", "dc2")
    told: list[str | None] = []
    for flow in (replace(runner.config, reads_uncommitted=True), runner.config):
        witness.nodes[path] = describe_running(flow).encode()
        await runner._compare_file(zookeeper)
        told.append(faults_by_part(runner).get("file"))
    assert told[0] is not None
    assert "isolation: the mirror runs read_uncommitted, the file has read_committed" in told[0]
    assert told[1] is None


async def test_a_node_that_could_not_be_taken_away_is_before_the_stop_is_acknowledged(
    tmp_path: Path,
) -> None:
    runner, witness = runner_in(tmp_path), Witness()
    zookeeper: Any = witness
    paths = WitnessPaths(root="/kafka-dr")
    nodes = Nodes.of(paths, runner.config)
    runner.membership = Membership(zookeeper, nodes, INFO, cast("Any", None))
    witness.nodes[f"{nodes.workers}/{runner.membership.name}"] = b""
    witness.losses = 1
    with pytest.raises(ZooKeeperUnreachable):
        await runner.membership.leave()
    see(runner, active=ActiveSite(site="dc1", epoch=0).encode(), command=STOP.encode(), orders=None)
    async with background_tasks() as tasks:
        assert await runner._act(zookeeper, tasks)
    assert runner.role is Role.PAUSED
    assert await zookeeper.children(nodes.workers) == []
    acknowledged = await zookeeper.get(paths.acknowledged("dc1", "dc2"))
    assert FlowCommand.decode(acknowledged.data) == STOP


async def test_a_worker_of_ours_that_a_restored_witness_has_again_holds_no_stop_up(
    tmp_path: Path,
) -> None:
    """Our session goes on in the old copy, and with it the node of an engine that has ended."""
    runner, witness = runner_in(tmp_path), Witness()
    zookeeper: Any = witness
    paths = WitnessPaths(root="/kafka-dr")
    workers = Nodes.of(paths, runner.config).workers
    runner.membership = Membership(
        zookeeper, Nodes.of(paths, runner.config), INFO, cast("Any", None)
    )
    witness.nodes[f"{workers}/{runner.membership.name}"] = b""
    await runner.membership.leave()
    witness.nodes |= {f"{workers}/7-0": b"", f"{workers}/{runner.membership.name}": b""}
    see(runner, active=ActiveSite(site="dc1", epoch=0).encode(), command=STOP.encode(), orders=None)
    async with background_tasks() as tasks:
        assert await runner._act(zookeeper, tasks)
    assert await zookeeper.children(workers) == []
    acknowledged = await zookeeper.get(paths.acknowledged("dc1", "dc2"))
    assert acknowledged is not None
    assert FlowCommand.decode(acknowledged.data) == STOP


async def test_a_worker_of_another_session_holds_a_stop_up(tmp_path: Path) -> None:
    runner, witness = runner_in(tmp_path), Witness()
    zookeeper: Any = witness
    paths = WitnessPaths(root="/kafka-dr")
    others = f"{Nodes.of(paths, runner.config).workers}/71-1"
    witness.nodes[others] = b""
    see(runner, active=ActiveSite(site="dc1", epoch=0).encode(), command=STOP.encode(), orders=None)
    async with background_tasks() as tasks:
        assert await runner._act(zookeeper, tasks)
    assert [*witness.nodes] == [others]


async def test_a_node_that_makes_no_sense_stops_the_flow_whatever_is_read_after_it(
    tmp_path: Path,
) -> None:
    runner, witness = runner_in(tmp_path), Witness()
    zookeeper: Any = witness
    active = ActiveSite(site="dc1", epoch=0).encode()
    see(runner, active=active, command=WRONG, orders=None)
    async with trio.open_nursery() as nursery:
        await runner._act(zookeeper, nursery)
        nursery.cancel_scope.cancel()
    assert (runner.role, "flow command" in runner.reason) == (Role.PAUSED, True)
    see(runner, command=None)
    assert not runner._garbled


async def test_an_acknowledgement_that_makes_no_sense_is_none(tmp_path: Path) -> None:
    runner, witness = runner_in(tmp_path), Witness()
    witness.nodes[WitnessPaths(root="/kafka-dr").acknowledged("dc1", "dc2")] = WRONG
    assert await runner._read_acknowledged(cast("Any", witness)) is None


async def test_every_session_begins_with_a_look_at_the_clusters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new session may be one of a witness that was restored from an old copy."""
    looks: list[str] = []

    async def begin(*_: object) -> None:
        looks.append("looked")

    async def work(_: object) -> None:
        looks.append("worked")
        if len(looks) == 4:
            raise PairContradicted("the witness is an old copy")

    class Sessions(Witness):
        async def wait_connected(self) -> None:
            await trio.lowlevel.checkpoint()

    runner = runner_in(tmp_path)
    monkeypatch.setattr("mirror.flow.runner.begin_with_evidence", begin)
    monkeypatch.setattr(runner, "_work", work)
    witness = Sessions()
    witness.state = SessionState.LOST  # so that it does not wait in between
    with pytest.raises(PairContradicted):
        await runner._serve(cast("ZooKeeper", witness))
    assert looks == ["looked", "worked"] * 2

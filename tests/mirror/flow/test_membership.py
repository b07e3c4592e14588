"""The assignment is written although somebody else is at its node."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest
import trio
from trio.testing import MockClock

from mirror.flow.flow_state import FlowState
from mirror.flow.membership import Membership, Nodes
from mirror.state.measurements import FlowMeasurements
from mirror.workers.handover import Assignment, WorkerNode
from offset_translation.map_records import MirrorProducer
from offset_translation.map_state import MapState
from runtime.coordination.witness import WorkerInfo
from runtime.coordination.zookeeper import NodeExists, NoNode, ZNode
from tests.mirror.building import CONFIG
from wire.topic_partition import TopicPartition

INFO = WorkerInfo(host="h", pid=1, metrics_url="http://h:1/metrics", started_ms=5)
WRITER = MirrorProducer(producer_id=1, producer_epoch=0)
PLACE = TopicPartition("t", 0)
NODES = Nodes(workers="/workers", assignment="/assignment", making_producer="/making")


class Witness:
    """Nodes in memory, of which the assignment is deleted just before it is first set."""

    session_id = 7

    def __init__(self) -> None:
        self.nodes: dict[str, bytes] = {}
        self.is_quicker = True
        self.make_producer: Callable[[], Awaitable[None]] | None = None
        self.owner = 0
        """The session that has made all nodes."""

    async def children(self, path: str) -> list[str]:
        return [one.removeprefix(f"{path}/") for one in self.nodes if one.startswith(f"{path}/")]

    async def get(self, path: str) -> ZNode | None:
        if path not in self.nodes:
            return None
        data = self.nodes[path]
        return ZNode(
            data=data, version=0, created_zxid=1, modified_zxid=1, ephemeral_owner=self.owner
        )

    async def create(self, path: str, data: bytes, **_: object) -> None:
        if path in self.nodes:
            raise NodeExists(path)
        self.nodes[path] = data

    async def delete(self, path: str) -> None:
        del self.nodes[path]

    async def set(self, path: str, data: bytes, **_: object) -> None:
        if self.is_quicker:
            self.is_quicker = False
            del self.nodes[path]
        if path not in self.nodes:
            raise NoNode(path)
        self.nodes[path] = data

    @asynccontextmanager
    async def watch_children(self, _: str) -> AsyncIterator[trio.MemoryReceiveChannel[None]]:
        sender, changes = trio.open_memory_channel[None](0)
        with sender:
            yield changes


def leading(witness: Witness) -> Membership:
    """Return the only worker of a flow of one partition, which it has not got yet."""
    flow = FlowState(config=CONFIG, measurements=FlowMeasurements("f"))
    flow.share.lead()
    flow.share.see({PLACE})
    engine = SimpleNamespace(
        flow=flow,
        wait_leading=trio.lowlevel.checkpoint,
        discovery=SimpleNamespace(has_looked=True),
        map_log=SimpleNamespace(
            state=MapState(), ensure_producer=witness.make_producer or trio.lowlevel.checkpoint
        ),
        share=SimpleNamespace(confirmed=0),
    )
    member = Membership(cast("Any", witness), NODES, INFO, cast("Any", engine))
    node = WorkerNode(info=INFO, writer=WRITER, confirmed=0)
    witness.nodes[f"{NODES.workers}/{member.name}"] = node.encode()
    witness.nodes[NODES.assignment] = Assignment().encode()
    return member


async def test_an_assignment_whose_node_is_deleted_meanwhile_is_written_anew(
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    witness = Witness()
    member = leading(witness)
    with trio.move_on_after(5):
        await member._lead()
    written = Assignment.decode(witness.nodes[NODES.assignment])
    assert written.owners == {PLACE: member.name}
    assert not witness.is_quicker


async def test_a_worker_whose_node_is_garbage_is_named_and_holds_nobody_up(
    autojump_clock: MockClock,  # noqa: ARG001
    caplog: pytest.LogCaptureFixture,
) -> None:
    witness = Witness()
    member = leading(witness)
    witness.nodes[f"{NODES.workers}/other"] = b"garbage"
    with trio.move_on_after(5):
        await member._lead()
    assert Assignment.decode(witness.nodes[NODES.assignment]).owners == {PLACE: member.name}
    assert caplog.text.count("/workers/other is counted as no worker") == 1


async def test_an_assignment_that_is_garbage_is_named_and_not_written_over(
    autojump_clock: MockClock,  # noqa: ARG001
    caplog: pytest.LogCaptureFixture,
) -> None:
    witness = Witness()
    member = leading(witness)
    witness.nodes[NODES.assignment] = b"garbage"
    with trio.move_on_after(5):
        await member._lead()
    assert witness.nodes[NODES.assignment] == b"garbage"
    assert caplog.text.count("/assignment: workers keep what they have") == 1


async def test_of_the_leaders_of_two_sets_one_alone_makes_the_producer_of_their_map(
    autojump_clock: MockClock,  # noqa: ARG001
) -> None:
    witness, made = Witness(), []

    async def make() -> None:
        assert NODES.making_producer in witness.nodes
        made.append(trio.current_time())
        await trio.sleep(1)

    witness.make_producer = make
    member = leading(witness)
    await witness.create(NODES.making_producer, b"")
    with pytest.raises(NodeExists):
        await member._ensure_producer()
    await witness.delete(NODES.making_producer)
    await member._ensure_producer()
    assert len(made) == 1
    assert NODES.making_producer not in witness.nodes


async def test_a_leader_whose_claim_was_made_without_an_answer_goes_on_with_it() -> None:
    witness = Witness()
    member = leading(witness)
    witness.owner = witness.session_id
    await witness.create(NODES.making_producer, b"")
    await member._ensure_producer()
    assert NODES.making_producer not in witness.nodes

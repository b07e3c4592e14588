"""What a store writes together, told by a witness in memory."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar, cast

import pytest

from failover.flow import FlowControl
from failover.journal import Journal, encode_journal
from failover.lease import Lease
from failover.steps import PromotionKind, PromotionState
from failover.store import Superseded, WitnessStore
from runtime.witness import ActiveSite, FlowCommand, WitnessPaths
from runtime.zookeeper import BadVersion, Check, Create, Node, Operation, SetData, ZooKeeper
from runtime.zookeeper_faults import ZooKeeperUnreachable
from tests.failover.plans import FLOW

T = TypeVar("T")
PATHS = WitnessPaths(root="/r")
OLD = Journal(epoch=1, site="dc2", source="dc1", kind=PromotionKind.PLANNED, started_ms=0)
NEW = Journal(epoch=2, site="dc2", source="dc1", kind=PromotionKind.SOURCE_LOST, started_ms=0)
ENDED = Journal(
    epoch=1,
    site="dc2",
    source="dc1",
    kind=PromotionKind.PLANNED,
    started_ms=0,
    state=PromotionState.ROLLED_BACK,
)

MOVING = ActiveSite(site="dc1", epoch=0, moving_to="dc2")


@dataclass(slots=True)
class Memory:
    """Nodes with their versions; the answer to as many transactions as are told is lost."""

    nodes: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    lost_answers: int = 0

    def version(self, path: str) -> int:
        """The version of a node; -1 without one."""
        return self.nodes.get(path, (b"", -1))[1]

    async def ensure(self, _: str) -> None: ...

    async def get(self, path: str) -> Node | None:
        if path not in self.nodes:
            return None
        data, version = self.nodes[path]
        return Node(data=data, version=version, created_zxid=0, modified_zxid=0, ephemeral_owner=0)

    async def set(self, path: str, data: bytes, *, version: int) -> int:
        assert self.nodes[path][1] == version
        self.nodes[path] = (data, version + 1)
        return version + 1

    async def transaction(self, operations: Sequence[Operation]) -> None:
        for one in operations:
            if isinstance(one, SetData | Check) and one.version not in {-1, self.version(one.path)}:
                raise BadVersion(one.path)
        for one in operations:
            if isinstance(one, SetData | Create):
                self.nodes[one.path] = (one.data, self.version(one.path) + 1)
        if self.lost_answers:
            self.lost_answers -= 1
            raise ZooKeeperUnreachable("lost")


class Certain:
    """A lease that tries again whatever the witness did not answer."""

    async def act(self, work: Callable[[], Awaitable[T]]) -> T:
        while True:
            try:
                return await work()
            except ZooKeeperUnreachable:
                continue


async def taken_over(memory: Memory) -> WitnessStore:
    memory.nodes.setdefault(PATHS.journal(1), (encode_journal(OLD), 4))
    memory.nodes.setdefault(PATHS.active, (MOVING.encode(), 1))
    store = WitnessStore(cast("ZooKeeper", memory), PATHS, cast("Lease", Certain()), 1)
    await store.take_over()
    return store


@pytest.mark.parametrize("lost_answers", [0, 1])
async def test_one_promotion_ends_as_the_other_begins(lost_answers: int) -> None:
    memory = Memory()
    store = await taken_over(memory)
    memory.lost_answers = lost_answers
    successor = await store.replace_by(NEW, ENDED)
    assert memory.nodes == {
        PATHS.journal(1): (encode_journal(ENDED), 6),
        PATHS.journal(2): (encode_journal(NEW), 0),
        PATHS.active: (ActiveSite(site="dc1", epoch=0).encode(), 2),
    }
    await successor.save(NEW)
    assert memory.nodes[PATHS.journal(2)][1] == 1


async def test_neither_is_written_by_who_was_superseded() -> None:
    memory = Memory()
    store = await taken_over(memory)
    memory.nodes[PATHS.journal(1)] = (encode_journal(OLD), 9)
    with pytest.raises(Superseded, match="was written by another controller"):
        await store.replace_by(NEW, ENDED)
    assert PATHS.journal(2) not in memory.nodes
    assert memory.nodes[PATHS.active] == (MOVING.encode(), 1)


def flow_of(memory: Memory) -> FlowControl:
    return FlowControl(cast("ZooKeeper", memory), PATHS, FLOW)


async def test_a_command_of_who_was_superseded_comes_too_late() -> None:
    """What a killed controller had sent may arrive when its successor has gone on."""
    memory = Memory()
    zombie = await taken_over(memory)
    await flow_of(memory).start(1, zombie.claim)
    command = PATHS.command("dc1", "dc2")
    assert FlowCommand.decode(memory.nodes[command][0]) == FlowCommand(epoch=1, run=True)
    successor = await taken_over(memory)
    with pytest.raises(Superseded, match="was written by another controller"):
        await flow_of(memory).stop(1, 1_000, zombie.claim)
    assert FlowCommand.decode(memory.nodes[command][0]) == FlowCommand(epoch=1, run=True)
    await flow_of(memory).start(2, successor.claim)
    assert FlowCommand.decode(memory.nodes[command][0]) == FlowCommand(epoch=2, run=True)

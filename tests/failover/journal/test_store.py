"""What a store writes together, told by a witness in memory."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar, cast

import pytest

from failover.journal.journal import Journal, JournalUnreadable, encode_journal
from failover.journal.journals import read_journals
from failover.journal.lease import Lease
from failover.journal.steps import PromotionKind, PromotionState
from failover.journal.store import Superseded, WitnessStore
from failover.moving.flow import FlowControl
from runtime.coordination.witness import ActiveSite, FlowCommand, WitnessPaths
from runtime.coordination.zookeeper import (
    BadVersion,
    Check,
    Create,
    Delete,
    NodeExists,
    Operation,
    SetData,
    ZNode,
    ZooKeeper,
)
from runtime.coordination.zookeeper_faults import ZooKeeperUnreachable
from tests.failover.journals import full_ends, fullest
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


class Killed(BaseException):
    """The controller's process is no more."""


@dataclass(slots=True)
class Memory:
    """Nodes with their versions; the answer to as many transactions as are told is lost."""

    nodes: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    lost_answers: int = 0
    writes_left: int | None = None
    """So many writes are done before the controller is killed; None for all."""

    def version(self, path: str) -> int:
        """The version of a node; -1 without one."""
        return self.nodes.get(path, (b"", -1))[1]

    def write(self) -> None:
        if self.writes_left is not None:
            if self.writes_left == 0:
                raise Killed
            self.writes_left -= 1

    async def ensure(self, _: str) -> None: ...

    async def children(self, path: str) -> list[str]:
        return [one.removeprefix(f"{path}/") for one in self.nodes if one.startswith(f"{path}/")]

    async def create(self, path: str, data: bytes, **_: bool) -> None:
        self.write()
        if path in self.nodes:
            raise NodeExists(path)
        self.nodes[path] = (data, 0)

    async def get(self, path: str) -> ZNode | None:
        if path not in self.nodes:
            return None
        data, version = self.nodes[path]
        return ZNode(data=data, version=version, created_zxid=0, modified_zxid=0, ephemeral_owner=0)

    async def set(self, path: str, data: bytes, *, version: int) -> int:
        self.write()
        assert self.nodes[path][1] == version
        self.nodes[path] = (data, version + 1)
        return version + 1

    async def transaction(self, operations: Sequence[Operation]) -> None:
        self.write()
        for one in operations:
            if isinstance(one, SetData | Check) and one.version not in {-1, self.version(one.path)}:
                raise BadVersion(one.path)
        for one in operations:
            if isinstance(one, SetData | Create):
                self.nodes[one.path] = (one.data, self.version(one.path) + 1)
            elif isinstance(one, Delete):
                del self.nodes[one.path]
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


LONG = replace(fullest({f"topic-{number}": 1 for number in range(700)}), epoch=1)
RUNNING = replace(LONG, state=PromotionState.RUNNING)
OTHER_ENDS = replace(RUNNING, partitions=full_ends({"other": 700}))
TAKEN_ON = replace(RUNNING, epoch=2)


async def write_long(memory: Memory) -> None:
    """All that a store writes, of journals whose values are long."""
    store = WitnessStore(cast("ZooKeeper", memory), PATHS, cast("Lease", Certain()), 1)
    await store.create(replace(OLD, steps=RUNNING.steps))
    await store.save(RUNNING)
    await store.save(OTHER_ENDS)
    await store.take_over()
    successor = await store.replace_by(TAKEN_ON, replace(ENDED, steps=RUNNING.steps))
    await successor.save_and_switch(TAKEN_ON)
    await successor.save(replace(TAKEN_ON, state=PromotionState.DONE))


async def test_a_controller_killed_at_any_write_leaves_a_whole_journal() -> None:
    versions = [
        [],
        [replace(OLD, steps=RUNNING.steps)],
        [RUNNING],
        [OTHER_ENDS],
        [replace(ENDED, steps=RUNNING.steps), TAKEN_ON],
        [replace(ENDED, steps=RUNNING.steps), replace(TAKEN_ON, state=PromotionState.DONE)],
    ]
    seen: list[list[Journal]] = []
    for writes in range(1_000):
        memory = Memory(writes_left=writes)
        memory.nodes[PATHS.active] = (MOVING.encode(), 1)
        try:
            await write_long(memory)
        except Killed:
            memory.writes_left = None
        found = await read_journals(cast("ZooKeeper", memory), PATHS)
        assert found in versions
        seen += [] if found in seen[-1:] else [found]
        if memory.writes_left:
            break
    assert seen == versions


async def test_a_successor_deletes_the_parts_that_nobody_needs() -> None:
    memory = Memory()
    memory.nodes[PATHS.active] = (MOVING.encode(), 1)
    store = WitnessStore(cast("ZooKeeper", memory), PATHS, cast("Lease", Certain()), 1)
    await store.create(RUNNING)
    needed = set(await memory.children(PATHS.journal_parts(1)))
    await store.save(OTHER_ENDS)
    await store.save(RUNNING)
    assert set(await memory.children(PATHS.journal_parts(1))) > needed
    successor = WitnessStore(cast("ZooKeeper", memory), PATHS, cast("Lease", Certain()), 1)
    assert await successor.take_over() == RUNNING
    assert set(await memory.children(PATHS.journal_parts(1))) == needed
    with pytest.raises(Superseded):
        await store.save(OTHER_ENDS)
    assert await successor.take_over() == RUNNING


async def test_a_journal_that_lacks_a_part_is_unreadable_and_named() -> None:
    memory = Memory()
    store = WitnessStore(cast("ZooKeeper", memory), PATHS, cast("Lease", Certain()), 1)
    await store.create(RUNNING)
    [first, *_] = await memory.children(PATHS.journal_parts(1))
    del memory.nodes[f"{PATHS.journal_parts(1)}/{first}"]
    with pytest.raises(JournalUnreadable, match=f"{PATHS.journal(1)}: the part {first} is missing"):
        await read_journals(cast("ZooKeeper", memory), PATHS)

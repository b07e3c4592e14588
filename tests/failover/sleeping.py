"""A session with the witness, and a clock, of a controller that is stopped and wakes up again."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

import trio

from failover.journal.lease import Lease
from runtime.coordination.map_writers import TO_ADOPT
from runtime.coordination.witness import ActiveSite, Pair
from runtime.coordination.zookeeper import SessionState, ZNode, ZooKeeper, ZooKeeperUnreachable

SESSION_MS = 6_000
OURS = 7
OF_ANOTHER = 8
OFTEN = 5
NOTED = {
    "active": ActiveSite(site="dc1", epoch=0).encode(),
    "pair": Pair(pair="p", clusters={}).encode(),
    "map-writers": TO_ADOPT.encode(),
}


@dataclass(slots=True)
class SleepyWitness:
    """One session: over once `is_over` says so, which is told only to who asks."""

    session_id: int = OURS
    session_timeout_ms: int = SESSION_MS
    state: SessionState = SessionState.CONNECTED
    is_over: bool = False
    now_ms: int = 0
    asked: int = 0
    asked_often: trio.Event = field(default_factory=trio.Event)

    def clock_ms(self) -> int:
        return self.now_ms

    def sleep_through(self) -> None:
        """Let more time pass than the session lasts."""
        self.now_ms += 10 * self.session_timeout_ms

    def lease(self) -> Lease:
        """The lease that goes with the session."""
        return Lease(cast("ZooKeeper", self), self.clock_ms)

    async def sync(self) -> None:
        await trio.lowlevel.checkpoint()
        self.asked += 1
        if self.asked == OFTEN:
            self.asked_often.set()
        if self.is_over:
            self.session_id = OF_ANOTHER
            raise ZooKeeperUnreachable("the session has expired")

    @asynccontextmanager
    async def watch_state(self) -> AsyncIterator[trio.MemoryReceiveChannel[SessionState]]:
        send, receive = trio.open_memory_channel[SessionState](1)
        send.send_nowait(self.state)
        with send, receive:
            yield receive

    @asynccontextmanager
    async def watch_data(self, _: str) -> AsyncIterator[trio.MemoryReceiveChannel[ZNode | None]]:
        send, receive = trio.open_memory_channel[ZNode | None](1)
        send.send_nowait(None)
        with send, receive:
            yield receive

    async def create(self, path: str, *_: object, **__: object) -> str:
        await trio.lowlevel.checkpoint()
        return path

    async def children(self, _: str) -> tuple[str, ...]:
        """No worker tells of itself."""
        await trio.lowlevel.checkpoint()
        return ()

    async def get(self, path: str) -> ZNode | None:
        """dc1 is active, and a mirror has run: its map is to be adopted. Nothing else is noted."""
        await trio.lowlevel.checkpoint()
        data = NOTED.get(path.rpartition("/")[2])
        if data is None:
            return None
        return ZNode(data=data, version=0, created_zxid=0, modified_zxid=0, ephemeral_owner=0)

    async def set(self, *_: object, **__: object) -> int:
        await trio.lowlevel.checkpoint()
        return 0

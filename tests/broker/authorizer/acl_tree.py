"""A ZooKeeper in memory whose entries are followed, and authorizers that go by it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import trio

from broker.authorizer.acl_watch import AclWatch
from broker.authorizer.authorizer import Authorizer, AuthorizerSettings
from broker.zookeeper.acl_store import AclStore
from runtime.coordination.zookeeper import (
    BadVersion,
    NoNode,
    NotEmpty,
    ZooKeeper,
    ZooKeeperUnreachable,
)
from tests.doubles.memory_nodes import MemoryNodes


class AclTree(MemoryNodes):
    """Nodes with children and numbered names; watches are looked after by `trio.Event`s."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers: dict[str, int] = {}
        self._changed = trio.Event()
        self.fails = 0
        """So many reads are not answered."""

    async def ensure(self, path: str) -> None:
        self.nodes.setdefault(path, (b"", 0))

    async def children(self, path: str) -> list[str] | None:
        await trio.lowlevel.checkpoint()
        if self.fails:
            self.fails -= 1
            raise ZooKeeperUnreachable("no answer")
        below = [name for name in self.nodes if name.rpartition("/")[0] == path]
        if path not in self.nodes and not below:
            return None
        return sorted(name.rpartition("/")[2] for name in below)

    async def create(
        self, path: str, data: bytes = b"", *, make_parents: bool = False, sequence: bool = False
    ) -> str:
        await trio.lowlevel.checkpoint()
        if sequence:
            number = self._numbers.get(path, 0)
            self._numbers[path] = number + 1
            path = f"{path}{number:010d}"
        assert sequence or make_parents
        await super().create(path, data, make_parents=True)
        self._tell()
        return path

    async def set(self, path: str, data: bytes, *, version: int = -1) -> int:
        await trio.lowlevel.checkpoint()
        return await super().set(path, data, version=version)

    async def delete(self, path: str, *, version: int = -1) -> None:
        await trio.lowlevel.checkpoint()
        if path not in self.nodes:
            raise NoNode(path)
        if version not in {-1, self.nodes[path][1]}:
            raise BadVersion(path)
        if any(name.startswith(f"{path}/") for name in self.nodes):
            raise NotEmpty(path)
        del self.nodes[path]
        self._tell()

    def _tell(self) -> None:
        changed, self._changed = self._changed, trio.Event()
        changed.set()

    @asynccontextmanager
    async def watch_children(
        self, path: str
    ) -> AsyncIterator[trio.MemoryReceiveChannel[list[str] | None]]:
        send, receive = trio.open_memory_channel[list[str] | None](0)

        async def follow() -> None:
            while True:
                changed = self._changed
                await send.send(await self.children(path))
                await changed.wait()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(follow)
            yield receive
            nursery.cancel_scope.cancel()


def watching(tree: AclTree, *super_users: str, allows_where_no_acl_is: bool = False) -> AclWatch:
    """Return one broker's entries; `load_all` or `run` fills them."""
    settings = AuthorizerSettings(
        super_users=frozenset(super_users), allows_where_no_acl_is=allows_where_no_acl_is
    )
    return AclWatch(AclStore(cast("ZooKeeper", tree)), Authorizer(settings))

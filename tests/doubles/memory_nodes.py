"""Nodes of a ZooKeeper that is always there, in memory."""

from collections.abc import Sequence

from runtime.coordination.zookeeper import BadVersion, Check, Create, NodeExists, NoNode, ZNode


class MemoryNodes:
    """What `ZooKeeper` of `runtime.coordination` does to nodes, without sessions and watches."""

    def __init__(self) -> None:
        self.nodes: dict[str, tuple[bytes, int]] = {}
        self.syncs = 0

    async def sync(self) -> None:
        self.syncs += 1

    async def get(self, path: str) -> ZNode | None:
        if path not in self.nodes:
            return None
        data, version = self.nodes[path]
        return ZNode(data=data, version=version, created_zxid=0, modified_zxid=0, ephemeral_owner=0)

    async def exists(self, path: str) -> bool:
        return path in self.nodes

    async def create(self, path: str, data: bytes = b"", *, make_parents: bool = False) -> str:
        assert make_parents
        if path in self.nodes:
            raise NodeExists(path)
        self.nodes[path] = (data, 0)
        return path

    async def set(self, path: str, data: bytes, *, version: int = -1) -> int:
        if path not in self.nodes:
            raise NoNode(path)
        if version not in {-1, self.nodes[path][1]}:
            raise BadVersion(path)
        self.nodes[path] = (data, self.nodes[path][1] + 1)
        return self.nodes[path][1]

    async def delete(self, path: str, *, version: int = -1) -> None:
        if path not in self.nodes:
            raise NoNode(path)
        if version not in {-1, self.nodes[path][1]}:
            raise BadVersion(path)
        del self.nodes[path]


class MemoryTree(MemoryNodes):
    """The same with children, parents that are made, and transactions."""

    async def children(self, path: str) -> list[str]:
        below = (one for one in self.nodes if one.startswith(f"{path}/"))
        return sorted({one.removeprefix(f"{path}/").split("/")[0] for one in below})

    async def ensure(self, path: str) -> None:
        self.nodes.setdefault(path, (b"", 0))

    async def create(self, path: str, data: bytes = b"", *, make_parents: bool = True) -> str:
        return await super().create(path, data, make_parents=make_parents)

    async def transaction(self, operations: Sequence[Check | Create]) -> None:
        """Do all of it, or nothing."""
        for one in operations:
            if isinstance(one, Create) and one.path in self.nodes:
                raise NodeExists(one.path)
            if isinstance(one, Check) and self.nodes.get(one.path, (b"", -1))[1] != one.version:
                raise BadVersion(one.path)
        for one in operations:
            if isinstance(one, Create):
                self.nodes[one.path] = (one.data, 0)

"""Nodes of a ZooKeeper that is always there, in memory."""

from runtime.coordination.zookeeper import BadVersion, Node, NodeExists, NoNode


class MemoryNodes:
    """What `ZooKeeper` of `runtime.coordination` does to nodes, without sessions and watches."""

    def __init__(self) -> None:
        self.nodes: dict[str, tuple[bytes, int]] = {}
        self.syncs = 0

    async def sync(self) -> None:
        self.syncs += 1

    async def get(self, path: str) -> Node | None:
        if path not in self.nodes:
            return None
        data, version = self.nodes[path]
        return Node(data=data, version=version, created_zxid=0, modified_zxid=0, ephemeral_owner=0)

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

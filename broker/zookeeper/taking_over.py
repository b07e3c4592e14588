"""Gives every node of the cluster to the brokers' login, once; a note says that it is done.

A cluster that ran without a login has nodes that everybody may write. Each node is closed before
its children are listed, so nothing can come in behind the walk. The note is written last: a start
that dies before it begins again, and a restored old copy has none.
"""

import logging
from typing import Final

from broker.zookeeper import tree
from broker.zookeeper.acl_nodes import AclFolder
from broker.zookeeper.at_once import all_of
from runtime.coordination.node_rights import unexpected_rights
from runtime.coordination.zookeeper import NodeExists, NoNode, NotAllowed, ZooKeeper
from runtime.coordination.zookeeper_access import ZooKeeperAccess

_LOG = logging.getLogger(__name__)

OF_SERVER: Final = "zookeeper"
"""What a server keeps below its root. Some of it only the server's own user may change."""
AREAS: Final = frozenset(
    path.split("/")[1]
    for path in (
        *tree.PERSISTENT,
        *(path for folder in AclFolder for path in (folder.value, folder.changes)),
        tree.CONTROLLER,
        tree.CONTROLLER_EPOCH,
        tree.PRODUCER_IDS,
        *("/consumers", "/delegation_token", "/feature", "/migration"),  # Apache Kafka's
    )
)
"""The names below the root that are a cluster's."""
MOST_DEPTH: Final = 16
MOST_NODES: Final = 2_000_000
"""A partition has three nodes, at most six levels below the root."""


class NotOurCluster(RuntimeError):
    """The nodes belong to another login, or are none of a cluster; the message names one."""


async def take_over(zookeeper: ZooKeeper) -> None:
    """Return once every node of the cluster is for our login alone. May be repeated.

    What is not a cluster's and lies beside it, as a witness, stays as it is and is named in the
    log. Raises NotOurCluster and ZooKeeperFault.
    """
    access = zookeeper.access
    assert access.login is not None, "there is somebody to give the nodes to"
    owner = str(access.login.identity)
    if await _noted(zookeeper) == owner:
        return
    changed, level = await _taken(zookeeper, access, ["/"])
    strangers = sorted(set(level) - {f"/{area}" for area in (*AREAS, OF_SERVER)})
    if strangers:
        _LOG.warning("ZooKeeper: not the cluster's, and left alone: %s", ", ".join(strangers)[:500])
    level, seen = [path for path in level if path not in strangers], 0
    for _ in range(MOST_DEPTH):
        seen += len(level)
        if not level or seen > MOST_NODES:
            break
        count, level = await _taken(zookeeper, access, level)
        changed += count
    if level:
        raise NotOurCluster(f"{level[0]}: more nodes, or deeper ones, than a cluster ever has")
    await _note(zookeeper, owner)
    _LOG.info("ZooKeeper: %d nodes were given to the brokers' login", changed)


async def _noted(zookeeper: ZooKeeper) -> str | None:
    try:
        node = await zookeeper.get(tree.OWNER)
    except NotAllowed:
        raise NotOurCluster(
            f"{tree.OWNER}: it is another login's: see zookeeper.password.file"
        ) from None
    return None if node is None else tree.decode_owner(node.data)


async def _note(zookeeper: ZooKeeper, owner: str) -> None:
    try:
        await zookeeper.create(tree.OWNER, tree.encode_owner(owner), make_parents=True)
    except NodeExists:
        await zookeeper.set(tree.OWNER, tree.encode_owner(owner))


async def _taken(
    zookeeper: ZooKeeper, access: ZooKeeperAccess, paths: list[str]
) -> tuple[int, list[str]]:
    """Close the nodes; return how many were open, and the paths right below them."""
    changed = 0

    async def close(path: str) -> list[str]:
        nonlocal changed
        try:
            rights = await zookeeper.rights(path)
            if rights is None:
                return []
            if unexpected_rights(path, rights, access):
                await zookeeper.set_rights(path)
                changed += 1
            return await zookeeper.children(path) or []
        except NoNode:  # an ephemeral node that has gone
            return []
        except NotAllowed:
            if path.split("/")[1] == OF_SERVER:
                return []
            raise NotOurCluster(f"{path}: it is another login's") from None

    found = await all_of(paths, close)
    below = [f"{path.rstrip('/')}/{name}" for path, names in found.items() for name in names]
    return changed, below

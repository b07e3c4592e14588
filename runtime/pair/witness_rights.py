"""Who may touch the nodes of the witness, held against who should."""

from collections.abc import AsyncIterator
from typing import Final

from runtime.configuration.coordination_section import CoordinationConfig
from runtime.coordination.node_rights import UnexpectedRights, unexpected_rights
from runtime.coordination.zookeeper import NotAllowed, ZooKeeper
from runtime.coordination.zookeeper_access import ZooKeeperAccess

MOST_NODES: Final = 100_000
MOST_DEPTH: Final = 12
"""Ours lie at most five levels below the root."""


class TooManyNodes(Exception):
    """The tree is larger than ours ever is; the message names its root."""


async def find_unexpected_rights(
    zookeeper: ZooKeeper, access: ZooKeeperAccess, root: str
) -> AsyncIterator[UnexpectedRights]:
    """Yield each node from `root` on with other rights than it should have.

    Raises TooManyNodes.
    """
    waiting, seen = [root], 0
    while waiting:
        path = waiting.pop()
        seen += 1
        if seen > MOST_NODES or path.count("/") > root.count("/") + MOST_DEPTH:
            raise TooManyNodes(f"witness {root}: more nodes, or deeper ones, than ours ever are")
        try:
            rights = await zookeeper.rights(path)
            children = await zookeeper.children(path) or ()
        except NotAllowed:
            yield UnexpectedRights(path, None)
            continue
        if rights is not None and (found := unexpected_rights(path, rights, access)):
            yield found
        waiting += [f"{path}/{name}" for name in reversed(children)]


async def describe_access(
    zookeeper: ZooKeeper, coordination: CoordinationConfig
) -> tuple[str, str | None]:
    """Return who we are to the witness, and what is wrong with the rights of its nodes."""
    where = f"witness {coordination.zookeeper}"
    login = coordination.access.login
    if login is None:
        unguarded = "no login (coordination.auth): whoever reaches it may move every application"
        return f"warning: {where}: {unguarded}", None
    who = f"{where}: logged in as {login.identity}"
    first, count = None, 0
    try:
        async for found in find_unexpected_rights(
            zookeeper, coordination.access, coordination.path
        ):
            first, count = first or found, count + 1
    except TooManyNodes as error:
        return who, str(error)
    if first is None:
        return who, None
    return who, (
        f"witness: {count} of its nodes have other rights than they should, as {first};"
        " `failover secure` lists them, and sets them right with --write"
    )

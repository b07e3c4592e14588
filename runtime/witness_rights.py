"""Who may touch the nodes of the witness, held against who should."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

from runtime.coordination_section import CoordinationConfig
from runtime.zookeeper import NotAllowed, ZooKeeper
from runtime.zookeeper_access import Grant, Identity, Right, ZooKeeperAccess

MOST_NODES: Final = 100_000
MOST_DEPTH: Final = 12
"""Ours lie at most five levels below the root."""


@dataclass(frozen=True, slots=True)
class ForeignRights:
    """What others may do with a node; `rights` is None where our login may not even ask."""

    path: str
    rights: tuple[Grant, ...] | None

    def __str__(self) -> str:
        if self.rights is None:
            return f"{self.path}: its rights are for another login than ours"
        told = ", ".join(f"{grant.identity} may {_said(grant.rights)}" for grant in self.rights)
        return f"{self.path}: {told}"


class TooManyNodes(Exception):
    """The tree is larger than ours ever is; the message names its root."""


def foreign_of(
    path: str, rights: tuple[Grant, ...], access: ZooKeeperAccess
) -> ForeignRights | None:
    """Return what the rights of a node give to others than those who should have them."""
    wanted: dict[Identity, Right] = {}
    for grant in access.grants(path):
        wanted[grant.identity] = wanted.get(grant.identity, Right(0)) | grant.rights
    foreign = tuple(
        Grant(grant.identity, beyond)
        for grant in rights
        if (beyond := grant.rights & ~wanted.get(grant.identity, Right(0)))
    )
    return ForeignRights(path, foreign) if foreign else None


async def find_foreign_rights(
    zookeeper: ZooKeeper, access: ZooKeeperAccess, root: str
) -> AsyncIterator[ForeignRights]:
    """Yield each node from `root` on that others may touch; raises TooManyNodes."""
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
            yield ForeignRights(path, None)
            continue
        if rights is not None and (foreign := foreign_of(path, rights, access)):
            yield foreign
        waiting += [f"{path}/{name}" for name in reversed(children)]


async def describe_access(
    zookeeper: ZooKeeper, coordination: CoordinationConfig
) -> tuple[str, str | None]:
    """Return who we are to the witness, and what is wrong if others may touch its nodes."""
    where = f"witness {coordination.zookeeper}"
    login = coordination.access.login
    if login is None:
        unguarded = "no login (coordination.auth): whoever reaches it may move every application"
        return f"warning: {where}: {unguarded}", None
    who = f"{where}: logged in as {login.identity}"
    first, count = None, 0
    try:
        async for foreign in find_foreign_rights(zookeeper, coordination.access, coordination.path):
            first, count = first or foreign, count + 1
    except TooManyNodes as error:
        return who, str(error)
    if first is None:
        return who, None
    return who, (
        f"witness: others may touch {count} of its nodes, as {first}; `failover secure` lists"
        " them, and takes them back with --write"
    )


def _said(rights: Right) -> str:
    return "+".join(right.name.lower() for right in Right if right in rights and right.name)

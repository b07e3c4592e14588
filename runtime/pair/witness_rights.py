"""Who may touch the nodes of the witness, held against who should."""

from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from runtime.configuration.coordination_section import CoordinationConfig
from runtime.coordination.zookeeper import NotAllowed, ZooKeeper
from runtime.coordination.zookeeper_access import Grant, Identity, Right, ZooKeeperAccess

MOST_NODES: Final = 100_000
MOST_DEPTH: Final = 12
"""Ours lie at most five levels below the root."""


@dataclass(frozen=True, slots=True)
class ForeignRights:
    """How a node's rights are others than they should be.

    `rights` is what others may do, None where our login may not even ask. `missing` is what those
    may not do who should.
    """

    path: str
    rights: tuple[Grant, ...] | None
    missing: tuple[Grant, ...] = ()

    def __str__(self) -> str:
        if self.rights is None:
            return f"{self.path}: its rights are for another login than ours"
        told = [f"{grant.identity} may {_said(grant.rights)}" for grant in self.rights]
        lacking = [f"{grant.identity} may not {_said(grant.rights)}" for grant in self.missing]
        return f"{self.path}: {', '.join(told or lacking)}"


class TooManyNodes(Exception):
    """The tree is larger than ours ever is; the message names its root."""


def foreign_of(
    path: str, rights: tuple[Grant, ...], access: ZooKeeperAccess
) -> ForeignRights | None:
    """Return how the rights of a node are others than those with which it would be made."""
    wanted, held = _by_identity(access.grants(path)), _by_identity(rights)
    foreign, missing = _beyond(held, wanted), _beyond(wanted, held)
    return ForeignRights(path, foreign, missing) if foreign or missing else None


def _by_identity(grants: Iterable[Grant]) -> Mapping[Identity, Right]:
    found: dict[Identity, Right] = {}
    for grant in grants:
        found[grant.identity] = found.get(grant.identity, Right(0)) | grant.rights
    return found


def _beyond(some: Mapping[Identity, Right], others: Mapping[Identity, Right]) -> tuple[Grant, ...]:
    """Return the rights in `some` that are not in `others`."""
    return tuple(
        Grant(identity, beyond)
        for identity, rights in some.items()
        if (beyond := rights & ~others.get(identity, Right(0)))
    )


async def find_foreign_rights(
    zookeeper: ZooKeeper, access: ZooKeeperAccess, root: str
) -> AsyncIterator[ForeignRights]:
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
            yield ForeignRights(path, None)
            continue
        if rights is not None and (foreign := foreign_of(path, rights, access)):
            yield foreign
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
        async for foreign in find_foreign_rights(zookeeper, coordination.access, coordination.path):
            first, count = first or foreign, count + 1
    except TooManyNodes as error:
        return who, str(error)
    if first is None:
        return who, None
    return who, (
        f"witness: {count} of its nodes have other rights than they should, as {first};"
        " `failover secure` lists them, and sets them right with --write"
    )


def _said(rights: Right) -> str:
    return "+".join(right.name.lower() for right in Right if right in rights and right.name)

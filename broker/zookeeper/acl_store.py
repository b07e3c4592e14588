"""Access control entries in ZooKeeper, as typed reads and writes. Faults are ZooKeeperFault's."""

import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final, TypeAlias

import trio

from broker.zookeeper.acl_nodes import (
    CHANGE_PREFIX,
    RESOURCE_TYPES,
    AclFolder,
    acl_path,
    decode_acl_change,
    decode_acls,
    encode_acl_change,
    encode_acls,
    folder_of,
    type_path,
)
from broker.zookeeper.store import change_number
from runtime.coordination.zookeeper import BadVersion, NodeExists, NoNode, NotEmpty, ZooKeeper
from wire.acls import AccessControlEntry, ResourcePattern

_LOG = logging.getLogger(__name__)

KEPT_CHANGES: Final = 1_000
TIDIED_EVERY: Final = 100
"""A fence closes thousands of topics at once: a broker that falls behind by more than is kept reads
every entry anew, and a list of all that is kept, made for each of them, would cost more."""

Entries: TypeAlias = frozenset[AccessControlEntry]
Change: TypeAlias = Callable[[Entries], Entries]


class AclStore:
    """The entries of the cluster."""

    def __init__(self, zookeeper: ZooKeeper) -> None:
        self._zookeeper = zookeeper

    async def prepare(self) -> None:
        """Create the folders where they are missing, as Kafka does when an authorizer starts."""
        for folder in AclFolder:
            await self._zookeeper.ensure(folder.changes)
            for kind in RESOURCE_TYPES:
                await self._zookeeper.ensure(type_path(folder, kind))

    async def patterns(self) -> list[ResourcePattern]:
        """Return all patterns that have a node. What is no type of resource is left out, by name.

        No question is ever asked about such a one.
        """
        found: list[ResourcePattern] = []
        for folder in AclFolder:
            known = {type_path(folder, kind): kind for kind in RESOURCE_TYPES}
            for name in await self._zookeeper.children(folder.value) or ():
                if f"{folder.value}/{name}" not in known:
                    _LOG.error("ignored: %s/%s is no type of resource", folder.value, name)
            for path, kind in known.items():
                names = await self._zookeeper.children(path) or ()
                found += (ResourcePattern(kind, name, folder.pattern) for name in names)
        return found

    async def entries(self, resource: ResourcePattern) -> Entries:
        """Return a pattern's entries. Raises MalformedNode."""
        path = acl_path(resource)
        node = await self._zookeeper.get(path)
        return frozenset() if node is None else decode_acls(path, node.data)

    async def change(self, resource: ResourcePattern, change: Change) -> Entries:
        """Change a pattern's entries, tell every broker, and return them as they were before.

        A pattern without entries has no node. Raises MalformedNode, changing nothing.
        """
        before, after = await self._write(resource, change)
        if before != after:
            await self._announce(resource)
        return before

    async def _write(self, resource: ResourcePattern, change: Change) -> tuple[Entries, Entries]:
        """Read, change, write; once more when somebody else wrote in between."""
        path = acl_path(resource)
        while True:
            node = await self._zookeeper.get(path)
            before = frozenset() if node is None else decode_acls(path, node.data)
            after = change(before)
            try:
                if after == before:
                    pass
                elif node is None:
                    await self._zookeeper.create(path, encode_acls(after), make_parents=True)
                elif after:
                    await self._zookeeper.set(path, encode_acls(after), version=node.version)
                else:
                    await self._remove(path, node.version)
            except (BadVersion, NodeExists, NoNode):
                continue
            return before, after

    async def _remove(self, path: str, version: int) -> None:
        try:
            await self._zookeeper.delete(path, version=version)
        except NotEmpty:  # somebody has put nodes below it, which are no entries
            await self._zookeeper.set(path, b"", version=version)

    async def _announce(self, resource: ResourcePattern) -> None:
        folder = folder_of(resource)
        written = await self._zookeeper.create(
            f"{folder.changes}/{CHANGE_PREFIX}", encode_acl_change(resource), sequence=True
        )
        newest = change_number(written)
        if newest % TIDIED_EVERY:
            return
        for name in await self._zookeeper.children(folder.changes) or ():
            if 0 <= change_number(name) <= newest - KEPT_CHANGES:
                try:
                    await self._zookeeper.delete(f"{folder.changes}/{name}")
                except NoNode:
                    continue  # another broker tidied up at the same time

    async def changes(self, folder: AclFolder) -> list[str]:
        """Return the names of the notifications that are there."""
        return await self._zookeeper.children(folder.changes) or []

    async def changed(self, folder: AclFolder, number: int) -> ResourcePattern | None:
        """Return what a notification names, None when it has been tidied away.

        Raises MalformedNode.
        """
        path = f"{folder.changes}/{CHANGE_PREFIX}{number:010d}"
        node = await self._zookeeper.get(path)
        return None if node is None else decode_acl_change(path, node.data)

    def watch(
        self, folder: AclFolder
    ) -> AbstractAsyncContextManager[trio.MemoryReceiveChannel[list[str] | None]]:
        """Open a channel of the notifications' names: now, and after each change."""
        return self._zookeeper.watch_children(folder.changes)

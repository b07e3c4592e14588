"""Follows the entries in ZooKeeper, so that a change holds on every broker at once.

A node that cannot be read closes its resources to all but super users: one of its entries may be a
DENY. Its path is named in the log. A notification that cannot be read has everything read anew.
"""

import logging
from collections.abc import Mapping
from functools import partial

import trio

from broker.authorizer.acl_index import GARBLED, Entries
from broker.authorizer.authorizer import Authorizer
from broker.zookeeper.acl_nodes import AclFolder
from broker.zookeeper.acl_store import AclStore, Change
from broker.zookeeper.at_once import all_of
from broker.zookeeper.notifications import Notifications
from broker.zookeeper.tree import MalformedNode
from wire.acls import ResourcePattern

_LOG = logging.getLogger(__name__)


class AclWatch:
    """Brings an authorizer up to what ZooKeeper holds."""

    def __init__(self, store: AclStore, authorizer: Authorizer) -> None:
        self.authorizer = authorizer
        self._store = store
        self._turn = trio.Lock()
        """What is read later is newer, so it is taken over later, too."""
        self._followed = {
            folder: Notifications(partial(self._apply, folder), self.load_all)
            for folder in AclFolder
        }

    async def load_all(self) -> None:
        """Read every entry. Raises ZooKeeperFault."""
        async with self._turn:
            listed = {folder: await self._store.changes(folder) for folder in AclFolder}
            patterns = await self._store.patterns()
            read = await all_of(patterns, self._read)
            self.authorizer.replace_all({one: held for one, [held] in read.items()})
            for folder, names in listed.items():
                self._followed[folder].cover(names)

    async def run(self) -> None:
        """Follow the notifications until cancelled."""
        async with trio.open_nursery() as nursery:
            for folder in AclFolder:
                nursery.start_soon(self._follow, folder)

    async def change(self, resource: ResourcePattern, change: Change) -> Entries:
        """Change a pattern's entries in ZooKeeper and here; return those before.

        The other brokers hear of it from ZooKeeper. Raises MalformedNode and ZooKeeperFault.
        """
        before = await self._store.change(resource, change)
        await self.load(resource)
        return before

    async def load(self, resource: ResourcePattern) -> None:
        """Read one pattern's entries. Raises ZooKeeperFault."""
        async with self._turn:
            [entries] = await self._read(resource)
            self.authorizer.put(resource, entries)

    async def _read(self, resource: ResourcePattern) -> tuple[Entries | None]:
        try:
            return (await self._store.entries(resource),)
        except MalformedNode as fault:
            _LOG.error("closed to all but super users until it is mended: %s", fault)
            return (GARBLED,)

    async def _follow(self, folder: AclFolder) -> None:
        async with self._store.watch(folder) as listings:
            async for names in listings:
                await self._followed[folder].catch_up(names or ())

    async def _apply(self, folder: AclFolder, number: int) -> bool:
        """Follow one notification; False for one that does not tell (any more) what changed."""
        try:
            resource = await self._store.changed(folder, number)
        except MalformedNode as fault:
            _LOG.error("everything is read anew: %s", fault)
            return False
        if resource is None:
            return False
        await self.load(resource)
        return True

    def held(self) -> Mapping[ResourcePattern, Entries | None]:
        """Return all entries as this broker knows them, GARBLED for those that cannot be read."""
        return self.authorizer.held()

"""All promotions' journals: read again only where they may have changed, and kept while needed.

A journal that has ended never changes. The newest journals are kept, all unfinished ones, and the
first and the last finished promotion from one site to another: by these an audit knows where a
mirrored part ended, and that its site was active again later.
"""

import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import trio

from failover.journal.journal import Journal, JournalUnreadable, decode_journal
from failover.journal.lease import Lease, LeaseLost
from failover.journal.steps import PromotionState
from runtime.coordination.long_nodes import read_document
from runtime.coordination.witness import WitnessPaths
from runtime.coordination.zookeeper import NoNode, ZooKeeper, ZooKeeperFault

_LOG = logging.getLogger(__name__)

KEPT: Final = 20
"""Newest ones, however they ended. One of 20,000 partitions takes about a megabyte."""

PATIENCE_S: Final = 5.0
"""So long whoever has promoted waits for the deletion of what is not needed, at most."""


class JournalReader:
    """Reads journals again and again, each one that has ended once."""

    def __init__(self, zookeeper: ZooKeeper, paths: WitnessPaths) -> None:
        self._zookeeper = zookeeper
        self._paths = paths
        self._ended: dict[str, Journal | None] = {}
        """None for those that nobody asks for any more."""

    async def read(self, active_epoch: int = 0) -> list[Journal]:
        """Return the unfinished journals, the last that has ended, and this epoch's, oldest first.

        The first call returns all journals. Raises JournalUnreadable naming the node.
        """
        names = await self._zookeeper.children(self._paths.journals) or []
        self._ended = {name: self._ended[name] for name in names if name in self._ended}
        found: dict[str, Journal] = {}
        for name in names:
            if name not in self._ended:
                journal = await self._read(name)
                if journal is not None:
                    found[name] = journal
        ended = {
            name: one for name, one in found.items() if one.state is not PromotionState.RUNNING
        }
        self._ended |= ended
        asked_for = {max(self._ended, default=""), f"{active_epoch:010d}"}
        for name in self._ended:
            if name in asked_for and name not in found:
                journal = self._ended[name] or await self._read(name)
                found |= {} if journal is None else {name: journal}
            self._ended[name] = found.get(name) if name in asked_for else None
        return [found[name] for name in sorted(found)]

    async def _read(self, name: str) -> Journal | None:
        path = f"{self._paths.journals}/{name}"
        try:
            node = await read_document(
                self._zookeeper, path, f"{self._paths.all_journal_parts}/{name}"
            )
            return None if node is None else decode_journal(node.data)
        except ValueError as error:  # JournalUnreadable is one, too
            raise JournalUnreadable(f"witness {path}: {error}") from error


async def read_journals(zookeeper: ZooKeeper, paths: WitnessPaths) -> list[Journal]:
    """Return all journals, oldest first; raises JournalUnreadable naming the node."""
    return await JournalReader(zookeeper, paths).read()


def find_unfinished(journals: Sequence[Journal]) -> Journal | None:
    """Return the promotion that was begun last and not ended, if any."""
    running = [journal for journal in journals if journal.state is PromotionState.RUNNING]
    return running[-1] if running else None


def superfluous(journals: Sequence[Journal]) -> list[Journal]:
    """Return the journals that nobody needs any more, of all, oldest first."""
    kept = {journal.epoch for journal in journals[-KEPT:]}
    first: dict[tuple[str, str], int] = {}
    last: dict[tuple[str, str], int] = {}
    for journal in journals:
        if journal.state is PromotionState.RUNNING:
            kept.add(journal.epoch)
        elif journal.state is PromotionState.DONE:
            first.setdefault((journal.source, journal.site), journal.epoch)
            last[journal.source, journal.site] = journal.epoch
    kept |= {*first.values(), *last.values()}
    return [journal for journal in journals if journal.epoch not in kept]


async def _delete_ownerless_parts(zookeeper: ZooKeeper, paths: WitnessPaths) -> None:
    """Delete the parts of journals that are deleted.

    A promotion that begins writes its parts first, and has a later epoch than every journal.
    """
    kept = await zookeeper.children(paths.journals) or []
    for name in await zookeeper.children(paths.all_journal_parts) or ():
        if name not in kept and name < max(kept, default=""):
            with suppress(NoNode):  # an attempt whose answer was lost
                await zookeeper.delete(f"{paths.all_journal_parts}/{name}", recursive=True)


async def forget_superfluous(zookeeper: ZooKeeper, paths: WitnessPaths, lease: Lease) -> None:
    """Delete the journals that nobody needs any more; after a fault the next call tries again."""

    async def forget() -> None:
        journals = await read_journals(zookeeper, paths)
        for journal in superfluous(journals):
            with suppress(NoNode):  # an attempt whose answer was lost
                await zookeeper.delete(paths.journal(journal.epoch))
        await _delete_ownerless_parts(zookeeper, paths)

    try:
        with trio.move_on_after(PATIENCE_S):
            await lease.act(forget)
    except (JournalUnreadable, LeaseLost, ZooKeeperFault) as fault:
        _LOG.warning("journals of earlier promotions are kept for now: %s", fault)

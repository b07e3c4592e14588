"""A promotion's journal and the active site in the witness, written only by the last writer.

Every write names the version of the journal it follows, so a controller that was superseded while
it slept fails at its next write. The switch and its record are written in one transaction. What is
long of a journal is written before it, into parts that never change
(`runtime.coordination.long_document`).
"""

from dataclasses import replace

from failover.journal.execute import StepFailed
from failover.journal.journal import Journal, JournalUnreadable, decode_journal, split_journal
from failover.journal.lease import Lease
from failover.journal.steps import PromotionState
from runtime.coordination.long_document import Packer
from runtime.coordination.long_nodes import delete_unnamed_parts, read_parts, write_parts
from runtime.coordination.witness import ActiveSite, WitnessPaths
from runtime.coordination.zookeeper import (
    BadVersion,
    Check,
    Create,
    NodeExists,
    Operation,
    SetData,
    ZooKeeper,
)


class Superseded(Exception):
    """Another controller has written this journal since; this one must stop."""


class WitnessStore:
    """One promotion's journal, held by the one controller that writes it."""

    def __init__(
        self,
        zookeeper: ZooKeeper,
        paths: WitnessPaths,
        lease: Lease,
        epoch: int,
        *,
        version: int = -1,
    ) -> None:
        """Call create() or take_over() before anything else, unless the node's version is known."""
        self._zookeeper = zookeeper
        self._paths = paths
        self._lease = lease
        self._path = paths.journal(epoch)
        self._parts_path = paths.journal_parts(epoch)
        self._version = version
        self._packer = Packer()
        self._written_parts: frozenset[str] = frozenset()

    async def create(self, journal: Journal) -> None:
        """Write the first version; raises Superseded when somebody else has begun this epoch."""
        head = await self._write_parts(journal)

        async def write() -> None:
            try:
                await self._zookeeper.create(self._path, head, make_parents=True)
            except NodeExists:
                node = await self._zookeeper.get(self._path)
                if node is None or node.data != head:
                    raise Superseded(f"{self._path} was begun by another controller") from None

        await self._lease.act(write)
        self._version = 0

    async def take_over(self) -> Journal:
        """Read the journal and make it ours: whoever held it before fails from here on.

        Raises JournalUnreadable naming the node, and Superseded.
        """

        async def claim() -> Journal:
            node = await self._zookeeper.get(self._path)
            if node is None:
                raise Superseded(f"{self._path} is gone")
            self._version = await self._zookeeper.set(self._path, node.data, version=node.version)
            try:
                whole = await read_parts(self._zookeeper, node.data, self._parts_path)
                journal = decode_journal(whole)
            except ValueError as error:
                raise JournalUnreadable(f"witness {self._path}: {error}") from error
            await self._delete_unnamed_parts(node.data)
            return journal

        return await self._lease.act(claim)

    @property
    def claim(self) -> Check:
        """Return a check that holds for as long as nobody else has taken the journal over."""
        return Check(path=self._path, version=self._version)

    async def replace_by(self, journal: Journal, ended: Journal) -> "WitnessStore":
        """Write our last version and another promotion's first one, all or nothing.

        The same write takes the announcement of the next site back. Return the other promotion's
        store. Raises StepFailed without an active site, and Superseded.
        """
        path = self._paths.journal(journal.epoch)
        successor = WitnessStore(
            self._zookeeper, self._paths, self._lease, journal.epoch, version=0
        )
        head, last_head = await successor._write_parts(journal), await self._write_parts(ended)
        active, version = await self._lease.act(self._active)
        stays = replace(active, moving_to=None).encode()
        operations = (
            SetData(path=self._path, data=last_head, version=self._version),
            Create(path=path, data=head),
            SetData(path=self._paths.active, data=stays, version=version),
        )

        async def write() -> None:
            try:
                await self._zookeeper.transaction(operations)
            except (BadVersion, NodeExists):
                node = await self._zookeeper.get(path)
                if node is None or node.data != head:
                    raise Superseded(f"{self._path} was written by another controller") from None

        await self._lease.act(write)
        return successor

    async def save(self, journal: Journal) -> None:
        """Write the next version of the journal; raises Superseded."""
        head = await self._write(journal, ())
        if journal.state is not PromotionState.RUNNING:
            await self._lease.act(lambda: self._delete_unnamed_parts(head))

    async def save_and_switch(self, journal: Journal) -> None:
        """Write the journal and make its site the active one, both or neither.

        Raises StepFailed when the active site is not the journal's source, and Superseded.
        """
        active, version = await self._lease.act(self._active)
        if active.site != journal.source:
            raise StepFailed(
                f"the active site is {active.site} (epoch {active.epoch}), not {journal.source}"
            )
        switched = ActiveSite(site=journal.site, epoch=journal.epoch)
        operation = SetData(path=self._paths.active, data=switched.encode(), version=version)
        await self._write(journal, (operation,))

    async def announce(self, journal: Journal, moving_to: str | None) -> None:
        """Say in the witness which site is next, or that none is.

        Raises StepFailed when the active site is not the journal's source, and Superseded.
        """

        async def write() -> None:
            active, version = await self._active()
            if active.site != journal.source:
                raise StepFailed(f"the active site is {active.site}, not {journal.source}")
            if active.moving_to == moving_to:
                return
            data = replace(active, moving_to=moving_to).encode()
            try:
                await self._zookeeper.transaction(
                    (
                        self.claim,
                        SetData(path=self._paths.active, data=data, version=version),
                    )
                )
            except BadVersion as error:
                raise Superseded(f"{self._path} was written by another controller") from error

        await self._lease.act(write)

    async def _active(self) -> tuple[ActiveSite, int]:
        node = await self._zookeeper.get(self._paths.active)
        if node is None:
            raise StepFailed(f"the witness holds no active site at {self._paths.active}")
        return self._paths.read_active(node.data), node.version

    async def _write_parts(self, journal: Journal) -> bytes:
        """Write what is long of a journal, and return the head that names it."""
        document = split_journal(journal, self._packer)
        written = self._written_parts
        await self._lease.act(
            lambda: write_parts(self._zookeeper, document, self._parts_path, written)
        )
        self._written_parts = frozenset(document.parts)
        return document.head

    async def _delete_unnamed_parts(self, head: bytes) -> None:
        """Delete what earlier versions of the journal named; raises Superseded."""
        try:
            await delete_unnamed_parts(self._zookeeper, head, self._parts_path, self.claim)
        except BadVersion as error:
            raise Superseded(f"{self._path} was written by another controller") from error

    async def _write(self, journal: Journal, together_with: tuple[Operation, ...]) -> bytes:
        """Write once, and return the head.

        An attempt whose answer was lost is recognised by its version and head.
        """
        head = await self._write_parts(journal)
        follows = self._version
        attempts = 0

        async def write() -> None:
            nonlocal attempts
            attempts += 1
            if attempts > 1 and await self._is_written(head, follows + 1):
                return
            operation = SetData(path=self._path, data=head, version=follows)
            try:
                await self._zookeeper.transaction((operation, *together_with))
            except BadVersion as error:
                raise Superseded(f"{error}: written by another controller") from error

        await self._lease.act(write)
        self._version = follows + 1
        return head

    async def _is_written(self, head: bytes, version: int) -> bool:
        node = await self._zookeeper.get(self._path)
        return node is not None and node.version == version and node.data == head

"""A promotion's journal and the active site in the witness, written only by the last writer.

Every write names the version of the journal it follows, so a controller that was superseded while
it slept fails at its next write. The switch and its record are written in one transaction.
"""

from dataclasses import replace

from failover.execute import StepFailed
from failover.journal import Journal, decode_journal, encode_journal
from failover.lease import Lease
from runtime.witness import ActiveSite, WitnessPaths
from runtime.zookeeper import (
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
        self._version = version

    async def create(self, journal: Journal) -> None:
        """Write the first version; raises Superseded when somebody else has begun this epoch."""
        data = encode_journal(journal)

        async def write() -> None:
            try:
                await self._zookeeper.create(self._path, data, make_parents=True)
            except NodeExists:
                node = await self._zookeeper.get(self._path)
                if node is None or node.data != data:
                    raise Superseded(f"{self._path} was begun by another controller") from None

        await self._lease.act(write)
        self._version = 0

    async def take_over(self) -> Journal:
        """Read the journal and make it ours: whoever held it before fails from here on."""

        async def claim() -> Journal:
            node = await self._zookeeper.get(self._path)
            if node is None:
                raise Superseded(f"{self._path} is gone")
            self._version = await self._zookeeper.set(self._path, node.data, version=node.version)
            return decode_journal(node.data)

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
        data, path = encode_journal(journal), self._paths.journal(journal.epoch)
        active, version = await self._lease.act(self._active)
        stays = replace(active, moving_to=None).encode()
        operations = (
            SetData(path=self._path, data=encode_journal(ended), version=self._version),
            Create(path=path, data=data),
            SetData(path=self._paths.active, data=stays, version=version),
        )

        async def write() -> None:
            try:
                await self._zookeeper.transaction(operations)
            except (BadVersion, NodeExists):
                node = await self._zookeeper.get(path)
                if node is None or node.data != data:
                    raise Superseded(f"{self._path} was written by another controller") from None

        await self._lease.act(write)
        return WitnessStore(self._zookeeper, self._paths, self._lease, journal.epoch, version=0)

    async def save(self, journal: Journal) -> None:
        """Write the next version of the journal; raises Superseded."""
        await self._write(encode_journal(journal), ())

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
        await self._write(encode_journal(journal), (operation,))

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
        return ActiveSite.decode(node.data), node.version

    async def _write(self, data: bytes, together_with: tuple[Operation, ...]) -> None:
        """Write once; an attempt whose answer was lost is recognised by its version and data."""
        follows = self._version
        attempts = 0

        async def write() -> None:
            nonlocal attempts
            attempts += 1
            if attempts > 1 and await self._is_written(data, follows + 1):
                return
            operation = SetData(path=self._path, data=data, version=follows)
            try:
                await self._zookeeper.transaction((operation, *together_with))
            except BadVersion as error:
                raise Superseded(f"{error}: written by another controller") from error

        await self._lease.act(write)
        self._version = follows + 1

    async def _is_written(self, data: bytes, version: int) -> bool:
        node = await self._zookeeper.get(self._path)
        return node is not None and node.version == version and node.data == data

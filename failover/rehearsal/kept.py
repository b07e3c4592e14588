"""Rehearsals in the witness: the newest are kept, and one at a time runs."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Final

from failover.journal.commands_given import GivenCommand
from failover.journal.lease import Lease, LeaseHeld, hold_lease
from failover.rehearsal.outcome import Rehearsal, RehearsalState, RehearsalUnreadable
from runtime.coordination.witness import WitnessPaths
from runtime.coordination.zookeeper import NodeExists, NoNode, ZooKeeper
from wire.values import frozen

MOST_REHEARSALS: Final = 20
DIED: Final = "whoever ran it has died, or lost the witness"


class RehearsalRuns(Exception):
    """Another rehearsal is under way; the message says where."""


async def read_rehearsals(zookeeper: ZooKeeper, paths: WitnessPaths) -> Sequence[Rehearsal]:
    """Return the rehearsals that are kept, oldest first; raises RehearsalUnreadable.

    One that nobody runs any more counts as interrupted, before the next one writes that down.
    """
    # Asked for before and behind: one may begin while they are read.
    ran = await zookeeper.exists(paths.rehearsal_lease)
    found = await _read(zookeeper, paths)
    if ran or await zookeeper.exists(paths.rehearsal_lease):
        return found
    return [interrupted(one) if one.state is RehearsalState.RUNNING else one for one in found]


def interrupted(left: Rehearsal) -> Rehearsal:
    """Return a rehearsal that nobody has ended."""
    return replace(left, state=RehearsalState.INTERRUPTED, reason=DIED)


async def _read(zookeeper: ZooKeeper, paths: WitnessPaths) -> list[Rehearsal]:
    found: list[Rehearsal] = []
    for name in sorted(await zookeeper.children(paths.rehearsals) or ()):
        path = f"{paths.rehearsals}/{name}"
        node = await zookeeper.get(path)
        if node is None:
            continue  # forgotten meanwhile
        try:
            found.append(Rehearsal.decode(node.data))
        except RehearsalUnreadable as error:
            raise RehearsalUnreadable(f"witness {path}: {error}") from error
    return found


@frozen
class RehearsalStore:
    """Writes rehearsals, for as long as its session holds the right to run one."""

    zookeeper: ZooKeeper
    paths: WitnessPaths
    lease: Lease

    async def begin(
        self, site: str, home: str, given: GivenCommand, *, behind: int | None = None
    ) -> tuple[Rehearsal, Sequence[Rehearsal]]:
        """Write that a rehearsal begins; return it, and those before it that nobody has ended.

        Those are written down as interrupted. Raises RehearsalRuns where somebody has begun one
        `behind` this number meanwhile, RehearsalUnreadable and LeaseLost.
        """
        kept = await _read(self.zookeeper, self.paths)
        if behind is not None and any(one.number > behind for one in kept):
            raise RehearsalRuns(f"rehearsal {kept[-1].number} was begun by somebody else")
        left = [one for one in kept if one.state is RehearsalState.RUNNING]
        for one in left:
            await self.save(interrupted(one))
        number = max((one.number for one in kept), default=0) + 1
        new = Rehearsal(number=number, site=site, home=home, started_ms=given.at_ms, given=given)
        await self.save(new)
        for one in [*kept, new][:-MOST_REHEARSALS]:
            with suppress(NoNode):  # an attempt whose answer was lost
                await self.lease.act(
                    partial(self.zookeeper.delete, self.paths.rehearsal(one.number))
                )
        return new, left

    async def save(self, rehearsal: Rehearsal) -> None:
        """Write what is known of a rehearsal; raises LeaseLost."""
        await self.lease.act(partial(self._write, rehearsal))

    async def _write(self, rehearsal: Rehearsal) -> None:
        path, data = self.paths.rehearsal(rehearsal.number), rehearsal.encode()
        try:
            await self.zookeeper.create(path, data, make_parents=True)
        except NodeExists:
            await self.zookeeper.set(path, data)


@asynccontextmanager
async def open_store(
    zookeeper: ZooKeeper, paths: WitnessPaths, *, wait_ms: int
) -> AsyncIterator[RehearsalStore]:
    """Take the right to run a rehearsal; raises RehearsalRuns where somebody keeps it."""
    async with AsyncExitStack() as stack:
        try:
            lease = await stack.enter_async_context(
                hold_lease(zookeeper, paths.rehearsal_lease, wait_ms=wait_ms)
            )
        except LeaseHeld as held:
            raise RehearsalRuns(f"no rehearsal can begin beside another one: {held}") from held
        yield RehearsalStore(zookeeper=zookeeper, paths=paths, lease=lease)

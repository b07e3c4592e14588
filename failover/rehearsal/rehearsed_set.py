"""The set of rehearsals on its way: promoted by the code of `failover promote`, and taken back."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Final

import trio

from failover.automatic.hold import read_hold
from failover.journal.journal import Journal
from failover.journal.journals import find_unfinished, read_journals
from failover.journal.lease import wait_wanted
from failover.journal.steps import PromotionKind, PromotionState, is_switched
from failover.planning.plan import PromotionRequest, decide
from failover.planning.refusal import Refusal
from failover.promote import CANNOT_PROMOTE, UNREADABLE, PromotionController, open_controller
from failover.view.snapshot import take_snapshot
from runtime.configuration.config import Configuration
from runtime.coordination.witness import WitnessGarbled, WitnessPaths
from runtime.coordination.zookeeper import ZooKeeper, ZooKeeperFault
from runtime.process.clock import now_ms
from runtime.process.tasks import background_tasks
from wire.values import frozen

PATIENCE_S: Final = 60.0
"""So long the mirror may take to make the set's topic on the other site."""
LOOK_AGAIN_S: Final = 0.5


async def active_site(zookeeper: ZooKeeper, paths: WitnessPaths) -> str:
    """Return the active site of a set that has begun; raises what reading the witness raises."""
    node = await zookeeper.get(paths.active)
    if node is None:
        raise WitnessGarbled(f"the witness has no active site at {paths.active}")
    return paths.read_active(node.data).site


class RehearsalFailed(Exception):
    """The rehearsal cannot go on; the message says why."""


async def giving_way(
    controller: PromotionController, work: Callable[[], Awaitable[Journal]]
) -> Journal:
    """Return what comes of the work, unless somebody waits for the lease to promote applications.

    Then it stops where it is, as if it had been killed: the site may be one that answers nobody.
    Raises RehearsalFailed, and what the work raises.
    """
    with trio.CancelScope() as working:
        async with background_tasks() as tasks:
            tasks.start_soon(_stop_once_wanted, controller, working)
            return await work()
    raise RehearsalFailed(
        "it gave way to a promotion of applications, and `failover serve` or the next rehearsal"
        " ends what it has begun"
    )


async def _stop_once_wanted(controller: PromotionController, working: trio.CancelScope) -> None:
    with suppress(ZooKeeperFault):  # the lease goes with the session, and the work says so
        await wait_wanted(controller.zookeeper, controller.paths.lease_wanted)
        working.cancel()


@frozen
class RehearsedSet:
    """The set, and who moves it."""

    configuration: Configuration
    """Of the set."""
    zookeeper: ZooKeeper
    show: Callable[[str], None]

    async def bring_to(self, home: str) -> None:
        """Have the set where a rehearsal begins, whatever an earlier one has left.

        Raises RehearsalFailed, and what reading the witness raises.
        """
        paths = self.configuration.coordination.paths
        left = find_unfinished(await read_journals(self.zookeeper, paths))
        if left is not None and is_switched(left.step_states):
            await self.promote(left.site)
        elif left is not None:
            await self._take_back(left)
        if (active := await self.active()) != home:
            self.show(f"the set is on {active}: it is taken to {home} first")
            await self.wait_plan(home)
            await self.promote(home)

    async def wait_plan(self, site: str) -> None:
        """Wait until a promotion of the set could begin; raises RehearsalFailed with what cannot.

        The mirror makes a new topic within its `discovery_interval_ms`.
        """
        request = PromotionRequest(site=site, kind=PromotionKind.PLANNED)
        reason = "no look within time"
        with trio.move_on_after(PATIENCE_S):
            while True:
                try:
                    decision = decide(
                        await take_snapshot(self.configuration, self.zookeeper, site), request
                    )
                except CANNOT_PROMOTE as fault:
                    raise RehearsalFailed(f"{site} could not be looked at: {fault}") from fault
                if not isinstance(decision, Refusal):
                    return
                reason = decision.reason
                await trio.sleep(LOOK_AGAIN_S)
        raise RehearsalFailed(f"{site} cannot be promoted: {reason}")

    async def promote(self, site: str) -> Journal:
        """Promote the set, and return the journal of a promotion that is done.

        Raises RehearsalFailed.
        """
        request = PromotionRequest(site=site, kind=PromotionKind.PLANNED)
        started_ms = now_ms()
        try:
            async with self._controller() as controller:
                journal = await giving_way(
                    controller, partial(controller.promote, request, started_ms)
                )
        except CANNOT_PROMOTE as fault:
            raise RehearsalFailed(f"{site} could not be promoted: {fault}") from fault
        if journal.state is not PromotionState.DONE:
            raise RehearsalFailed(f"the promotion of {site} was taken back: {journal.reason}")
        return journal

    async def _take_back(self, left: Journal) -> None:
        """Take back what an earlier rehearsal has left unfinished; raises RehearsalFailed."""
        try:
            async with self._controller() as controller:
                await giving_way(controller, controller.abort)
        except CANNOT_PROMOTE as fault:
            raise RehearsalFailed(
                f"the promotion of {left.site} (epoch {left.epoch}) could not be taken back:"
                f" {fault}"
            ) from fault

    @asynccontextmanager
    async def _controller(self) -> AsyncIterator[PromotionController]:
        async with open_controller(
            self.configuration,
            self.show,
            name="failover rehearse:",
            why_stop=self._why_stop,
            is_rehearsal=True,
        ) as controller:
            yield controller

    async def _why_stop(self, zookeeper: ZooKeeper) -> str | None:
        """Whoever holds promotions ends a rehearsal before its next switch."""
        hold = await read_hold(zookeeper, self.configuration.coordination.paths)
        return None if hold is None else f"promotions are {hold}"

    async def active(self) -> str:
        """Return the set's active site; raises what reading the witness raises."""
        return await active_site(self.zookeeper, self.configuration.coordination.paths)

    async def where_left(self, home: str) -> str:
        """Return what is to be known of a set that a rehearsal leaves, as the end of a line."""
        try:
            active = await self.active()
        except UNREADABLE as fault:
            return f"; where the set is now is not known: {fault}"
        if active == home:
            return ""
        return f"; the set is left on {active}, and the next rehearsal takes it to {home} first"

"""Finish, or take back, a promotion whose controller is gone.

A controller that dies leaves the old site closed. `failover serve` takes such a promotion over once
nobody has held the controller's lease for `failover.orphan_after_ms`: what has switched is
finished, what has not is taken back, so that somebody takes writes again.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from functools import partial

from failover.journal.commands_given import BY_SERVE
from failover.journal.execute import RollbackStuck, StepFailed
from failover.journal.journal import Journal
from failover.journal.journals import find_unfinished, read_journals
from failover.journal.lease import LeaseHeld, LeaseLost
from failover.journal.steps import is_switched
from failover.journal.store import Superseded
from failover.planning.plan import PromotionRequest
from failover.promote import PromotionRefused, open_controller
from failover.rehearsal.rehearsed_set import RehearsalFailed, giving_way
from failover.view.report import summary
from runtime.configuration.config import Configuration
from runtime.configuration.topic_sets import REHEARSAL_SET
from runtime.process.clock import now_ms
from runtime.process.fault_note import FaultNote

_LOG = logging.getLogger(__name__)


class Remedy(Enum):
    """What is to be done about an orphan."""

    FINISH = "finished"
    TAKE_BACK = "taken back"


@dataclass(slots=True)
class OrphanWatch:
    """Since when which promotion has had no controller. Times are those of one clock, in ms."""

    after_ms: int
    _epoch: int | None = None
    _since_ms: int = 0

    def look(self, unfinished: Journal, *, is_led: bool, now_ms: int) -> Remedy | None:
        """Return what is to be done now, None while a controller may still go on by itself."""
        if is_led:
            self._epoch = None
            return None
        if self._epoch != unfinished.epoch:
            self._epoch, self._since_ms = unfinished.epoch, now_ms
        if now_ms - self._since_ms < self.after_ms:
            return None
        return Remedy.FINISH if is_switched(unfinished.step_states) else Remedy.TAKE_BACK


async def take_over_orphan(
    configuration: Configuration, orphan: Journal, remedy: Remedy, trouble: FaultNote
) -> None:
    """Take a promotion over and end it; what is in the way is noted, and tried again later."""
    _LOG.warning(
        "the controller of the %s promotion of %s (epoch %d) is gone: it is %s",
        orphan.kind,
        orphan.site,
        orphan.epoch,
        remedy.value,
    )
    is_rehearsal = configuration.topic_set == REHEARSAL_SET
    try:
        async with open_controller(
            configuration, _LOG.info, name=BY_SERVE, is_rehearsal=is_rehearsal
        ) as controller:
            journals = await read_journals(controller.zookeeper, controller.paths)
            if find_unfinished(journals) != orphan:
                return  # somebody has gone on with it while we waited for the lease
            if remedy is Remedy.FINISH:
                request = PromotionRequest(site=orphan.site, kind=orphan.kind)
                end: Callable[[], Awaitable[Journal]] = partial(
                    controller.promote, request, now_ms()
                )
            else:
                end = controller.abort
            # One of a lost site holds the lease for long, again and again.
            journal = await (giving_way(controller, end) if is_rehearsal else end())
    except (
        LeaseHeld,
        LeaseLost,
        PromotionRefused,
        RehearsalFailed,
        RollbackStuck,
        StepFailed,
        Superseded,
    ) as fault:
        trouble.note(f"epoch {orphan.epoch} could not be {remedy.value}: {fault}")
        return
    trouble.clear()
    for line in summary(journal, configuration.topic_set):
        _LOG.warning("%s", line)

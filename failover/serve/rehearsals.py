"""Rehearse when it is time, and show what the last rehearsal found out.

Several `failover serve` look; the one that takes the right to rehearse first does it, and the
others find it in the witness.
"""

import logging
from collections.abc import Sequence
from typing import Final

import trio

from failover.promote import CANNOT_PROMOTE
from failover.rehearsal.kept import RehearsalRuns, read_rehearsals
from failover.rehearsal.outcome import Rehearsal, RehearsalState, RehearsalUnreadable
from failover.rehearsal.rehearsed_set import active_site
from failover.rehearsal.run import RehearsalRequest, rehearse
from failover.rehearsal.schedule import counts_from_ms, is_due
from failover.rehearsal.told import rehearsal_lines
from failover.serve.rehearsal_metrics import RehearsalCollector
from runtime.configuration.config import Configuration
from runtime.configuration.rehearsal_section import RehearsalConfig
from runtime.configuration.witness_session import open_witness
from runtime.coordination.zookeeper import ZooKeeperFault
from runtime.process.clock import now_ms
from runtime.process.fault_note import FaultNote
from runtime.process.unforeseen import keep_at_work

_LOG = logging.getLogger(__name__)

LOOK_EVERY_S: Final = 5.0
OTHERS_MS: Final = 1_000
"""So long one that somebody else runs is waited for: it is theirs."""
BY_SCHEDULE: Final = "failover serve: rehearse"


async def follow_rehearsals(
    configuration: Configuration, config: RehearsalConfig, collector: RehearsalCollector
) -> None:
    """Show what is kept until cancelled, and rehearse where it is time."""
    trouble = FaultNote("rehearsals")
    watch = RehearsalWatch(configuration, config, collector, trouble)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(keep_at_work, watch.show, trouble, "the look at rehearsals")
        nursery.start_soon(keep_at_work, watch.rehearse_when_due, trouble, "the schedule")


class RehearsalWatch:
    """What one `failover serve` knows and does about rehearsals."""

    def __init__(
        self,
        configuration: Configuration,
        config: RehearsalConfig,
        collector: RehearsalCollector,
        trouble: FaultNote,
    ) -> None:
        self._configuration = configuration
        self._config = config
        self._collector = collector
        self._trouble = trouble
        self._since_ms = now_ms()
        """Times to rehearse before this are somebody else's, or are left out."""
        self._kept: Sequence[Rehearsal] | None = None
        """None while they are not known."""

    async def show(self) -> None:
        """Look until cancelled, in a new session whenever one has failed."""
        coordination = self._configuration.coordination
        while True:
            try:
                async with open_witness(coordination) as zookeeper:
                    while True:
                        self._kept = await read_rehearsals(zookeeper, coordination.paths)
                        self._collector.know(self._kept)
                        self._trouble.clear("witness")
                        await trio.sleep(LOOK_EVERY_S)
            except (ZooKeeperFault, RehearsalUnreadable) as fault:
                self._trouble.note(f"not known: {fault}", "witness")
            finally:
                self._kept = None
                self._collector.know_nothing()
            await trio.sleep(LOOK_EVERY_S)

    async def rehearse_when_due(self) -> None:
        """Rehearse whenever it is time, until cancelled."""
        while True:
            await trio.sleep(LOOK_EVERY_S)
            if self._kept is None:
                continue
            last = self._kept[-1] if self._kept else None
            now = now_ms()
            since_ms = counts_from_ms(
                self._config,
                now_ms=now,
                since_ms=self._since_ms,
                last_ms=0 if last is None else last.started_ms,
            )
            if is_due(self._config, now_ms=now, since_ms=since_ms):
                await self._rehearse(0 if last is None else last.number)

    async def _rehearse(self, behind: int) -> None:
        try:
            site = await self._idle_site()
            ended = await rehearse(
                self._configuration,
                RehearsalRequest(site=site, what=f"{BY_SCHEDULE} {site}", behind=behind),
                _LOG.info,
                wait_ms=OTHERS_MS,
            )
        except RehearsalRuns as running:
            _LOG.info("%s", running)
        except (*CANNOT_PROMOTE, RehearsalUnreadable) as fault:
            self._trouble.note(f"no rehearsal: {fault}", "schedule")
        else:
            self._since_ms = now_ms()
            self._trouble.clear("schedule")
            level = logging.INFO if ended.state is RehearsalState.PASSED else logging.WARNING
            for line in rehearsal_lines(ended):
                _LOG.log(level, "%s", line)

    async def _idle_site(self) -> str:
        """Return the site that the default set is not active on; raises what reading raises."""
        coordination = self._configuration.coordination
        async with open_witness(coordination) as zookeeper:
            active = await active_site(zookeeper, coordination.paths)
        return next(name for name in self._configuration.clusters if name != active)

"""All pages of `failover serve`, and the looks that are taken while somebody reads them."""

import socket
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, Protocol

import trio

from failover.journal.journal import Journal, JournalUnreadable
from failover.journal.journals import read_journals
from failover.planning.readiness import Readiness
from failover.rehearsal.kept import read_rehearsals
from failover.rehearsal.outcome import RehearsalUnreadable
from failover.serve.console.audits import AuditSeen, audit_page, read_audit_folder
from failover.serve.console.differences import (
    DifferencesSeen,
    differences_page,
    look_at_differences,
)
from failover.serve.console.mirrors import look_at_lines, look_at_summaries
from failover.serve.console.overview import OverviewSeen, SetSeen, overview_page
from failover.serve.console.promotions import promotions_page
from failover.serve.console.rehearsals import RehearsalsSeen, rehearsals_page
from failover.serve.console.sites import look_at_sites, sites_page
from failover.serve.peek.peeker import Peeker
from failover.serve.peek.question import PATH as PEEK
from failover.view.status import Status
from failover.view.told_facts import understood
from runtime.configuration.config import Configuration
from runtime.configuration.witness_session import open_witness
from runtime.console.console import AskedPage, Console, ConsolePage
from runtime.console.flow_pages import flows_page, groups_page, partitions_page
from runtime.console.frame import PageParts
from runtime.console.watched import Watched, want_all
from runtime.coordination.zookeeper import ZooKeeperFault
from runtime.process.clock import wall_ms

LISTS_EVERY_S: Final = 5.0
SLOW_EVERY_S: Final = 10.0
RARELY_EVERY_S: Final = 300.0
"""So often both logs are compared while somebody reads that."""


class StatusKept(Protocol):
    """The newest status of a set of topics."""

    status: Status | None
    why_not: str


class ReadinessKept(Protocol):
    """The newest look at whether a set could be promoted."""

    why_not: str

    def seen(self) -> tuple[Sequence[Readiness], int | None]:
        """Return what was found, and when."""


class FailoverConsole:
    """The console of one `failover serve`; `browse` answers, `run` looks while somebody reads."""

    def __init__(
        self,
        configuration: Configuration,
        statuses: Mapping[str, StatusKept],
        readiness: Mapping[str, ReadinessKept],
    ) -> None:
        self._configuration = configuration
        self._statuses = statuses
        self._readiness = readiness
        self._by_set = configuration.by_set()
        self._has_sets = len(self._by_set) > 1
        self._summaries = Watched("flows", partial(look_at_summaries, configuration), LISTS_EVERY_S)
        self._lines = Watched("partitions", partial(look_at_lines, configuration), LISTS_EVERY_S)
        self._journals = Watched("promotions", self._look_at_journals, SLOW_EVERY_S)
        self._rehearsals = Watched("rehearsals", self._look_at_rehearsals, SLOW_EVERY_S)
        self._audits = Watched("the audit", self._look_at_audits, SLOW_EVERY_S)
        self._sites = Watched("sites", partial(look_at_sites, configuration), SLOW_EVERY_S)
        self._differences = Watched("both logs", self._look_at_differences, RARELY_EVERY_S)
        pages: list[ConsolePage | AskedPage] = [
            ConsolePage(path="", name="Overview", make=self._overview, every_s=1.0),
            ConsolePage(path="flows", name="Flows", make=self._flows, every_s=LISTS_EVERY_S),
            ConsolePage(
                path="partitions", name="Partitions", make=self._partitions, every_s=LISTS_EVERY_S
            ),
            ConsolePage(path="groups", name="Groups", make=self._groups, every_s=LISTS_EVERY_S),
            ConsolePage(path="sites", name="Sites", make=self._both, every_s=LISTS_EVERY_S),
            ConsolePage(path="promotions", name="Promotions", make=self._promotions),
            ConsolePage(
                path="rehearsals",
                name="Rehearsals",
                make=self._rehearsals_page,
                every_s=LISTS_EVERY_S,
            ),
            ConsolePage(path="audit", name="Audit", make=self._audit, every_s=LISTS_EVERY_S),
            ConsolePage(
                path="divergence", name="Divergence", make=self._divergence, every_s=LISTS_EVERY_S
            ),
            AskedPage(path=PEEK, name="Records", make=Peeker(configuration).page),
        ]
        program = f"failover serve on {socket.gethostname()}"
        self.browse: Final = Console(program, pages).browse

    async def run(self) -> None:
        """Look at what somebody reads, until cancelled."""
        async with trio.open_nursery() as nursery:
            for run in (
                self._summaries.run,
                self._lines.run,
                self._journals.run,
                self._rehearsals.run,
                self._audits.run,
                self._sites.run,
                self._differences.run,
            ):
                nursery.start_soon(run)

    async def _overview(self, _: Mapping[str, str]) -> PageParts:
        await want_all(self._audits, self._summaries, self._rehearsals)
        audits = self._audits.known()
        sets = []
        for name, ready in self._readiness.items():  # applications' sets, not that of rehearsals
            found, looked_ms = ready.seen()
            kept = self._statuses[name]
            sets.append(
                SetSeen(
                    name=self._shown(name),
                    status=kept.status,
                    why_not=kept.why_not,
                    readiness=found,
                    looked_ms=looked_ms,
                    why_not_ready=ready.why_not,
                    audit=None if audits is None else audits[self._shown(name)],
                )
            )
        return overview_page(
            OverviewSeen(
                sets=sets,
                summaries=self._summaries.known(),
                file=self._configuration.file,
                rehearsals=self._rehearsals.known(),
            )
        )

    async def _flows(self, _: Mapping[str, str]) -> PageParts:
        seen = await self._summaries.newest()
        return flows_page(None, ()) if seen is None else flows_page(seen.flows, seen.faults)

    async def _partitions(self, query: Mapping[str, str]) -> PageParts:
        return partitions_page(await self._lines.newest(), query)

    async def _groups(self, query: Mapping[str, str]) -> PageParts:
        return groups_page(await self._lines.newest(), query)

    async def _promotions(self, query: Mapping[str, str]) -> PageParts:
        return promotions_page(self._with_running(await self._journals.newest()), query)

    async def _rehearsals_page(self, query: Mapping[str, str]) -> PageParts:
        today = {
            self._shown(name): (kept.seen()[0], kept.why_not)
            for name, kept in self._readiness.items()
        }
        return rehearsals_page(await self._rehearsals.newest(), today, query)

    async def _audit(self, query: Mapping[str, str]) -> PageParts:
        return audit_page(await self._audits.newest(), query)

    async def _both(self, query: Mapping[str, str]) -> PageParts:
        return sites_page(await self._sites.newest(), query)

    async def _divergence(self, _: Mapping[str, str]) -> PageParts:
        return differences_page(await self._differences.newest())

    def _shown(self, name: str) -> str:
        """Return the name of a set as pages show it: of a file without sets there is none."""
        return name if self._has_sets else ""

    def _with_running(
        self, journals: Mapping[str, Sequence[Journal] | str] | None
    ) -> Mapping[str, Sequence[Journal] | str] | None:
        """Return journals with the running one as it was seen last, which is newer."""
        if journals is None:
            return None
        running = {
            self._shown(name): kept.status.unfinished
            for name, kept in self._statuses.items()
            if kept.status is not None and kept.status.unfinished is not None
        }
        return {
            name: found
            if isinstance(found, str) or name not in running
            else [
                *(one for one in found if one.epoch != running[name].epoch),
                running[name],
            ]
            for name, found in journals.items()
        }

    async def _look_at_journals(self) -> Mapping[str, Sequence[Journal] | str]:
        """Read every journal that the witness holds."""
        found: dict[str, Sequence[Journal] | str] = {}
        try:
            async with open_witness(self._configuration.coordination) as zookeeper:
                for name, of_set in self._by_set.items():
                    try:
                        journals = await read_journals(zookeeper, of_set.coordination.paths)
                        found[self._shown(name)] = [understood(one) for one in journals]
                    except JournalUnreadable as fault:
                        found[self._shown(name)] = str(fault)
        except ZooKeeperFault as fault:
            return {
                self._shown(name): f"the witness does not tell: {fault}" for name in self._by_set
            }
        return found

    async def _look_at_rehearsals(self) -> RehearsalsSeen:
        """Read the rehearsals that the witness keeps, where the file has any."""
        coordination = self._configuration.coordination
        if self._configuration.failover.rehearsal is None:
            return RehearsalsSeen(is_configured=False)
        try:
            async with open_witness(coordination) as zookeeper:
                return RehearsalsSeen(kept=await read_rehearsals(zookeeper, coordination.paths))
        except (ZooKeeperFault, RehearsalUnreadable) as fault:
            return RehearsalsSeen(why_not=f"the witness does not tell: {fault}")

    async def _look_at_differences(self) -> Mapping[str, DifferencesSeen]:
        """Compare the logs of each set, one after the other."""
        return {
            self._shown(name): await look_at_differences(of_set)
            for name, of_set in self._by_set.items()
        }

    async def _look_at_audits(self) -> Mapping[str, AuditSeen]:
        """Read the results of each set's audit."""
        found: dict[str, AuditSeen] = {}
        for name, of_set in self._by_set.items():
            read = partial(read_audit_folder, of_set.audit.output, wall_ms())
            found[self._shown(name)] = await trio.to_thread.run_sync(read)
        return found

"""The console of `mirror run`: what this process knows of its own flows."""

import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final

import trio

from mirror.flow.runner import FlowRunner
from mirror.report.flow_summaries import FlowSummaries
from mirror.report.pages import flow_report
from runtime.console.console import Console, ConsolePage
from runtime.console.flow_lines import FlowsSeen, lines_of
from runtime.console.flow_pages import (
    faults_list,
    flows_page,
    flows_table,
    groups_page,
    partitions_page,
)
from runtime.console.frame import PagePart, PageParts
from runtime.console.tables import when
from runtime.console.watched import Watched
from runtime.pages.markup import shown
from runtime.process.clock import wall_ms

LISTS_EVERY_S: Final = 5.0


class MirrorConsole:
    """All pages, and the look that is taken while somebody reads the long ones."""

    def __init__(self, runners: Sequence[FlowRunner], summaries: FlowSummaries) -> None:
        self._runners = runners
        self._summaries = summaries
        self._lines = Watched("partitions and groups", self._look, LISTS_EVERY_S)
        pages = [
            ConsolePage(path="", name="Overview", make=self._overview),
            ConsolePage(path="flows", name="Flows", make=self._flows, every_s=LISTS_EVERY_S),
            self._list("partitions", "Partitions", partitions_page),
            self._list("groups", "Groups", groups_page),
        ]
        self.browse = Console(f"mirror run on {socket.gethostname()}", pages).browse

    async def run(self) -> None:
        """Look while somebody reads, until cancelled."""
        await self._lines.run()

    def _list(
        self,
        path: str,
        name: str,
        page: Callable[[FlowsSeen | None, Mapping[str, str]], PageParts],
    ) -> ConsolePage:
        make: Callable[[Mapping[str, str]], Awaitable[PageParts]] = partial(self._made, page)
        return ConsolePage(path=path, name=name, make=make, every_s=LISTS_EVERY_S)

    async def _made(
        self,
        page: Callable[[FlowsSeen | None, Mapping[str, str]], PageParts],
        query: Mapping[str, str],
    ) -> PageParts:
        return page(await self._lines.newest(), query)

    async def _look(self) -> FlowsSeen:
        reports = [("", await flow_report(runner)) for runner in self._runners]
        return await lines_of(reports, wall_ms())

    async def _flows(self, _: Mapping[str, str]) -> PageParts:
        await trio.lowlevel.checkpoint()
        return flows_page(self._summaries.newest() or None, ())

    async def _overview(self, _: Mapping[str, str]) -> PageParts:
        await trio.lowlevel.checkpoint()
        flows = self._summaries.newest()
        faults = [f"{one.flow}: {fault}" for one in flows for fault in one.faults]
        taken = min((one.taken_ms for one in flows), default=None)
        parts = [
            PagePart(
                "flows",
                "<h2>Flows of this process</h2>"
                + (flows_table(flows) if flows else "<p>The first look at them is under way.</p>")
                + ("" if taken is None else f'<p class="soft">As of {when(taken)}.</p>'),
            )
        ]
        if faults:
            parts.insert(
                0, PagePart("faults", f"<h2>What does not work now</h2>{faults_list(faults)}")
            )
        said = (
            "This is one mirror process. Which site is active, whether a failover could begin, and"
            " what it would cost, the console of failover serve tells."
        )
        parts.append(PagePart("elsewhere", f"<p>{shown(said)}</p>"))
        return PageParts(title="Mirror", parts=parts)

"""A console that shows what `tests.failover.serve.console.seen` has, for browsers."""

from collections.abc import Callable, Mapping
from functools import partial

import trio
from prometheus_client import CollectorRegistry

from failover.serve.console.audits import audit_page
from failover.serve.console.differences import differences_page
from failover.serve.console.overview import overview_page
from failover.serve.console.promotions import promotions_page
from failover.serve.console.rehearsals import rehearsals_page
from failover.serve.console.sites import sites_page
from failover.serve.peek.peek_page import AskedPeek, peek_page
from runtime.console.console import AskedPage, Console, ConsolePage
from runtime.console.flow_lines import FlowsSeen
from runtime.console.flow_pages import flows_page, groups_page, partitions_page
from runtime.console.frame import PageParts
from runtime.pages.browsing import PageRequest
from runtime.pages.metrics import serve_metrics
from runtime.process.clock import wall_ms
from tests.failover.serve.console.seen import (
    FILE,
    HOSTILE,
    audit,
    differences,
    many,
    overview,
    peek_answer,
    rehearsals,
    running,
    set_seen,
    sites,
    status,
    summary,
)


class ShownConsole:
    """All pages of it; `is_promoting` shows a promotion under way."""

    def __init__(self, partitions: int, groups: int) -> None:
        self._lines = many(partitions, groups, now_ms=wall_ms())
        self.is_promoting = False

    async def serve(
        self, port: int = 0, *, task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Serve until cancelled; report the port."""
        pages: list[ConsolePage | AskedPage] = [
            ConsolePage(path="", name="Overview", make=self._overview, every_s=0.5),
            ConsolePage(path="flows", name="Flows", make=self._flows),
            ConsolePage(
                path="partitions", name="Partitions", make=partial(self._list, partitions_page)
            ),
            ConsolePage(path="groups", name="Groups", make=partial(self._list, groups_page)),
            ConsolePage(path="sites", name="Sites", make=self._sites),
            ConsolePage(path="promotions", name="Promotions", make=self._promotions),
            ConsolePage(path="rehearsals", name="Rehearsals", make=self._rehearsals),
            ConsolePage(path="audit", name="Audit", make=self._audit),
            ConsolePage(path="divergence", name="Divergence", make=self._divergence),
            AskedPage(path="peek", name="Records", make=self._peek),
        ]
        console = Console("failover serve on ops-1", pages)
        await serve_metrics(
            "127.0.0.1",
            port,
            registry=CollectorRegistry(),
            browse=console.browse,
            task_status=task_status,
        )

    async def _overview(self, _: Mapping[str, str]) -> PageParts:
        await trio.lowlevel.checkpoint()
        now = wall_ms()
        found = status(unfinished=running(now) if self.is_promoting else None)
        return overview_page(overview(set_seen(found=found, now_ms=now), now_ms=now))

    async def _flows(self, _: Mapping[str, str]) -> PageParts:
        await trio.lowlevel.checkpoint()
        flows = [summary(now_ms=wall_ms()), summary(HOSTILE, lag=None, now_ms=wall_ms())]
        return flows_page(flows, [f"{HOSTILE}: no daemon runs this flow"])

    async def _list(
        self,
        page: Callable[[FlowsSeen | None, Mapping[str, str]], PageParts],
        query: Mapping[str, str],
    ) -> PageParts:
        await trio.lowlevel.checkpoint()
        return page(self._lines, query)

    async def _promotions(self, query: Mapping[str, str]) -> PageParts:
        await trio.lowlevel.checkpoint()
        return promotions_page({"": [running(wall_ms())]}, query)

    async def _sites(self, query: Mapping[str, str]) -> PageParts:
        await trio.lowlevel.checkpoint()
        return sites_page(sites(now_ms=wall_ms()), query)

    async def _divergence(self, _: Mapping[str, str]) -> PageParts:
        await trio.lowlevel.checkpoint()
        return differences_page({"": differences(now_ms=wall_ms())})

    async def _rehearsals(self, query: Mapping[str, str]) -> PageParts:
        await trio.lowlevel.checkpoint()
        today = {"": (set_seen().readiness, "")}
        return rehearsals_page(rehearsals(now_ms=wall_ms()), today, query)

    async def _peek(self, request: PageRequest) -> PageParts:
        await trio.lowlevel.checkpoint()
        asked = AskedPeek(sites=("dc1", "dc2"), fields=request.query, is_on=True, file=FILE)
        return peek_page(asked, peek_answer() if request.query else None)

    async def _audit(self, query: Mapping[str, str]) -> PageParts:
        await trio.lowlevel.checkpoint()
        return audit_page({"": audit(now_ms=wall_ms())}, query)

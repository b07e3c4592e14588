"""What the mirrors say of flows, partitions and groups: each is asked for its own page."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import trio

from runtime.configuration.config import Configuration
from runtime.configuration.witness_session import open_witness
from runtime.console.flow_lines import FlowsSeen, lines_of
from runtime.console.flow_summary import FlowSummary, decode_summary, merged_summary
from runtime.coordination.flow_workers import read_workers
from runtime.coordination.witness import WitnessGarbled, WorkerInfo
from runtime.coordination.zookeeper import ZooKeeperFault
from runtime.pages.page_reader import PageUnread, read_page
from runtime.process.clock import wall_ms
from wire.values import frozen

SUMMARIES: Final = "/status/flows"
WHOLE: Final = "/status"


@frozen
class SummariesSeen:
    """The flows whose mirrors have answered, and why others are not known."""

    flows: Sequence[FlowSummary]
    faults: Sequence[str] = ()


@frozen
class _Told:
    """What each worker of a flow has told, by flow, the leading one first."""

    by_flow: Mapping[str, Sequence[tuple[str, Mapping[str, Any]]]]
    faults: Sequence[str] = ()


async def look_at_summaries(configuration: Configuration) -> SummariesSeen:
    """Ask every mirror for what it says of its flows every few seconds."""
    told = await _ask_all(configuration, SUMMARIES)
    flows: list[FlowSummary] = []
    faults = list(told.faults)
    for name, reports in told.by_flow.items():
        try:
            shares = [decode_summary(found) for _, found in reports]
        except (ValueError, KeyError, TypeError) as fault:
            faults.append(f"{name}: its mirror tells it in another form: {fault!r}")
        else:
            if shares:
                flows.append(merged_summary(shares))
    return SummariesSeen(flows=flows, faults=faults)


async def look_at_lines(configuration: Configuration) -> FlowsSeen:
    """Ask every mirror for all of its partitions and groups."""
    told = await _ask_all(configuration, WHOLE)
    reports = [
        (worker, {**found, "groups": found.get("groups") if number == 0 else ()})
        for shares in told.by_flow.values()
        for number, (worker, found) in enumerate(shares)
    ]
    now = wall_ms()
    try:
        return await lines_of(reports, now, told.faults)
    except (ValueError, KeyError, TypeError) as fault:
        faults = [*told.faults, f"a mirror tells its status in another form: {fault!r}"]
        return FlowsSeen(looked_ms=now, partitions=(), groups=(), faults=faults)


async def _ask_all(configuration: Configuration, path: str) -> _Told:
    """Ask each worker of each flow, each process once; who does not answer is a fault."""
    try:
        workers = await _workers(configuration)
    except (ZooKeeperFault, WitnessGarbled) as fault:
        return _Told(by_flow={}, faults=[f"who runs the flows is not known: {fault}"])
    pages: dict[WorkerInfo, Any] = {}
    unread: dict[WorkerInfo, str] = {}

    async def ask(worker: WorkerInfo) -> None:
        read = partial(read_page, worker.metrics_url, path, configuration.metrics.door)
        try:
            pages[worker] = await trio.to_thread.run_sync(read)
        except PageUnread as why:
            unread[worker] = str(why)

    async with trio.open_nursery() as nursery:
        for worker in {one: None for several in workers.values() for one in several}:
            nursery.start_soon(ask, worker)
    by_flow: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
    faults: list[str] = []
    for name, several in workers.items():
        if not several:
            faults.append(f"{name}: no daemon runs this flow")
        of_flow: list[tuple[str, Mapping[str, Any]]] = []
        for worker in several:
            found = unread.get(worker) or _of_flow(pages.get(worker), worker, name)
            if isinstance(found, str):
                faults.append(f"{name}: {found}")
            else:
                of_flow.append((f"{worker.host}:{worker.pid}" if len(several) > 1 else "", found))
        by_flow[name] = of_flow
    return _Told(by_flow=by_flow, faults=faults)


async def _workers(configuration: Configuration) -> dict[str, list[WorkerInfo]]:
    """Return the workers of each flow, the leading one first."""
    found: dict[str, list[WorkerInfo]] = {}
    async with open_witness(configuration.coordination) as zookeeper:
        for of_set in configuration.by_set().values():
            paths = of_set.coordination.paths
            for flow in of_set.flows:
                found[flow.name] = await read_workers(zookeeper, paths, flow.source, flow.target)
    return found


def _of_flow(page: Any, worker: WorkerInfo, flow: str) -> Mapping[str, Any] | str:  # noqa: ANN401 - another process' JSON
    """Return what a page says of a flow, or why it says nothing."""
    who = f"process {worker.pid} on {worker.host}"
    try:
        if (page["pid"], page["started_ms"]) != (worker.pid, worker.started_ms):
            return (
                f"{who} should run it, but process {page['pid']} answers at {worker.metrics_url}:"
                " give its machine a metrics.host that is reached from here"
            )
        for found in page["flows"]:
            if found["flow"] == flow:
                return dict(found)
    except (KeyError, TypeError, ValueError) as fault:
        return f"what {worker.metrics_url} answers is no status of a mirror's: {fault!r}"
    return f"{who} holds the flow, and does not report it yet"

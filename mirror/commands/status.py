"""`mirror status`: ask the running daemons; where there is none, look at both clusters."""

from typing import Final

import trio

from mirror.clusters.links import open_links
from mirror.commands.flow_without_daemon import observe
from mirror.map.known_writers import open_writers
from mirror.report.status import NOT_RUNNING, FlowReport, StatusReport
from mirror.report.worker_statuses import merged
from runtime.configuration.config import Configuration, FlowConfig
from runtime.configuration.witness_session import open_witness
from runtime.coordination.flow_workers import read_workers
from runtime.coordination.witness import WitnessGarbled, WorkerInfo
from runtime.coordination.zookeeper import ZooKeeper, ZooKeeperFault
from runtime.pages.page_door import PageDoor
from runtime.pages.page_reader import PageUnread, read_page
from runtime.process.clock import now_ms

OBSERVE_TIMEOUT_S: Final = 20.0


class NobodyAnswers(Exception):
    """No daemon runs the flow, or the one that should does not answer; says which."""


async def collect(configuration: Configuration) -> StatusReport:
    """Return the state of all flows of the file, each from its daemon if there is one."""
    now = now_ms()
    flows: list[FlowReport] = []
    workers: list[list[WorkerInfo] | str]
    witness_fault: list[str] = []
    coordination = configuration.coordination
    shown = [(one, flow) for one in configuration.by_set().values() for flow in one.flows]
    try:
        async with open_witness(coordination) as zookeeper:
            workers = [await workers_of(zookeeper, one, flow) for one, flow in shown]
    except (ZooKeeperFault, WitnessGarbled) as fault:
        reason = f"who runs it is not known: {fault}"
        workers = [reason for _ in shown]
        witness_fault = [f"witness: {fault}"]
    for (one, flow), of_flow in zip(shown, workers, strict=True):
        found = await _flow(one, flow, of_flow)
        flows.append({**found, "faults": [*witness_fault, *found["faults"]]})
    return {"program": "mirror", "pid": 0, "started_ms": 0, "now_ms": now, "flows": flows}


def not_seen(report: StatusReport) -> list[str]:
    """Return the faults that hid a part of the state from us; a daemon's own are not among them."""
    flows = [flow for flow in report["flows"] if flow["role"] == NOT_RUNNING]
    return [f"flow {flow['flow']}: {fault}" for flow in flows for fault in flow["faults"]]


async def workers_of(
    zookeeper: ZooKeeper, configuration: Configuration, flow: FlowConfig
) -> list[WorkerInfo] | str:
    """Return the workers of the flow, the leading one first, or why there is none.

    Raises ZooKeeperFault, WitnessGarbled.
    """
    paths = configuration.coordination.paths
    found = await read_workers(zookeeper, paths, flow.source, flow.target)
    return found or "no daemon runs this flow"


async def _flow(
    configuration: Configuration, flow: FlowConfig, workers: list[WorkerInfo] | str
) -> FlowReport:
    """Return what the workers say together; one that does not answer is a fault of the flow."""
    reports: list[tuple[str, FlowReport]] = []
    silent = [workers] if isinstance(workers, str) else []
    for worker in () if isinstance(workers, str) else workers:
        try:
            reports.append(
                (
                    f"{worker.host}:{worker.pid}",
                    await _ask(worker, flow, configuration.metrics.door),
                )
            )
        except NobodyAnswers as nobody:
            silent.append(str(nobody))
    if reports:
        found = merged(reports)
        return {**found, "faults": [*silent, *found["faults"]]}
    reason = "; ".join(silent)
    clusters = configuration.clusters
    with trio.move_on_after(OBSERVE_TIMEOUT_S):
        async with (
            open_links(flow, clusters[flow.source], clusters[flow.target]) as links,
            open_writers(configuration, says_so=False) as writers_of,
        ):
            writers = writers_of(flow.source, flow.target)
            return await observe(flow, links, writers, reason=reason, now_ms=now_ms())
    return {
        "flow": flow.name,
        "role": NOT_RUNNING,
        "since_ms": now_ms(),
        "reason": reason,
        "faults": [f"the clusters did not answer within {OBSERVE_TIMEOUT_S:g} s"],
        "refused_settings": [],
        "speed": None,
        "groups_by": "",
        "partitions": [],
        "groups": [],
    }


async def _ask(worker: WorkerInfo, flow: FlowConfig, door: PageDoor) -> FlowReport:
    """Return the flow as its daemon reports it; raises NobodyAnswers."""
    who = f"process {worker.pid} on {worker.host}"
    try:
        found = await trio.to_thread.run_sync(read_page, worker.metrics_url, "/status", door)
        is_asked = (found["pid"], found["started_ms"]) == (worker.pid, worker.started_ms)
        report: FlowReport
        for report in found["flows"] if is_asked else ():
            if report["flow"] == flow.name:
                return report
    except PageUnread as why:
        raise NobodyAnswers(f"{who} should run this flow, but {why}") from why
    except (KeyError, TypeError) as fault:
        raise NobodyAnswers(
            f"{who} should run this flow, but what {worker.metrics_url} answers is no status of a"
            f" mirror's: {fault!r}"
        ) from fault
    if not is_asked:
        raise NobodyAnswers(
            f"{who} should run this flow, but process {found['pid']} answers at "
            f"{worker.metrics_url}: give its machine a metrics.host that is reached from here"
        )
    raise NobodyAnswers(f"{who} holds the flow, but does not report it")

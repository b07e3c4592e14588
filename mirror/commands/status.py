"""`mirror status`: ask the running daemons; where there is none, look at both clusters."""

import http.client
import ssl
from typing import Any, Final
from urllib.parse import urlsplit

import trio

from mirror.clusters.links import open_links
from mirror.commands.flow_without_daemon import observe
from mirror.map.known_writers import open_writers
from mirror.report.status import NOT_RUNNING, FlowReport, StatusReport
from mirror.report.worker_statuses import merged
from mirror.workers.handover import WorkerNode
from runtime.configuration.config import Configuration, FlowConfig
from runtime.configuration.witness_session import open_witness
from runtime.coordination.witness import WitnessGarbled, WorkerInfo
from runtime.coordination.zookeeper import ZooKeeper, ZooKeeperFault
from runtime.foreign_json import MAX_BYTES, read_json
from runtime.pages.page_door import PageDoor, reader_context
from runtime.process.clock import now_ms

ASK_TIMEOUT_S: Final = 5.0
OBSERVE_TIMEOUT_S: Final = 20.0


class Shut(http.client.HTTPException):
    """A page is not shown to whom we say we are."""


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
    node = await zookeeper.get(paths.worker(flow.source, flow.target))
    found = [] if node is None else [WorkerInfo.decode(node.data)]
    members = paths.workers(flow.source, flow.target)
    for name in await zookeeper.children(members) or ():
        node = await zookeeper.get(f"{members}/{name}")
        info = None if node is None else WorkerNode.decode(node.data).info
        if info is not None and info not in found:
            found.append(info)
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
        found = await trio.to_thread.run_sync(_get_status, worker.metrics_url, door)
        is_asked = (found["pid"], found["started_ms"]) == (worker.pid, worker.started_ms)
        report: FlowReport
        for report in found["flows"] if is_asked else ():
            if report["flow"] == flow.name:
                return report
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError) as fault:
        why = _words(fault, worker.metrics_url, door)
        raise NobodyAnswers(f"{who} should run this flow, but {why}") from fault
    if not is_asked:
        raise NobodyAnswers(
            f"{who} should run this flow, but process {found['pid']} answers at "
            f"{worker.metrics_url}: give its machine a metrics.host that is reached from here"
        )
    raise NobodyAnswers(f"{who} holds the flow, but does not report it")


def _words(fault: Exception, url: str, door: PageDoor) -> str:
    """Say why a page was not read, and what to do."""
    match fault:
        case TimeoutError():
            return (
                f"{url} says nothing within {ASK_TIMEOUT_S:g} s: where the process hangs, end it;"
                " another worker, or its next start, goes on where it was"
            )
        case Shut():
            return (
                f"{url} refuses what `metrics` of this file has us show ({door.origin}): give both"
                " programs the same one"
            )
        case OSError():
            return f"{url} cannot be asked: {fault.strerror or fault}"
        case _:
            return f"what {url} answers is no status of a mirror's: {fault!r}"


def _get_status(metrics_url: str, door: PageDoor) -> Any:  # noqa: ANN401 - another process' JSON
    parts = urlsplit(metrics_url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=ASK_TIMEOUT_S)
    if parts.scheme == "https":
        context = ssl.create_default_context() if door.tls is None else reader_context(door.tls)
        connection = http.client.HTTPSConnection(
            parts.netloc, timeout=ASK_TIMEOUT_S, context=context
        )
    shown = door.authorization()
    try:
        connection.request(
            "GET", "/status", headers={} if shown is None else {"Authorization": shown}
        )
        response = connection.getresponse()
        body = response.read(MAX_BYTES + 1)
    finally:
        connection.close()
    if response.status == http.client.UNAUTHORIZED:
        raise Shut
    if response.status != http.client.OK:
        raise http.client.HTTPException(f"/status answered {response.status}")
    return read_json(body)

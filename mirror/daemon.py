"""`mirror run`: all flows of the file in one process, its HTTP endpoint, and a graceful end."""

import gc
import logging
import os
import signal
import socket
from functools import partial
from typing import Final

import trio

from mirror.flow.run_decision import Role
from mirror.flow.runner import FlowRunner
from mirror.reload import reloaded
from mirror.report.console import MirrorConsole
from mirror.report.exporter import FlowCollector
from mirror.report.flow_summaries import FlowSummaries
from mirror.report.gauges import many_gauges
from mirror.report.pages import status_page
from mirror.state.measurements import FlowMeasurements
from mirror.state.partition_state import PartitionState
from runtime.configuration.config import Configuration, ConfigurationError, load
from runtime.configuration.reading.addresses import in_brackets, parse_address
from runtime.coordination.witness import WorkerInfo
from runtime.pages.exposition import program_registry
from runtime.pages.metrics import serve_metrics
from runtime.process.clock import now_ms
from runtime.process.signals import cancel_on_signal, take_held_hangups

_LOG = logging.getLogger(__name__)

EVERYWHERE: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104 - what may stand in the file
STOP_S: Final = 6.5
"""Flows may take so long to settle; closing takes up to three more, ten are promised."""
GARBAGE_THRESHOLDS: Final = (50_000, 20, 20)
"""Batches under way are ten thousands of small objects, none of them in a cycle: with Python's 700
for the first of these, looking through them takes a tenth of all processor time."""
NOT_READY: Final = frozenset(
    {PartitionState.DISCOVERING, PartitionState.POSITIONING, PartitionState.WAITING}
)


async def run_daemon(configuration: Configuration) -> None:
    """Run until SIGINT or SIGTERM; raises runtime.pages.metrics.AddressInUse."""
    gc.freeze()  # what the imports left stays as long as the program
    gc.set_threshold(*GARBAGE_THRESHOLDS)
    runners: list[FlowRunner] = []
    pages = configuration.metrics
    pid, started_ms = os.getpid(), now_ms()

    async def status() -> tuple[str, bytes]:
        return "application/json", await status_page(runners, pid=pid, started_ms=started_ms)

    registry = program_registry("mirror")
    registry.register(FlowCollector(runners))
    summaries = FlowSummaries(runners)
    flows = partial(summaries.page, pid=pid, started_ms=started_ms)
    console = MirrorConsole(runners, summaries)
    until_asked = trio.CancelScope()
    async with trio.open_nursery() as nursery:
        await nursery.start(cancel_on_signal, until_asked)
        serve = partial(
            serve_metrics,
            ready=partial(is_ready, runners),
            routes={"/status": status, "/status/flows": flows},
            registry=registry,
            many=partial(many_gauges, runners, pages.granularity),
            browse=console.browse,
            door=pages.door,
        )
        port = await nursery.start(serve, pages.host, pages.mirror_port)
        reached = pages.advertised_host or reached_at(
            pages.host, configuration.coordination.zookeeper
        )
        worker = WorkerInfo(
            host=socket.gethostname(),
            pid=pid,
            metrics_url=f"{pages.door.scheme}://{reached}:{port}/metrics",
            started_ms=started_ms,
        )
        for of_set in configuration.by_set().values():
            for flow in of_set.flows:
                runner = FlowRunner(of_set, flow, worker, FlowMeasurements(flow.name))
                runners.append(runner)
                nursery.start_soon(runner.run)
        nursery.start_soon(summaries.run)
        nursery.start_soon(console.run)
        names = ", ".join(runner.config.name for runner in runners)
        _LOG.info("flows %s; metrics on port %d", names, port)
        await nursery.start(_reload_on_hangup, configuration, runners)
        with until_asked:
            await trio.sleep_forever()
        await _stop(runners)
        nursery.cancel_scope.cancel()


def reached_at(bind_host: str, zookeeper: str) -> str:
    """Return the address at which others find us: of all addresses the one towards the witness.

    ``zookeeper`` lists `host:port`. Where none of them is found, it is the name of this machine.
    """
    if bind_host not in EVERYWHERE:
        return in_brackets(bind_host)
    for address in zookeeper.split(","):
        name, port = parse_address(address)
        try:
            [(family, *_, towards), *_] = socket.getaddrinfo(name, port, type=socket.SOCK_DGRAM)
            with socket.socket(family, socket.SOCK_DGRAM) as way:
                way.connect(towards)  # sends nothing
                found: str = way.getsockname()[0]
        except OSError:
            continue
        return in_brackets(found)
    return socket.gethostname()


async def _reload_on_hangup(
    configuration: Configuration,
    runners: list[FlowRunner],
    *,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Read the file again at each SIGHUP; one that is wrong changes nothing."""
    with trio.open_signal_receiver(signal.SIGHUP) as signals:
        task_status.started()
        take_held_hangups()
        async for _ in signals:
            try:
                new = load(configuration.file)
            except ConfigurationError as wrong:
                for mistake in wrong.each():
                    _LOG.error("not reloaded, all goes on as before: %s", mistake)
                continue
            running = {runner.config.name: runner.config for runner in runners}
            found = reloaded(configuration, running, new)
            for runner in runners:
                if found.flows[runner.config.name] != runner.config:
                    runner.take_config(found.flows[runner.config.name])
            for line in found.taken:
                _LOG.info("reloaded: %s", line)
            for line in found.needs_restart:
                _LOG.warning("reloaded: needs a restart: %s", line)
            if not found.taken and not found.needs_restart:
                _LOG.info("reloaded: nothing has changed")


async def _stop(runners: list[FlowRunner]) -> None:
    """Let every flow settle, all at once."""
    with trio.move_on_after(STOP_S) as limit:
        async with trio.open_nursery() as nursery:
            for runner in runners:
                nursery.start_soon(runner.stop)
    if limit.cancelled_caught:
        _LOG.warning("stopped before everything under way was answered; nothing is lost by it")


def is_ready(runners: list[FlowRunner]) -> bool:
    """Whether every flow is as it should be: all its partitions are known and placed."""
    return bool(runners) and all(_is_flow_ready(runner) for runner in runners)


def _is_flow_ready(runner: FlowRunner) -> bool:
    if runner.role is Role.PAUSED:
        return True
    engine = runner.engine
    if runner.role is not Role.RUNNING or engine is None or runner.membership is None:
        return False
    if not engine.is_started or not runner.membership.has_share:
        return False
    return all(one.state not in NOT_READY for one in engine.flow.partitions.own.values())

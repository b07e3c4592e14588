"""`mirror pause`, `resume` and `restart`: leave an order in the witness for the flow's daemon.

An order lasts: a daemon carries it out when it is started, and keeps to it after a restart. One to
restart something lasts until the active site changes.
"""

import getpass
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, TypeAlias

from mirror.state.orders import (
    DECISIONS,
    How,
    OrderRefused,
    Orders,
    Pause,
    Restart,
    Scope,
)
from mirror.workers.handover import Assignment
from runtime.configuration.config import Configuration, FlowConfig
from runtime.configuration.witness_session import open_witness
from runtime.coordination.witness import WitnessGarbled, WitnessPaths, WorkerInfo
from runtime.coordination.zookeeper import BadVersion, NodeExists, NoNode, ZooKeeper, ZooKeeperFault
from runtime.process.clock import now_ms

OPTIONS: Final[Mapping[How, str]] = {
    How.QUARANTINE: "--quarantine",
    How.MERGE: "--merge",
    How.ANEW: "--from-earliest",
}
"""The decisions as they are typed."""


Change: TypeAlias = Callable[[Orders, int | None], Orders]
"""Makes the orders anew, given the active site's epoch."""


class OrderFailed(Exception):
    """The order was not left: no such flow, or the witness does not answer."""


def flow_named(configuration: Configuration, name: str) -> FlowConfig:
    """Return the flow called ``dc1->dc2`` or, as shells like it better, ``dc1-dc2``."""
    for flow in configuration.flows:
        if name in {flow.name, f"{flow.source}-{flow.target}"}:
            return flow
    known = ", ".join(f"{flow.source}-{flow.target}" for flow in configuration.flows)
    raise OrderFailed(f"no flow is called {name!r}; there are {known}")


async def pause(configuration: Configuration, flow: str, scope: Scope) -> str:
    """Pause a scope until it is resumed; return what to tell."""
    order = Pause(scope=scope, by=_who(), since_ms=now_ms())
    told = f"{scope} is paused"

    def change(old: Orders, _: int | None) -> Orders:
        return old.paused(order)

    return await _order(configuration, flow, scope, lambda: told, change)


async def resume(configuration: Configuration, flow: str, scope: Scope) -> str:
    """Take back what was paused; return what to tell."""
    told = f"{scope} is resumed"

    def change(old: Orders, _: int | None) -> Orders:
        return old.resumed(scope)

    return await _order(configuration, flow, scope, lambda: told, change)


async def restart(configuration: Configuration, flow: str, scope: Scope, how: How) -> str:
    """Have a scope started again; return what to tell."""
    if how is How.ANEW and (scope.topic is None or scope.partition is not None):
        raise OrderRefused("--from-earliest deletes the target's copy: it needs one TOPIC, whole")
    given = Restart(scope=scope, how=how, by=_who(), at_ms=now_ms())
    replaced: tuple[Restart, ...] = ()

    def change(old: Orders, epoch: int | None) -> Orders:
        nonlocal replaced
        order = replace(given, epoch=epoch)
        if how not in DECISIONS:
            return replace(old, restarts=(*old.restarts, order))
        orders, replaced = old.decided(order)
        return orders

    def tell() -> str:
        others = ", ".join(f"{OPTIONS[one.how]} ({one.scope}, by {one.by})" for one in replaced)
        instead = f"; that is no more done which waited: {others}" if others else ""
        return f"{scope} is to be restarted{instead}"

    return await _order(configuration, flow, scope, tell, change)


async def _order(
    configuration: Configuration,
    name: str,
    scope: Scope,
    tell: Callable[[], str],
    change: Change,
) -> str:
    flow = flow_named(configuration, name)
    coordination = configuration.coordination
    paths = coordination.paths
    try:
        async with open_witness(coordination) as zookeeper:
            epoch = await _epoch(zookeeper, paths, flow)
            await _change(
                zookeeper, paths.orders(flow.source, flow.target), lambda old: change(old, epoch)
            )
            worker = await zookeeper.get(paths.worker(flow.source, flow.target))
            workers = await zookeeper.children(paths.workers(flow.source, flow.target)) or ()
            assignment = await zookeeper.get(paths.assignment(flow.source, flow.target))
            told = tell()
            if assignment is not None and not _is_mirrored(scope, assignment.data):
                told += " (nothing by that name is mirrored now)"
            running = None if worker is None else WorkerInfo.decode(worker.data)
    except (ZooKeeperFault, WitnessGarbled) as fault:
        raise OrderFailed(str(fault)) from fault
    if running is None:
        return f"{flow.name}: {told}; no daemon runs the flow, the next one carries it out"
    execution = f"process {running.pid} on {running.host} carries it out"
    if len(workers) > 1:
        execution = f"the {len(workers)} workers carry it out, of which process {running.pid} leads"
    return f"{flow.name}: {told}; {execution}"


async def _epoch(zookeeper: ZooKeeper, paths: WitnessPaths, flow: FlowConfig) -> int | None:
    """Return the active site's epoch; None where no promotion concerns the flow."""
    if not flow.heeds_promotions:
        return None
    node = await zookeeper.get(paths.active)
    return 0 if node is None else paths.read_active(node.data).epoch


def _is_mirrored(scope: Scope, assignment: bytes) -> bool:
    """Whether some partition is in the scope; an order for one that comes later holds too."""
    topic_partitions = Assignment.decode(assignment).mirrored_by
    return scope.topic is None or any(
        scope.covers(*topic_partition) for topic_partition in topic_partitions
    )


async def _change(zookeeper: ZooKeeper, path: str, change: Callable[[Orders], Orders]) -> None:
    """Write the changed orders over those that were read, again if somebody was quicker."""
    while True:
        node = await zookeeper.get(path)
        try:
            if node is None:
                await zookeeper.create(path, change(Orders()).encode(), make_parents=True)
            else:
                changed = change(Orders.read(path, node.data))
                await zookeeper.set(path, changed.encode(), version=node.version)
        except (NodeExists, BadVersion, NoNode):
            continue
        return


def _who() -> str:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user often has a number only
        user = f"user {os.getuid()}"
    return f"{user}@{socket.gethostname()}"

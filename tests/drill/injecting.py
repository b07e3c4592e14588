"""Carry planned faults out on a cluster, and write down when each really began and ended."""

import signal
from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from time import monotonic

import trio

from tests.drill.cluster import CLIENTS, Cluster
from tests.drill.faults import Kind, Planned
from tests.drill.history import Fault
from tests.drill.unclean import elect_uncleanly


async def inject(
    cluster: Cluster, planned: Sequence[Planned], note: Callable[[Fault], None]
) -> None:
    """Do everything as planned; returns when the last fault has ended.

    A process that takes its time to end is left alone until it is back: what was planned for it
    meanwhile begins later, or not at all.
    """
    began_s = trio.current_time()
    turns = {target: trio.Lock() for fault in planned for target in fault.targets}

    async def one(fault: Planned) -> None:
        await trio.sleep_until(began_s + fault.at_s)
        async with AsyncExitStack() as held:
            for target in sorted(set(fault.targets) - {CLIENTS}):
                await held.enter_async_context(turns[target])
            if trio.current_time() >= began_s + fault.ends_s:
                return
            at_s = monotonic()
            outcome = await _begin(cluster, fault)
            await trio.sleep_until(began_s + fault.ends_s)
            _end(cluster, fault)
            note(Fault(at_s=at_s, ended_s=monotonic(), what=f"{fault}{outcome}"))

    async with trio.open_nursery() as nursery:
        for fault in planned:
            nursery.start_soon(one, fault)


async def _begin(cluster: Cluster, fault: Planned) -> str:
    """Do it; return what there is to say beyond the plan."""
    match fault.kind:
        case Kind.UNCLEAN:
            late, leader = fault.targets
            return f": {await elect_uncleanly(cluster, late, leader)} partitions led by {late}"
        case Kind.KILL:
            await cluster.stop(fault.targets[0], signal.SIGKILL)
        case Kind.TERMINATE:
            await cluster.stop(fault.targets[0], signal.SIGTERM)
        case Kind.PAUSE:
            cluster.signal(fault.targets[0], signal.SIGSTOP)
        case Kind.RESET:
            for maker, server in _links(cluster, fault):
                cluster.links.reset(maker, server)
        case Kind.CUT | Kind.CUT_ONE_WAY | Kind.ISOLATE:
            for maker, server in _links(cluster, fault):
                cluster.links.cut(maker, server)
    return ""


def _end(cluster: Cluster, fault: Planned) -> None:
    match fault.kind:
        case Kind.KILL | Kind.TERMINATE:
            cluster.start(fault.targets[0])
        case Kind.UNCLEAN:
            cluster.start(fault.targets[1])
        case Kind.PAUSE:
            cluster.signal(fault.targets[0], signal.SIGCONT)
        case Kind.RESET:
            return
        case Kind.CUT | Kind.CUT_ONE_WAY | Kind.ISOLATE:
            for maker, server in _links(cluster, fault):
                cluster.links.heal(maker, server)


def _links(cluster: Cluster, fault: Planned) -> Iterable[tuple[str, str]]:
    """Return who connects to whom, as far as the fault is about it."""
    if fault.kind is Kind.ISOLATE:
        [name] = fault.targets
        others = {*cluster.processes, CLIENTS} - {name}
        return [(name, other) for other in others] + [(other, name) for other in others]
    one, other = fault.targets
    both = [(one, other), (other, one)]
    return both[:1] if fault.kind is Kind.CUT_ONE_WAY else both

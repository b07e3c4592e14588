"""Stop and start a flow by its command in the witness, and see that it was carried out."""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import replace
from functools import partial

import trio

from failover.journal.execute import StepFailed
from failover.journal.facts import Facts
from failover.journal.store import Superseded
from runtime.configuration.config import FlowConfig
from runtime.coordination.known_ends import KnownEnds
from runtime.coordination.long_nodes import read_document
from runtime.coordination.standstill import Standstill, not_known, read_paused, read_worker
from runtime.coordination.witness import (
    FlowCommand,
    WitnessGarbled,
    WitnessPaths,
    WorkerInfo,
    assigned_partitions,
)
from runtime.coordination.zookeeper import (
    BadVersion,
    Check,
    Create,
    NodeExists,
    NoNode,
    SetData,
    ZNode,
    ZooKeeper,
)
from wire.topic_partition import TopicPartition


class FlowControl:
    """One flow's nodes in the witness."""

    def __init__(self, zookeeper: ZooKeeper, paths: WitnessPaths, flow: FlowConfig) -> None:
        self._zookeeper = zookeeper
        self._name = flow.name
        self._worker = paths.worker(flow.source, flow.target)
        self._workers = paths.workers(flow.source, flow.target)
        self._assignment = paths.assignment(flow.source, flow.target)
        self._known_ends = paths.known_ends(flow.source, flow.target)
        self._known_ends_parts = paths.known_ends_parts(flow.source, flow.target)
        self._orders = paths.orders(flow.source, flow.target)
        self._moves = flow.moves
        self._told_as = f"{flow.source}-{flow.target}"
        self._topic_set = flow.topic_set
        self._command = paths.command(flow.source, flow.target)
        self._acknowledged = paths.acknowledged(flow.source, flow.target)

    async def worker(self) -> WorkerInfo | None:
        """Return who runs the flow, None when nobody does."""
        node = await self._zookeeper.get(self._worker)
        return None if node is None else WorkerInfo.decode(node.data)

    async def command(self) -> FlowCommand | None:
        """Return the command that holds, None when there never was one."""
        return _command(await self._zookeeper.get(self._command))

    async def acknowledged(self) -> FlowCommand | None:
        """Return the command that was last carried out."""
        return _command(await self._zookeeper.get(self._acknowledged))

    async def assigned(self) -> frozenset[TopicPartition]:
        """Return the source's partitions that the flow knew of last; raises WitnessGarbled."""
        node = await self._zookeeper.get(self._assignment)
        return frozenset() if node is None else assigned_partitions(node.data)

    async def standing(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, Standstill]:
        """Return those of these partitions that stand still until somebody decides, with the cause.

        A node that is not understood may tell of any: none of them is known to go on.
        """
        found: list[Standstill] = []
        for name in await self._zookeeper.children(self._workers) or ():
            path = f"{self._workers}/{name}"
            node = await self._zookeeper.get(path)
            try:
                found += () if node is None else read_worker(node.data)
            except WitnessGarbled as fault:
                found += not_known(partitions, path, fault, "start the mirror anew that wrote it")
        orders = await self._zookeeper.get(self._orders)
        try:
            if orders is not None:
                found += read_paused(orders.data, self._told_as, partitions, self._topic_set)
        except WitnessGarbled as fault:
            remedy = "delete the node, and order again what is to be paused"
            found += not_known(partitions, self._orders, fault, remedy)
        return {one.partition: one for one in found if one.partition in partitions}

    async def known_ends(self) -> KnownEnds | None:
        """Return where the source's logs that move ended when the mirror last heard of them.

        None where no mirror has written it down. Raises WitnessGarbled naming the node.
        """
        try:
            node = await read_document(self._zookeeper, self._known_ends, self._known_ends_parts)
            known = None if node is None else KnownEnds.decode(node.data)
        except ValueError as error:  # WitnessGarbled is one, too
            raise WitnessGarbled(f"witness {self._known_ends}: {error}") from error
        if known is None:
            return None
        moving = {where: one for where, one in known.ends.items() if self._moves(where.topic)}
        return replace(known, ends=moving)

    async def start(self, epoch: int, claim: Check) -> None:
        """Command the flow to run; a daemon that is there follows by itself.

        Raises Superseded when the claim, the promotion's journal as we know it, is no more.
        """
        await self._order(FlowCommand(epoch=epoch, run=True), claim)

    async def forbid(self, epoch: int, claim: Check) -> None:
        """Command a flow that rests not to run, and wait for nobody; raises Superseded."""
        await self._order(FlowCommand(epoch=epoch, run=False), claim)

    async def stop(self, epoch: int, timeout_ms: int, claim: Check) -> Facts:
        """Stop the flow and return once everything it had in flight is settled.

        A daemon that dies meanwhile counts as settled. Raises StepFailed after `timeout_ms`, and
        Superseded.
        """
        order = FlowCommand(epoch=epoch, run=False)
        await self._order(order, claim)
        outcome = ""
        with trio.move_on_after(timeout_ms / 1000) as patience:
            async with trio.open_nursery() as nursery:

                async def wait(condition: Callable[[], Awaitable[None]], meaning: str) -> None:
                    nonlocal outcome
                    await condition()
                    outcome = outcome or meaning
                    nursery.cancel_scope.cancel()

                nursery.start_soon(wait, partial(self._wait_acknowledged, order), "settled")
                nursery.start_soon(wait, self._wait_no_worker, "nobody runs it")
        if patience.cancelled_caught:
            acknowledged = _acknowledged_in(await self._zookeeper.get(self._acknowledged))
            raise StepFailed(
                f"the flow {self._name} did not stop within {timeout_ms / 1000:g} s"
                f" (it has acknowledged {acknowledged});"
                " `mirror status` shows what it waits for"
            )
        return {"flow": outcome}

    async def _order(self, order: FlowCommand, claim: Check) -> None:
        """Write the command, unless somebody else goes on with the promotion by now."""
        await self._zookeeper.ensure(self._command.rpartition("/")[0])
        while True:
            known = await self._zookeeper.get(self._command)
            write = SetData if known is not None else Create
            operation = write(path=self._command, data=order.encode())
            try:
                await self._zookeeper.transaction((claim, operation))
            except NodeExists:
                continue
            except (BadVersion, NoNode) as error:
                raise Superseded(f"{claim.path} was written by another controller") from error
            return

    async def _wait_acknowledged(self, order: FlowCommand) -> None:
        async with self._zookeeper.watch_data(self._acknowledged) as values:
            async for node in values:
                if _acknowledged_in(node) == order:
                    return

    async def _wait_no_worker(self) -> None:
        """Nobody leads, and nobody is left who mirrors a part and might lead next."""
        async with self._zookeeper.watch_data(self._worker) as values:
            async for node in values:
                if node is None:
                    break
        async with self._zookeeper.watch_children(self._workers) as members:
            async for names in members:
                if not names:
                    return


def _command(node: ZNode | None) -> FlowCommand | None:
    return None if node is None else FlowCommand.decode(node.data)


def _acknowledged_in(node: ZNode | None) -> FlowCommand | None:
    """Return what a daemon has carried out; garbage is nothing, and is written over."""
    try:
        return _command(node)
    except WitnessGarbled:
        return None

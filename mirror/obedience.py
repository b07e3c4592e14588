"""The orders of one flow in the witness, followed by the daemon that runs it."""

import logging
from typing import Final

from mirror.engine import Engine
from mirror.flow_state import FlowState
from mirror.orders import How, Orders, Restart
from mirror.partition import MirroredPartition
from mirror.partition_state import STOPPED, PartitionState
from runtime.clock import now_ms
from runtime.zookeeper import BadVersion, Node, NoNode, ZooKeeper

_LOG = logging.getLogger(__name__)

UNKNOWN: Final = "nothing of that name is mirrored"


class Obedience:
    """What is ordered now, and what of it has been done."""

    def __init__(self, flow: str, path: str) -> None:
        """Know nothing yet; ``path`` is the node of the orders."""
        self.orders = Orders()
        self._begun: set[Restart] = set()
        self._flow = flow
        self._path = path

    def see(self, node: Node | None) -> None:
        """Take the node over; raises WitnessGarbled."""
        self.orders = Orders() if node is None else Orders.decode(node.data)

    @property
    def pause_of_flow(self) -> str | None:
        """Why the whole flow must not run, None if it may."""
        pause = self.orders.pause_of()
        return None if pause is None else f"paused by {pause.by}"

    async def obey(self, engine: Engine, zookeeper: ZooKeeper) -> None:
        """Pause and resume what is ordered; begin each restart once, if the topics are known.

        A restart is taken out when it is done: a daemon that ends before leaves it to the next.
        """
        apply_pauses(engine.flow, self.orders)
        if not self.orders.restarts or not engine.discovery.has_looked:
            return
        for restart in self.orders.restarts:
            if restart not in self._begun:
                self._begun.add(restart)
                self._begin(engine.flow, restart)
        done = tuple(
            one
            for one in self.orders.restarts
            if one.how is not How.ANEW or one.scope.topic not in engine.flow.to_begin_anew
        )
        if done:
            self.orders = self.orders.without(done)
            await self._take_out(zookeeper, done)

    def _begin(self, flow: FlowState, restart: Restart) -> None:
        count = apply_restart(flow, restart)
        _LOG.info(
            "%s: restart (%s) of %s ordered by %s: %s",
            self._flow,
            restart.how.value,
            restart.scope,
            restart.by,
            f"{count} partitions" if count else UNKNOWN,
        )

    async def _take_out(self, zookeeper: ZooKeeper, done: tuple[Restart, ...]) -> None:
        """Remove what was done from the node, which others may be changing."""
        while True:
            node = await zookeeper.get(self._path)
            if node is None:
                return
            left = Orders.decode(node.data).without(done)
            try:
                await zookeeper.set(self._path, left.encode(), version=node.version)
            except (BadVersion, NoNode):
                continue
            return


def apply_pauses(flow: FlowState, orders: Orders) -> None:
    """Bring the partitions in line with the pauses."""
    flow.orders = orders
    now = now_ms()
    for (topic, index), partition in flow.partitions.items():
        reason = flow.rests_because(topic, index)
        if reason is None:
            if partition.state is PartitionState.PAUSED:
                partition.retry("resumed", now)
        elif partition.state is not PartitionState.PAUSED and partition.state not in STOPPED:
            with flow.accounting(partition):
                partition.pause(reason, now)
    flow.position_more.wake()


def apply_restart(flow: FlowState, restart: Restart) -> int:
    """Do what is ordered; return how many partitions it was done to."""
    now = now_ms()
    meant = [
        partition
        for (topic, index), partition in flow.partitions.items()
        if restart.scope.covers(topic, index)
    ]
    reason = f"restarted by {restart.by}"
    for partition in meant:
        if restart.how is How.ANEW:
            flow.to_begin_anew.add(partition.topic)
        else:
            _look_again(flow, partition, reason, now, may_skip=restart.how is How.SKIP)
    flow.refresh.wake()
    flow.position_more.wake()
    return len(meant)


def _look_again(
    flow: FlowState, partition: MirroredPartition, reason: str, now: int, *, may_skip: bool
) -> None:
    if partition.state in STOPPED:
        partition.may_skip = may_skip
        if may_skip and partition.refused_through is not None:
            flow.skip(partition, partition.refused_through, now)
        else:
            partition.retry(reason, now)
    elif partition.state is not PartitionState.PAUSED:
        flow.interrupt(partition, reason, now, at_once=True)

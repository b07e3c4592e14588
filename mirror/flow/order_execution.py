"""The execution of people's orders for one flow: the pauses and restarts in the witness."""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

from mirror.flow.flow_state import FlowState
from mirror.state.orders import ONCE, POLICY, How, Orders, Restart, Scope, mark_of
from mirror.state.partition import MirroredPartition
from mirror.state.partition_state import STOPPED, PartitionState
from runtime.configuration.flow_section import Policy
from runtime.coordination.zookeeper import BadVersion, NodeExists, NoNode, ZNode, ZooKeeper
from runtime.process.clock import now_ms

_LOG = logging.getLogger(__name__)

UNKNOWN: Final = "nothing of that name is mirrored"
ELSEWHERE: Final = "other workers have all of it"
ENDS: Final = {
    How.SKIP: Policy.SKIP,
    How.QUARANTINE: Policy.QUARANTINE,
    How.MERGE: Policy.MERGE,
}
"""The policy that a restart orders, once."""


class OrderExecution:
    """The orders in force, and which of them have been carried out."""

    def __init__(self, flow: str, path: str) -> None:
        """Know nothing yet; ``path`` is the node of the orders."""
        self.orders = Orders()
        self._flow = flow
        self._path = path
        self._policy = f"{POLICY}{flow}"
        self._applied: tuple[object, ...] = ()
        """The flow, its settings and the orders that its partitions were brought in line with."""

    def see(self, node: ZNode | None) -> None:
        """Take the node over; raises WitnessGarbled."""
        self.orders = Orders() if node is None else Orders.read(self._path, node.data)

    @property
    def pause_of_flow(self) -> str | None:
        """Why the whole flow must not run, None if it may."""
        pause = self.orders.pause_of()
        return None if pause is None else f"paused by {pause.by}"

    async def carry_out(
        self,
        flow: FlowState,
        zookeeper: ZooKeeper,
        *,
        epoch: int | None,
        is_placed: bool,
        is_carried_out: Callable[[Restart], bool],
    ) -> None:
        """Pause and resume what is ordered; begin each restart once, if the topics are known.

        ``epoch`` is the active site's, None where no promotion concerns the flow: restarts that
        were given under an earlier one are taken out undone.

        A restart is taken out by who leads once every worker has said that it is done
        (``is_carried_out``). What gives something up is marked as begun before it is done, and
        nobody else does it again: of a daemon that ends in between nobody knows whether it did.
        """
        await self._pass_over_outlived(flow, zookeeper, epoch)
        present = flow, flow.config, self.orders
        if list(map(id, present)) != list(map(id, self._applied)):
            apply_pauses(flow, self.orders)
            self._applied = present
        await self._forward(flow, zookeeper, epoch)
        await self._pass_over_begun(flow, zookeeper)
        if not self.orders.restarts or not is_placed:
            return
        ready = [restart for restart in self.orders.restarts if _is_ready(flow, restart)]
        for restart in ready:
            if flow.share.leads or restart.how is not How.ANEW:
                await self._go_on_with(flow, zookeeper, restart)
        if not flow.share.leads:
            return
        await self._mark_deletions(flow, zookeeper)
        if flow.orders.unknown:
            flow.wakeups.refresh.wake()
        done = tuple(
            restart
            for restart in ready
            if (
                restart.scope.topic not in flow.orders.to_begin_anew
                if restart.how is How.ANEW
                else is_carried_out(restart)
            )
        )
        if done:
            self.orders = self.orders.without(done)
            await self._take_out(zookeeper, done)

    async def _pass_over_outlived(
        self, flow: FlowState, zookeeper: ZooKeeper, epoch: int | None
    ) -> None:
        """Leave restarts undone that a switch of the active site has outlived."""
        outlived = () if epoch is None else self.orders.outlived(epoch)
        if not outlived:
            return
        self.orders = self.orders.without(outlived)
        if not flow.share.leads:
            return
        for restart in outlived:
            _LOG.warning(
                "%s: restart (%s) of %s, ordered by %s, is not carried out: the active site has"
                " changed since (epoch %s); `mirror status` shows whether it is still wanted",
                self._flow,
                restart.how.value,
                restart.scope,
                restart.by,
                epoch,
            )
        await self._take_out(zookeeper, outlived)

    async def _go_on_with(self, flow: FlowState, zookeeper: ZooKeeper, restart: Restart) -> None:
        """Do it to what it has not been done to: partitions may come from another worker."""
        is_new = flow.orders.begin(restart)
        if restart.how is How.ANEW:
            if is_new and restart.begun:
                self._tell_passed(restart, str(restart.scope))
                return
            count = begin_anew(flow, restart) if is_new else 0
        else:
            remaining = flow.orders.remaining(restart, flow.partitions.own)
            if restart.how in ONCE:
                remaining = await self._marked(flow, zookeeper, restart, remaining)
            count = apply_restart(flow, restart, remaining)
        if not is_new and not count:
            return
        is_known = any(
            restart.scope.covers(*topic_partition) for topic_partition in flow.share.seen
        )
        _LOG.info(
            "%s: restart (%s) of %s ordered by %s: %s",
            self._flow,
            restart.how.value,
            restart.scope,
            restart.by,
            f"{count} partitions" if count else ELSEWHERE if is_known else UNKNOWN,
        )

    async def _marked(
        self,
        flow: FlowState,
        zookeeper: ZooKeeper,
        restart: Restart,
        partitions: Sequence[MirroredPartition],
    ) -> list[MirroredPartition]:
        """Mark a restart as begun for partitions; return those for which nobody had begun it."""
        marks = {mark_of(one.topic, one.index): one for one in partitions}
        new = await self._mark(zookeeper, restart, marks) if marks else None
        if new is None:
            return []
        passed = [one for mark, one in marks.items() if mark not in new]
        if passed:
            flow.orders.note_restarted(restart, passed)
            self._tell_passed(restart, f"{len(passed)} partitions")
        own = set(flow.partitions.own.values())
        return [one for mark, one in marks.items() if mark in new and one in own]

    async def _mark_deletions(self, flow: FlowState, zookeeper: ZooKeeper) -> None:
        """Mark the orders by which discovery can delete copies now."""
        for topic in flow.orders.to_mark:
            for restart in flow.orders.anew_orders(topic):
                await self._mark(zookeeper, restart, {mark_of(topic)})
            flow.orders.note_marked(topic)
            flow.wakeups.refresh.wake()

    async def _mark(
        self, zookeeper: ZooKeeper, restart: Restart, marks: Iterable[str]
    ) -> frozenset[str] | None:
        """Write into the node for what a restart is begun; return for what nobody had begun it.

        None where it is not ordered any more.
        """
        while True:
            node = await zookeeper.get(self._path)
            orders = Orders() if node is None else Orders.read(self._path, node.data)
            if node is None or restart not in orders.restarts:
                return None
            orders, new = orders.begun(restart, marks)
            if not new:
                return new
            try:
                await zookeeper.set(self._path, orders.encode(), version=node.version)
            except (BadVersion, NoNode):
                continue
            return new

    def _tell_passed(self, restart: Restart, what: str) -> None:
        _LOG.warning(
            "%s: restart (%s) of %s, ordered by %s, is not begun again for %s: a daemon has begun"
            " it that may have done it; `mirror status` shows whether it is still wanted",
            self._flow,
            restart.how.value,
            restart.scope,
            restart.by,
            what,
        )

    async def _forward(self, flow: FlowState, zookeeper: ZooKeeper, epoch: int | None) -> None:
        """Order of who leads what a policy wants here: a topic anew concerns all its partitions.

        Once only, and not when it has been done and another has the partition: each such order
        deletes the target's copy.
        """
        if flow.share.leads:
            return
        ordered = {each.scope.topic for each in self.orders.restarts if each.how is How.ANEW}
        flow.orders.want_anew_only({topic for topic, _ in flow.partitions.own} - ordered)
        if not flow.orders.to_begin_anew:
            return
        anew = tuple(
            Restart(
                scope=Scope(topic=topic),
                how=How.ANEW,
                by=self._policy,
                at_ms=now_ms(),
                epoch=epoch,
            )
            for topic in sorted(flow.orders.to_begin_anew)
        )
        node = await zookeeper.get(self._path)
        try:
            if node is None:
                await zookeeper.create(self._path, Orders(restarts=anew).encode())
            else:
                orders = Orders.read(self._path, node.data)
                orders = replace(orders, restarts=(*orders.restarts, *anew))
                await zookeeper.set(self._path, orders.encode(), version=node.version)
        except (BadVersion, NoNode, NodeExists):
            return  # somebody was quicker: again at the next look
        flow.orders.want_anew_only(())

    async def _pass_over_begun(self, flow: FlowState, zookeeper: ZooKeeper) -> None:
        """Let nobody's policy begin again what was begun anew just now.

        Others had let go of the topic before its copy was deleted: what their policies ordered of
        it is in the node by now, though we may not have seen it yet.
        """
        begun = flow.orders.begun_anew
        if not begun:
            return
        node = await zookeeper.get(self._path)
        flow.orders.forget_begun(begun)
        for restart in () if node is None else Orders.read(self._path, node.data).restarts:
            if restart.by == self._policy and restart.scope.topic in begun:
                flow.orders.begin(restart)

    async def _take_out(self, zookeeper: ZooKeeper, done: tuple[Restart, ...]) -> None:
        """Remove what was done from the node, which others may be changing."""
        while True:
            node = await zookeeper.get(self._path)
            if node is None:
                return
            left = Orders.read(self._path, node.data).without(done)
            try:
                await zookeeper.set(self._path, left.encode(), version=node.version)
            except (BadVersion, NoNode):
                continue
            return


def _is_ready(flow: FlowState, restart: Restart) -> bool:
    """Whether the flow knows what is ordered; who leads has the source get what it lacks of it."""
    return not flow.share.leads or flow.orders.is_known(restart, flow.share.seen)


def apply_pauses(flow: FlowState, orders: Orders) -> None:
    """Bring the partitions in line with the pauses; those to come, positioning does."""
    flow.orders.follow(orders)
    now = now_ms()
    for (topic, index), partition in flow.partitions.own.items():
        reason = flow.interruptions.rests_because(topic, index)
        if reason is None:
            if partition.state is PartitionState.PAUSED:
                partition.retry("resumed", now)
        elif partition.state is not PartitionState.PAUSED and partition.state not in STOPPED:
            partition.pause(reason, now)
    flow.wakeups.position_more.wake()


def begin_anew(flow: FlowState, restart: Restart) -> int:
    """Have a topic's copy deleted; return how many partitions are meant, whoever has them."""
    topic_partitions = [
        topic_partition
        for topic_partition in flow.share.seen
        if restart.scope.covers(*topic_partition)
    ]
    flow.orders.want_anew(topic for topic, _ in topic_partitions)
    flow.wakeups.refresh.wake()
    return len(topic_partitions)


def apply_restart(flow: FlowState, restart: Restart, remaining: Sequence[MirroredPartition]) -> int:
    """Restart partitions to which it has not been done; return how many there were."""
    now = now_ms()
    if not remaining:
        return 0
    reason = f"restarted by {restart.by}"
    for partition in remaining:
        _look_again(flow, partition, reason, now, ENDS.get(restart.how))
    flow.orders.note_restarted(restart, remaining)
    flow.wakeups.refresh.wake()
    flow.wakeups.position_more.wake()
    return len(remaining)


def _look_again(
    flow: FlowState, partition: MirroredPartition, reason: str, now: int, ordered: Policy | None
) -> None:
    if partition.state in STOPPED:
        partition.skips.allow_once(ordered)
        if ordered is Policy.SKIP and partition.skips.refused_through is not None:
            flow.interruptions.skip(partition, partition.skips.refused_through, now)
        else:
            partition.retry(reason, now)
        return
    # What others have written may not have been met yet: the look that follows meets it.
    meets = not partition.target.is_positioned or ordered in {Policy.QUARANTINE, Policy.MERGE}
    partition.skips.allow_once(ordered if meets else None)
    if partition.state is not PartitionState.PAUSED:  # else when it is resumed
        flow.interruptions.interrupt(partition, reason, now, at_once=True)

"""Interruptions: partitions stop, rest and go on, as faults, policies and pauses have it."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from mirror.state.live_config import LiveConfig
from mirror.state.orders_in_force import OrdersInForce
from mirror.state.partition import MirroredPartition
from mirror.state.partition_state import PartitionState
from mirror.state.wakeups import FlowWakeups
from runtime.configuration.flow_section import POLICIES, Policy
from runtime.process.clock import now_ms
from runtime.process.unforeseen import described
from wire.net.errors import AuthenticationFailed, NetworkFault

_LOG = logging.getLogger(__name__)


class Interruptions:
    """Interrupts and stops the partitions of one flow; times are wall clock in milliseconds.

    A partition knows its own state. What follows for the flow from a stop is decided here: what the
    flow's policy says of the cause, and who is woken.
    """

    __slots__ = ("_config", "_orders", "_wakeups")

    def __init__(self, config: LiveConfig, orders: OrdersInForce, wakeups: FlowWakeups) -> None:
        self._config = config
        self._orders = orders
        self._wakeups = wakeups

    def interrupt(
        self, partition: MirroredPartition, reason: str, now_ms: int, *, at_once: bool = False
    ) -> None:
        """Stop a partition, to be positioned again by itself."""
        partition.interrupt(reason, now_ms, at_once=at_once)
        self._wakeups.position_more.wake()

    def fail(
        self, partition: MirroredPartition, where: str, fault: NetworkFault, now_ms: int
    ) -> None:
        """Stop a partition for a fault of the network: to be tried again soon, or when allowed."""
        reason = f"{where}: {fault}"
        if isinstance(fault, AuthenticationFailed):
            self.stop(partition, PartitionState.NOT_AUTHORISED, reason, now_ms)
        else:
            self.interrupt(partition, reason, now_ms)

    def stop(
        self,
        partition: MirroredPartition,
        state: PartitionState,
        reason: str,
        now_ms: int,
        *,
        source_end: int | None = None,
        source_begin: int | None = None,
    ) -> None:
        """Stop a partition in a named state, and do what the flow's policy says of the cause.

        ``source_end`` is the offset behind the records to skip, where skipping is possible. Of a
        batch that can be taken apart ``source_begin`` is the first.
        """
        partition.stop(state, reason, now_ms)
        partition.skips.refuse(source_end, source_begin)
        policy = self.policy_for(partition, state)
        if policy is Policy.RESTART:
            self._orders.want_anew((partition.topic,))
            self._wakeups.refresh.wake()
        elif source_end is not None and (
            policy is Policy.SKIP or partition.skips.gives_up(source_end)
        ):
            self.skip(partition, source_end, now_ms)

    @contextmanager
    def contained(self, partition: MirroredPartition, doing: str) -> Iterator[None]:
        """Stop the partition by whatever is unforeseen in this block; raises NetworkFault only."""
        try:
            yield
        except NetworkFault:
            raise
        except Exception as fault:  # noqa: BLE001 - what is unforeseen has no type
            self.stop_as_failed(partition, doing, fault)

    def stop_as_failed(
        self,
        partition: MirroredPartition,
        doing: str,
        fault: Exception,
        *,
        source_end: int | None = None,
    ) -> None:
        """Stop a partition by an error that nobody has foreseen; the log has its traceback.

        A fault of the network is foreseen. Everything else that is raised in the work on one
        partition is an error of ours, or data that no broker ought to hold: it stops that one, and
        no other. A skip would go on at ``source_end``.
        """
        reason = f"{doing}: {described(fault)}"
        _LOG.error("%s: failed: %s", partition.topic_partition, reason, exc_info=fault)
        self.stop(partition, PartitionState.FAILED, reason, now_ms(), source_end=source_end)

    def skip(self, partition: MirroredPartition, source_end: int, now_ms: int) -> None:
        """Go on behind records that cannot be mirrored; they are counted with the place.

        A batch that was refused is taken apart: only the records that are refused alone as well
        are left out.
        """
        begin = partition.skips.refused_from
        if begin is None:
            partition.skips.pass_behind(source_end)
            partition.retry(f"left out: {partition.status.reason}", now_ms)
        else:
            partition.skips.take_apart(begin, source_end, is_given_up=True)
            partition.retry(f"its records go one by one: {partition.status.reason}", now_ms)
        self._wakeups.position_more.wake()

    def policy_for(self, partition: MirroredPartition, state: PartitionState) -> Policy:
        """Return the flow's policy for a partition that stops in this state."""
        cause = state.name.lower()
        ordered = partition.skips.allowed_once
        if ordered is not None and ordered in POLICIES.get(cause, ()):
            return ordered
        return self._config.current.policies.get(cause, Policy.STOP)

    def wait_no_longer(self, partition: MirroredPartition, now_ms: int) -> None:
        """Position a partition that waits now: what it waits for may have come."""
        partition.retries.wait_no_longer(now_ms)
        self._wakeups.position_more.wake()

    def may_go_on(self, partition: MirroredPartition, now_ms: int) -> bool:
        """Pause a partition that is to rest, wherever it comes from; return whether it is not."""
        reason = self.rests_because(partition.topic, partition.index)
        if reason is not None:
            partition.pause(reason, now_ms)
        return reason is None

    def rests_because(self, topic: str, index: int) -> str | None:
        """Return why a partition is not to be mirrored at present, None if it is."""
        pause = self._orders.current.pause_of(topic, index)
        if pause is not None:
            return f"paused by {pause.by}"
        if self._config.current.mirrors(topic):
            return None
        return "no longer among the flow's topics"

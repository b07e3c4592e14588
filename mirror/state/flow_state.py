"""The state that the tasks of one running flow share: partitions, bytes under way, wake-ups."""

import logging
from collections import ChainMap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from mirror.state.in_flight import InFlightBudget
from mirror.state.measurements import FlowMeasurements
from mirror.state.mirrored_progress import MirroredProgress
from mirror.state.orders import Restart
from mirror.state.orders_in_force import OrdersInForce
from mirror.state.partition import MirroredPartition
from mirror.state.partition_state import PartitionState
from mirror.state.reverse_flow import ReverseFlow
from mirror.state.throttle import Portion, Throttle
from mirror.state.wakeups import FlowWakeups
from mirror.state.work_share import WorkShare
from offset_translation.offset_map import OffsetMap
from runtime.clock import now_ms
from runtime.config import FlowConfig
from runtime.flow_section import POLICIES, Policy
from runtime.unforeseen import described
from wire.net.errors import AuthenticationFailed, NetworkFault
from wire.topic_partition import TopicPartition

_LOG = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class FlowState:
    """The state of one flow while it runs."""

    config: FlowConfig
    measurements: FlowMeasurements
    partitions: dict[TopicPartition, MirroredPartition] = field(default_factory=dict)
    budget: InFlightBudget = field(default_factory=InFlightBudget)
    """Bytes under way, of all partitions."""
    is_fetching: bool = True
    """False while the flow drains or the witness is out of reach."""
    wakeups: FlowWakeups = field(default_factory=FlowWakeups)
    progress: MirroredProgress = field(default_factory=MirroredProgress)
    orders: OrdersInForce = field(default_factory=OrdersInForce)
    share: WorkShare = field(default_factory=WorkShare)
    reverse: ReverseFlow = field(default_factory=ReverseFlow)
    throttle: Throttle = field(init=False)

    def stop_fetching(self) -> None:
        """Ask the source for nothing more until ``go_on_fetching``."""
        self.is_fetching = False

    def go_on_fetching(self) -> None:
        """Ask the source again, once partitions are positioned."""
        self.is_fetching = True
        self.wakeups.position_more.wake()

    def interrupt(
        self, partition: MirroredPartition, reason: str, now_ms: int, *, at_once: bool = False
    ) -> None:
        """Stop a partition, to be positioned again by itself."""
        partition.interrupt(reason, now_ms, at_once=at_once)
        self.wakeups.position_more.wake()

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
            self.orders.want_anew((partition.topic,))
            self.wakeups.refresh.wake()
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
        self.wakeups.position_more.wake()

    def policy_for(self, partition: MirroredPartition, state: PartitionState) -> Policy:
        """Return the flow's policy for a partition that stops in this state."""
        cause = state.name.lower()
        if partition.skips.is_allowed_once and Policy.SKIP in POLICIES.get(cause, ()):
            return Policy.SKIP
        return self.config.policies.get(cause, Policy.STOP)

    def __post_init__(self) -> None:
        """Begin with full buckets."""
        self._limit_in_flight()
        self.throttle = Throttle(self.config.throttle, now_ms())

    def take_config(self, config: FlowConfig) -> None:
        """Go on with other settings, of those that may change while the flow runs."""
        if config.throttle != self.config.throttle:
            self.throttle = Throttle(config.throttle, now_ms(), self.throttle.portion)
        self.config = config
        self._limit_in_flight()
        self.wakeups.fetch_anew()
        self.wakeups.refresh.wake()

    def _limit_in_flight(self) -> None:
        config = self.config
        self.budget.limit_to(config.in_flight_bytes, config.partition_in_flight_bytes)

    def take_portion(self, portion: Portion) -> None:
        """Throttle to another part of the rates."""
        self.throttle.take(portion, now_ms())

    def backward(self, topic_partition: TopicPartition) -> OffsetMap | None:
        """Return the map of records that came back into a source partition, if it is known."""
        if not self.reverse.has_map_of(topic_partition):
            return None
        partition = self.placed.get(topic_partition)
        if partition is None or partition.source.end is None:
            return None
        if partition.target_topic != partition.topic:
            return None  # what came from there has another topic to itself
        return self.reverse.map_of(topic_partition, partition.source.end)

    @property
    def placed(self) -> Mapping[TopicPartition, MirroredPartition]:
        """Return all partitions whose map is known here, our own before others'."""
        return ChainMap(self.partitions, self.share.peers) if self.share.peers else self.partitions

    def throttled_s(self) -> float:
        """Return how long until some throttled topic may be fetched, in seconds; 0.05 at least."""
        if self.throttle.is_idle:
            return 1.0
        now = now_ms()
        topics = {topic for topic, _ in self.partitions}
        soonest = min((self.throttle.wait_ms(topic, now) for topic in topics), default=1_000.0)
        return max(0.05, soonest / 1_000, self.throttle.wait_ms(None, now) / 1_000)

    def may_go_on(self, partition: MirroredPartition, now_ms: int) -> bool:
        """Pause a partition that is to rest, wherever it comes from."""
        reason = self.rests_because(partition.topic, partition.index)
        if reason is not None:
            partition.pause(reason, now_ms)
        return reason is None

    def rests_because(self, topic: str, index: int) -> str | None:
        """Return why a partition is not to be mirrored at present, None if it is."""
        pause = self.orders.current.pause_of(topic, index)
        if pause is not None:
            return f"paused by {pause.by}"
        return None if self.config.mirrors(topic) else "no longer among the flow's topics"

    @property
    def obeyed(self) -> frozenset[Restart]:
        """Return the restarts in force that have been done to all partitions here they concern."""
        return self.orders.obeyed_by(self.partitions)

    def fetched_from(self, node: int) -> Iterator[MirroredPartition]:
        """Yield the flowing partitions whose source leader, or the replica it named, this is."""
        for partition in self.partitions.values():
            if partition.leaders.fetched_from == node and partition.is_flowing:
                yield partition

    @property
    def is_settled(self) -> bool:
        """Whether nothing is under way."""
        return all(partition.in_flight.is_settled for partition in self.partitions.values())

    async def wait_settled(self) -> None:
        """Wait until nothing is under way; the caller has stopped the fetching."""
        while not self.is_settled:
            await self.wakeups.settled.wait(SETTLE_LOOK_S)


SETTLE_LOOK_S: Final = 0.5

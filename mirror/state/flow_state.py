"""The state that the tasks of one running flow share: partitions, bytes under way, wake-ups."""

from collections import ChainMap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import trio

from mirror.state.in_flight import InFlightBudget
from mirror.state.measurements import FlowMeasurements
from mirror.state.orders import How, Orders, Restart
from mirror.state.partition import MirroredPartition
from mirror.state.partition_state import PartitionState
from mirror.state.throttle import WHOLE, Portion, Throttle
from mirror.state.unknown_producers import before_strangers
from offset_translation.map_records import MapState
from offset_translation.offset_map import OffsetMap
from runtime.clock import now_ms
from runtime.config import FlowConfig
from runtime.flow_section import POLICIES, Policy
from wire.net.errors import AuthenticationFailed, NetworkFault
from wire.topic_partition import TopicPartition

NO_PRODUCER_ID: Final = -1


class Wakeup:
    """Wakes the tasks that wait at this moment; without one nothing is kept."""

    __slots__ = ("_event",)

    def __init__(self) -> None:
        """Begin with nobody waiting."""
        self._event: trio.Event | None = None

    def wake(self) -> None:
        """Wake all who wait."""
        if self._event is not None:
            self._event.set()
            self._event = None

    async def wait(self, at_most_s: float) -> None:
        """Wait for the next wake, or as long as said."""
        if self._event is None:
            self._event = trio.Event()
        event = self._event
        with trio.move_on_after(at_most_s):
            await event.wait()


class Request:
    """Wakes one waiter, now or when it next waits."""

    __slots__ = ("_event",)

    def __init__(self) -> None:
        """Begin with nothing asked for."""
        self._event = trio.Event()

    def wake(self) -> None:
        """Ask for it; asking again before it is answered changes nothing."""
        self._event.set()

    async def wait(self, at_most_s: float) -> None:
        """Wait until it is asked for, or as long as said."""
        with trio.move_on_after(at_most_s):
            await self._event.wait()
        self._event = trio.Event()


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
    fetch_more: Wakeup = field(default_factory=Wakeup)
    """Room in flight: fetchers go on."""
    changes: int = 0
    """Grows with what others than fetchers change of what is to be fetched."""
    position_more: Wakeup = field(default_factory=Wakeup)
    """A partition is settled after an interruption, or discovered."""
    settled: Wakeup = field(default_factory=Wakeup)
    """Something under way was answered; for who waits until all is."""
    refresh: Request = field(default_factory=Request)
    """Leaders or topics may have changed: discovery looks again."""
    orders: Orders = field(default_factory=Orders)
    """What people have ordered; partitions that it pauses are not positioned."""
    restarts: dict[Restart, set[MirroredPartition]] = field(default_factory=dict)
    """Ordered restarts that were begun here, and to what each has been done."""
    to_begin_anew: set[str] = field(default_factory=set)
    """Topics whose copy on the target discovery is to delete, so that they are mirrored anew."""
    begun_anew: set[str] = field(default_factory=set)
    """Those of which it has just been deleted."""
    share: frozenset[TopicPartition] = frozenset()
    """What the assignment gives this worker; nothing else comes into ``partitions``."""
    places: set[TopicPartition] = field(default_factory=set)
    """Every partition of the flow that has been seen, whoever mirrors it."""
    elsewhere: dict[TopicPartition, MirroredPartition] = field(default_factory=dict)
    """Known to the worker that leads: how far others have mirrored theirs."""
    gone_elsewhere: dict[TopicPartition, int] = field(default_factory=dict)
    """Known to the worker that leads: where the last records of others' deleted topics lie."""
    vouched: frozenset[TopicPartition] = frozenset()
    """Known to the worker that leads: whose maps their workers vouch for."""
    leads: bool = False
    """Whether this worker shapes the target's topics and translates group positions."""
    portion: Portion = WHOLE
    """What part of the throttle's rates is this worker's."""
    throttle: Throttle = field(init=False)
    arrived: MapState = field(default_factory=MapState)
    """The map of the other direction: what came into the source from the target."""
    loop_ids: frozenset[int] = frozenset()
    """Producer ids of mirrors that write into the source."""
    natives: set[int] = field(default_factory=lambda: {NO_PRODUCER_ID})
    """Producer ids on the source that are no mirror's; learned where both directions run."""
    strangers: set[int] = field(default_factory=set)
    """Producer ids of which that is not known yet: nothing behind their batches is routed."""
    arrivals: int = 0
    """Grows with what is learned of the other direction."""

    def interrupt(
        self, partition: MirroredPartition, reason: str, now_ms: int, *, at_once: bool = False
    ) -> None:
        """Stop a partition, to be positioned again by itself."""
        partition.interrupt(reason, now_ms, at_once=at_once)
        self.position_more.wake()

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
    ) -> None:
        """Stop a partition in a named state, and do what the flow's policy says of the cause.

        ``source_end`` is the offset behind the records to skip, where skipping is possible.
        """
        partition.stop(state, reason, now_ms)
        partition.skips.refuse(source_end)
        policy = self.policy_for(partition, state)
        if policy is Policy.RESTART:
            self.to_begin_anew.add(partition.topic)
            self.refresh.wake()
        elif policy is Policy.SKIP and source_end is not None:
            self.skip(partition, source_end, now_ms)

    def skip(self, partition: MirroredPartition, source_end: int, now_ms: int) -> None:
        """Go on behind records that cannot be mirrored; they are counted with the place."""
        partition.skips.pass_behind(source_end)
        partition.retry(f"left out: {partition.status.reason}", now_ms)
        self.position_more.wake()

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
            self.throttle = Throttle(config.throttle, now_ms(), self.portion)
        self.config = config
        self._limit_in_flight()
        self.fetch_anew()
        self.refresh.wake()

    def _limit_in_flight(self) -> None:
        config = self.config
        self.budget.limit_to(config.in_flight_bytes, config.partition_in_flight_bytes)

    def fetch_anew(self) -> None:
        """Have fetchers look at all: a partition was positioned, its leader moved, or the like.

        Whoever changes from elsewhere what is to be fetched must call this, or waits five seconds:
        looking at each of 10,000 partitions each second would keep a mirror at rest busy.
        """
        self.changes += 1
        self.fetch_more.wake()

    def take_portion(self, portion: Portion) -> None:
        """Throttle to another part of the rates."""
        self.portion = portion
        self.throttle.take(portion, now_ms())

    def known_part(self, records: memoryview) -> memoryview:
        """Return the records before the first batch of an unknown producer."""
        known, stranger = before_strangers(records, self.natives, self.loop_ids)
        if stranger is not None:
            self.strangers.add(stranger)
        return known

    def backward(self, place: TopicPartition) -> OffsetMap | None:
        """Return the map of records that came back into a source partition, if it is known."""
        if place not in self.arrived.maps:
            return None
        partition = self.placed.get(place)
        if partition is None or partition.source.end is None:
            return None
        if partition.target_topic != partition.topic:
            return None  # what came from there has another topic to itself
        self.arrived.advance({place: partition.source.end})
        return self.arrived.bounded(place)

    @property
    def placed(self) -> Mapping[TopicPartition, MirroredPartition]:
        """Return all partitions whose map is known here, our own before others'."""
        return ChainMap(self.partitions, self.elsewhere) if self.elsewhere else self.partitions

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
        pause = self.orders.pause_of(topic, index)
        if pause is not None:
            return f"paused by {pause.by}"
        return None if self.config.mirrors(topic) else "no longer among the flow's topics"

    def is_kept(self, topic: str) -> bool:
        """Whether a pause keeps a topic's copy: from policies, not from what somebody orders."""
        return self.orders.keeper_of(topic) is not None and not any(
            one.how is How.ANEW and one.scope.topic in {None, topic} and not one.is_wanted_by_policy
            for one in self.orders.restarts
        )

    @property
    def obeyed(self) -> frozenset[Restart]:
        """Return the restarts in force that have been done to all partitions here they concern."""
        return frozenset(
            restart
            for restart in self.orders.restarts
            if restart in self.restarts
            and all(
                one in self.restarts[restart]
                for place, one in self.partitions.items()
                if restart.scope.covers(*place)
            )
        )

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
            await self.settled.wait(SETTLE_LOOK_S)


SETTLE_LOOK_S: Final = 0.5

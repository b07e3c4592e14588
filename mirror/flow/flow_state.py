"""All that the tasks of one running flow share, put together.

Nobody takes it whole but this folder. `engine` makes it and gives each task the parts that the task
uses; `membership` and `order_execution` report of the flow as a whole, and act on it as a whole,
for the witness; `runner` hands a reloaded configuration over. The reports read it by way of the
engine. The floors below cannot import it: they state which parts they use.
"""

from mirror.forward.flow_parts import FetchParts, ProduceParts
from mirror.groups.sync import GroupParts
from mirror.start.positioning import PositioningParts
from mirror.state.flow_partitions import FlowPartitions
from mirror.state.in_flight import InFlightBudget
from mirror.state.interruptions import Interruptions
from mirror.state.live_config import LiveConfig
from mirror.state.measurements import FlowMeasurements
from mirror.state.mirrored_progress import MirroredProgress
from mirror.state.orders_in_force import OrdersInForce
from mirror.state.reverse_flow import ReverseFlow
from mirror.state.throttle import Portion, Throttle
from mirror.state.wakeups import SETTLE_LOOK_S, FlowGate, FlowWakeups
from mirror.state.work_share import WorkShare
from mirror.topics.discovery import DiscoveryParts
from runtime.configuration.config import FlowConfig
from runtime.process.clock import now_ms


class FlowState:
    """The state of one flow while it runs: its parts, each of which changes by its own methods."""

    __slots__ = (
        "budget",
        "gate",
        "interruptions",
        "live_config",
        "measurements",
        "orders",
        "partitions",
        "progress",
        "reverse",
        "share",
        "throttle",
        "wakeups",
    )

    def __init__(self, *, config: FlowConfig, measurements: FlowMeasurements) -> None:
        """Begin without partitions and orders, with full buckets and an open gate."""
        self.live_config = LiveConfig(config)
        self.measurements = measurements
        self.partitions = FlowPartitions()
        self.budget = InFlightBudget(config.in_flight_bytes, config.partition_in_flight_bytes)
        """Bytes under way, of all partitions."""
        self.throttle = Throttle(config.throttle, now_ms())
        self.wakeups = FlowWakeups()
        self.gate = FlowGate(self.wakeups)
        self.progress = MirroredProgress()
        self.orders = OrdersInForce()
        self.share = WorkShare()
        self.reverse = ReverseFlow()
        self.interruptions = Interruptions(self.live_config, self.orders, self.wakeups)

    @property
    def config(self) -> FlowConfig:
        """The configuration as it is now."""
        return self.live_config.current

    def mirrors(self, topic: str) -> bool:
        """Tell whether a topic is among the flow's, as the configuration is now."""
        return self.config.mirrors(topic)

    def take_config(self, config: FlowConfig) -> None:
        """Go on with other settings, of those that may change while the flow runs."""
        self.throttle.limit_to(config.throttle, now_ms())
        self.live_config.replace(config)
        self.budget.limit_to(config.in_flight_bytes, config.partition_in_flight_bytes)
        self.wakeups.fetch_anew()
        self.wakeups.refresh.wake()

    def take_portion(self, portion: Portion) -> None:
        """Throttle to another part of the rates."""
        self.throttle.take(portion, now_ms())

    async def wait_settled(self) -> None:
        """Wait until nothing is under way; the caller has closed the gate."""
        while not self.partitions.is_settled:
            await self.wakeups.settled.wait(SETTLE_LOOK_S)

    # --- the parts that the tasks take -------------------------------------------------------

    @property
    def for_fetching(self) -> FetchParts:
        """The parts that the source's fetchers use."""
        return FetchParts(
            config=self.live_config,
            partitions=self.partitions,
            budget=self.budget,
            throttle=self.throttle,
            gate=self.gate,
            reverse=self.reverse,
            interruptions=self.interruptions,
            measurements=self.measurements,
            progress=self.progress,
            wakeups=self.wakeups,
        )

    @property
    def for_producing(self) -> ProduceParts:
        """The parts that the target's writers use."""
        return ProduceParts(
            config=self.live_config,
            partitions=self.partitions,
            budget=self.budget,
            gate=self.gate,
            interruptions=self.interruptions,
            measurements=self.measurements,
            progress=self.progress,
            wakeups=self.wakeups,
        )

    @property
    def for_positioning(self) -> PositioningParts:
        """The parts that positioning uses."""
        return PositioningParts(
            config=self.live_config,
            partitions=self.partitions,
            gate=self.gate,
            reverse=self.reverse,
            interruptions=self.interruptions,
            progress=self.progress,
            wakeups=self.wakeups,
        )

    @property
    def for_discovery(self) -> DiscoveryParts:
        """The parts that discovery uses."""
        return DiscoveryParts(
            config=self.live_config,
            partitions=self.partitions,
            share=self.share,
            orders=self.orders,
            reverse=self.reverse,
            budget=self.budget,
            interruptions=self.interruptions,
            wakeups=self.wakeups,
        )

    @property
    def for_groups(self) -> GroupParts:
        """The parts that the group positions' task uses."""
        return GroupParts(
            config=self.live_config,
            partitions=self.partitions,
            gate=self.gate,
            reverse=self.reverse,
            measurements=self.measurements,
            progress=self.progress,
        )

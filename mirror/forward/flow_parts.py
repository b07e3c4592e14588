"""The parts of a flow's state that the record's way uses, on the source's side and the target's."""

from mirror.state.flow_partitions import FlowPartitions
from mirror.state.in_flight import InFlightBudget
from mirror.state.interruptions import Interruptions
from mirror.state.live_config import LiveConfig
from mirror.state.measurements import FlowMeasurements
from mirror.state.mirrored_progress import MirroredProgress
from mirror.state.reverse_flow import ReverseFlow
from mirror.state.throttle import Throttle
from mirror.state.wakeups import FlowGate, FlowWakeups
from wire.values import frozen


@frozen
class FetchParts:
    """The parts that fetchers use: what may be asked for, and whom they tell what came."""

    config: LiveConfig
    partitions: FlowPartitions
    budget: InFlightBudget
    throttle: Throttle
    gate: FlowGate
    reverse: ReverseFlow
    interruptions: Interruptions
    measurements: FlowMeasurements
    progress: MirroredProgress
    wakeups: FlowWakeups


@frozen
class ProduceParts:
    """The parts that writers use: what is under way, and whom they tell what became of it."""

    config: LiveConfig
    partitions: FlowPartitions
    budget: InFlightBudget
    gate: FlowGate
    interruptions: Interruptions
    measurements: FlowMeasurements
    progress: MirroredProgress
    wakeups: FlowWakeups

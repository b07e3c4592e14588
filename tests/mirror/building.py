"""A flow and its parts, as small as a test wants them."""

from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

from mirror.flow.engine import MapRegistries
from mirror.flow.flow_state import FlowState
from mirror.flow.runner import FlowRunner
from mirror.forward.routing import Routed
from mirror.forward.source import RecordWay
from mirror.state.batches import Cursor
from mirror.state.measurements import FlowMeasurements
from mirror.state.partition import MirroredPartition
from mirror.state.partition_state import PartitionState
from offset_translation.offset_map import OffsetMap
from offset_translation.runs import Place
from runtime.configuration.config import load
from runtime.configuration.flow_section import FlowConfig, PatternSet, Policy
from runtime.coordination.witness import WorkerInfo
from tests.dc_yaml import dc_yaml
from tests.doubles.map_writers import MemoryWriters


class Taken:
    """Takes what was routed, in the stead of the writers."""

    def __init__(self) -> None:
        self.all: list[tuple[MirroredPartition, Routed]] = []

    def forward(self, partition: MirroredPartition, routed: Routed) -> None:
        """Keep it."""
        self.all.append((partition, routed))

    @property
    def places(self) -> list[int]:
        """The places of all batches, in their order."""
        return [one.place for _, routed in self.all for one in routed.forwards]


def way_of(map_log: Any, writers: Any, reverse_map: Any = None) -> RecordWay:
    """Return where a fetcher's chunks go on."""
    return RecordWay(reverse_map, map_log, writers)


NOTHING = PatternSet(include=(), exclude=())
CONFIG = FlowConfig(
    name="dc1->dc2",
    source="dc1",
    target="dc2",
    topics=NOTHING,
    groups=NOTHING,
    replication_factor=None,
    fetch_max_bytes=1,
    partition_fetch_bytes=1,
    partition_in_flight_bytes=1,
    in_flight_bytes=1,
    discovery_interval_ms=1,
    group_offsets_interval_ms=1,
    are_groups_polled=False,
    group_poll_interval_ms=1,
)


def flow_with(**policies: Policy) -> tuple[FlowState, MirroredPartition]:
    """Return a flow with these policies and its only partition, which flows."""
    config = replace(CONFIG, policies=policies)
    flow = FlowState(config=config, measurements=FlowMeasurements(config.name))
    offset_map = OffsetMap.from_starts([(0, 0)], 0)
    partition = MirroredPartition(
        "t", 0, topic_id=UUID(int=1), offset_map=offset_map, now_ms=0, budget=flow.budget
    )
    flow.partitions.take(partition)
    partition.move(PartitionState.POSITIONING, 0)
    partition.go_on(Cursor(0, Place(0), 0), 0)
    return flow, partition


FILE = dc_yaml()


INFO = WorkerInfo(host="h", pid=1, metrics_url="http://h:1/metrics", started_ms=5)


def runner_in(folder: Path) -> FlowRunner:
    """Return one that leads, as far as it knows, and has not seen any node yet."""
    (folder / "dc.yaml").write_text(FILE)
    configuration = load(folder / "dc.yaml")
    [flow] = configuration.flows
    runner = FlowRunner(configuration, flow, INFO, FlowMeasurements(flow.name))
    runner._is_member = runner._leads = True
    return runner


def anybody() -> MapRegistries:
    """Registries by which every record of a map counts."""
    return MapRegistries(
        forward=MemoryWriters(), backward=MemoryWriters(), checkpoints=MemoryWriters()
    )

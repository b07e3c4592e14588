"""A flow with many partitions, as pages and metrics show it."""

from pathlib import Path
from uuid import UUID

from mirror.flow.engine import Engine
from mirror.flow.runner import FlowRunner
from mirror.groups.sync import GroupStatus
from mirror.state.partition import MirroredPartition
from mirror.state.partition_state import PartitionState
from offset_translation.offset_map import OffsetMap
from tests.doubles.fake_cluster import run_fake_cluster
from tests.mirror.building import anybody, runner_in
from tests.mirror.groups.source_logs import source_of
from wire.topic_partition import TopicPartition

ODD = 'a "group"\\of\nlines'


async def runner_with(folder: Path, partitions: int) -> FlowRunner:
    """A flow with so many partitions, the first of which is placed, and with one group."""
    runner = runner_in(folder)
    async with run_fake_cluster() as fake, source_of(fake) as (_, flow, links):
        runner.engine = engine = Engine(
            flow.config,
            links,
            runner.measurements,
            anybody(),
        )
    for index in range(partitions):
        one = MirroredPartition(
            "t",
            index,
            topic_id=UUID(int=1),
            offset_map=OffsetMap.from_starts([(0, 0)], 5),
            now_ms=0,
        )
        engine.flow.partitions.take(one)
    engine.flow.partitions.own[TopicPartition("t", 0)].target.find_position()
    engine.flow.partitions.own[TopicPartition("t", 0)].stop(
        PartitionState.RECORD_TOO_LARGE, "it is", 1
    )
    status = GroupStatus(source_offset=3, target_offset=None, state="settled", looked_ms=0)
    engine.groups.status[ODD, "t", 0] = status
    return runner

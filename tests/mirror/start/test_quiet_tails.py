"""One site of two that are written to at once is quiet for longer than the other keeps records."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from uuid import UUID

import pytest

from mirror.flow.flow_state import FlowState
from mirror.map.map_log import MapLog
from mirror.map.reached import ReachedKeeper
from mirror.start.log_readings import Tried
from mirror.start.positioning import Positioning
from mirror.state.batches import Cursor, Forward
from mirror.state.measurements import FlowMeasurements
from mirror.state.partition import MirroredPartition
from mirror.state.partition_state import PartitionState
from offset_translation.map_records import (
    MirrorProducer,
    Reached,
    mirror_producer,
    piece_start,
    reached,
)
from offset_translation.runs import Place
from runtime.configuration.flow_section import Policy
from tests.doubles.fake_cluster import FakePartition
from tests.doubles.map_writers import MemoryWriters
from tests.mirror.building import CONFIG
from tests.mirror.start.tails import a_batch
from tests.mirror.two_fakes import two_fakes
from wire.topic_partition import TopicPartition

PLACE = TopicPartition("orders", 0)
COUNT = 10
OTHERS = MirrorProducer(producer_id=-1, producer_epoch=-1)
UNTOLD = "the target begins at 6: what was mirrored to offset 0 and behind cannot be told any more"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """All COUNT records are dc2's own, and have come to dc1; nothing ever came from dc1."""

    flow: FlowState
    partition: MirroredPartition
    positioning: Positioning
    keeper: ReachedKeeper
    map_log: MapLog
    source: FakePartition
    target: FakePartition

    async def position(self) -> None:
        self.partition.move(PartitionState.POSITIONING, 0)
        await self.positioning._position([Tried(self.partition, self.partition.attempt)])

    def bring_more(self) -> None:
        """Four more records are written on dc2, and come to dc1."""
        end = self.source.end = self.target.end = COUNT + 4
        self.target.batches += [a_batch(OTHERS, at) for at in range(COUNT, end, 2)]
        self.flow.reverse.arrived.replay(
            *reached(*PLACE, Reached(place=Place(end), target_end=end))
        )
        self.partition.heard(source_end=end, readable_end=end, now_ms=1)

    def delete(self, before: int) -> None:
        """Retention on dc2 takes the first records; each batch has two."""
        self.target.start = before
        del self.target.batches[: before // 2]


@asynccontextmanager
async def staged() -> AsyncIterator[Stage]:
    async with two_fakes() as (dc1, dc2, links):
        source, target = (one.create_topic("orders", 0).partitions[0] for one in (dc1, dc2))
        dc2.create_topic("dc1.offset-map.internal", 0)
        source.end = target.end = COUNT
        target.batches = [a_batch(OTHERS, at) for at in range(0, COUNT, 2)]
        config = replace(CONFIG, is_active_active=True)
        flow = FlowState(config=config, measurements=FlowMeasurements("dc1->dc2"))
        map_log = MapLog(links.target_admin, "dc1", 1, MemoryWriters())
        map_log._writer = MirrorProducer(producer_id=9, producer_epoch=0)
        ours = MirrorProducer(producer_id=7, producer_epoch=0)
        for record in (
            mirror_producer(ours),
            piece_start(*PLACE, source_start=COUNT, place=Place(0)),
            reached(*PLACE, Reached(place=Place(0), target_end=0)),
        ):
            map_log.state.replay(*record)
        flow.reverse.arrived.replay(*piece_start(*PLACE, source_start=0, place=Place(0)))
        flow.reverse.arrived.replay(*reached(*PLACE, Reached(place=Place(COUNT), target_end=COUNT)))
        partition = MirroredPartition(
            *PLACE, topic_id=UUID(int=1), offset_map=map_log.state.maps[PLACE], now_ms=0
        )
        flow.partitions.take(partition)
        yield Stage(
            flow=flow,
            partition=partition,
            positioning=Positioning(flow.for_positioning, links, map_log, MemoryWriters()),
            keeper=ReachedKeeper(flow.live_config, flow.partitions, flow.reverse, map_log),
            map_log=map_log,
            source=source,
            target=target,
        )


async def test_a_quiet_source_goes_on_although_nothing_tells_any_more_how_far_it_was_mirrored() -> (
    None
):
    async with staged() as stage:
        stage.delete(6)
        await stage.position()
        assert stage.flow.progress.take() == {PLACE}
        assert stage.partition.cursor == Cursor(COUNT, Place(0), COUNT)
        assert stage.map_log.state.reached[PLACE] == Reached(place=Place(0), target_end=COUNT)


async def test_what_came_to_a_source_whose_mirroring_cannot_be_told_waits_for_a_decision() -> None:
    async with staged() as stage:
        stage.delete(6)
        stage.source.end = COUNT + 3
        await stage.position()
        status = stage.partition.status
        assert (status.state, status.reason) == (PartitionState.TARGET_DIVERGED, UNTOLD)
        stage.partition.skips.allow_once(Policy.MERGE)
        stage.partition.retry("restarted", 0)
        await stage.position()
        assert stage.partition.cursor == Cursor(COUNT, Place(0), COUNT)


async def test_how_far_a_quiet_source_is_mirrored_is_told_again_as_the_target_moves_on() -> None:
    async with staged() as stage:
        await stage.position()
        stage.bring_more()
        await stage.keeper.write()
        assert stage.map_log.state.reached[PLACE] == Reached(place=Place(0), target_end=COUNT + 4)
        stage.delete(COUNT + 2)
        stage.source.end = COUNT + 7
        stage.partition.interrupt("a leader moved", 2)
        await stage.position()
        assert stage.partition.cursor == Cursor(COUNT + 4, Place(0), COUNT + 4)


@pytest.mark.parametrize("is_sent", [True, False])
async def test_nothing_is_told_behind_batches_that_are_under_way_or_to_come(
    *, is_sent: bool
) -> None:
    """Of what is to come a batch may be there whose answer was lost."""
    async with staged() as stage:
        await stage.position()
        if is_sent:
            stage.partition.in_flight.enqueue([Forward(Place(0), 1, 1, 0, 1, (b"",))])
            stage.partition.in_flight.send_next(0)
        else:
            stage.partition.move(PartitionState.CATCHING_UP, 0)
        stage.bring_more()
        await stage.keeper.write()
        assert stage.map_log.state.reached[PLACE] == Reached(place=Place(0), target_end=COUNT)


async def test_a_target_from_which_retention_has_taken_everything_is_begun_behind() -> None:
    async with staged() as stage:
        stage.delete(COUNT)
        await stage.position()
        assert stage.partition.cursor == Cursor(COUNT, Place(0), COUNT)


async def test_an_order_that_did_not_end_this_stop_does_not_wait_for_another_one() -> None:
    """What was to be set aside here is nothing that only the target has."""
    async with staged() as stage:
        stage.delete(6)
        stage.source.end = COUNT + 3
        await stage.position()
        stage.partition.skips.allow_once(Policy.QUARANTINE)
        stage.partition.retry("restarted", 0)
        await stage.position()
        assert stage.partition.state is PartitionState.TARGET_DIVERGED
        assert stage.partition.skips.allowed_once is None

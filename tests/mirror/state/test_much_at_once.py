"""However much there is to tell at once, a broker takes each write of the map."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from uuid import UUID

from mirror.clusters.links import Links
from mirror.clusters.log_ends import LogEnds
from mirror.flow.flow_state import FlowState
from mirror.forward.fetch_plan import AskedPartition
from mirror.forward.routing import Routed
from mirror.forward.source import SourceFetcher, _announcements, _Waiting
from mirror.map.map_log import RECORDS_A_WRITE, MapLog
from mirror.map.reached import ReachedKeeper
from mirror.start.log_readings import LogReadings, Tried
from mirror.start.positioning import Positioning
from mirror.state.batches import Cursor, Forward
from mirror.state.measurements import FlowMeasurements
from mirror.state.partition import MirroredPartition
from mirror.state.partition_state import PartitionState
from offset_translation.map_records import MirrorProducer, Reached, mirror_producer, reached
from offset_translation.runs import Place
from offset_translation.tail import Tail
from tests.doubles.fake_answers import ANSWERS
from tests.doubles.fake_cluster import run_fake_cluster
from tests.doubles.map_writers import MemoryWriters
from tests.mirror.building import CONFIG, Taken, way_of
from wire.errors import ErrorCode
from wire.headers import RequestHeader
from wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from wire.net import open_cluster
from wire.topic_partition import TopicPartition

PRODUCE = 0
MOST_BYTES = 1_048_588
"""What Kafka's brokers take by default."""
MANY = 9_000
"""Of the longest names: more than two megabytes, where half of them are more than one."""
LONGEST_NAME = "t" * 249


class Stage:
    """A flow of one partition and its map, on a broker that takes a megabyte at once."""

    def __init__(self, client: Any, topic: str) -> None:
        self.links = Links(
            source_data=client,
            source_groups=client,
            source_admin=client,
            target_data=client,
            target_admin=client,
        )
        config = replace(CONFIG, is_active_active=True)
        self.flow = FlowState(config=config, measurements=FlowMeasurements("dc1->dc2"))
        self.map_log = MapLog(client, "dc1", 1, MemoryWriters())
        self.map_log._writer = MirrorProducer(producer_id=9, producer_epoch=0)
        self.map_log.state.replay(*mirror_producer(MirrorProducer(producer_id=7, producer_epoch=0)))
        self.map_log.state._map(topic, 0).announce(0, Place(0))
        self.partition = MirroredPartition(
            topic,
            0,
            topic_id=UUID(int=1),
            offset_map=self.map_log.state.maps[TopicPartition(topic, 0)],
            now_ms=0,
        )
        self.flow.partitions.take(self.partition)
        self.partition.move(PartitionState.POSITIONING, 0)


@asynccontextmanager
async def staged(topic: str) -> AsyncIterator[Stage]:
    async with run_fake_cluster(1) as fake:
        fake.create_topic("dc1.offset-map.internal", 0)
        [broker] = fake.brokers.values()

        async def take(header: RequestHeader, request: ProduceRequest) -> ProduceResponse:
            [[of_topic], code] = request.topic_data, ErrorCode.MESSAGE_TOO_LARGE
            [one] = of_topic.partition_data
            assert isinstance(one.records, memoryview)
            if len(one.records) <= MOST_BYTES:
                answer: ProduceResponse = ANSWERS[PRODUCE](broker, header.api_version, request)
                return answer
            refused = PartitionProduceResponse(index=0, error_code=code, base_offset=-1)
            return ProduceResponse(
                responses=(
                    TopicProduceResponse(name=of_topic.name, partition_responses=(refused,)),
                )
            )

        broker.scripts[PRODUCE] = take
        async with open_cluster(fake.bootstrap, client_id="test") as client:
            yield Stage(client, topic)


def forward_to(place: int) -> Forward:
    """A batch of one record for this place."""
    return Forward(Place(place), 1, place + 1, 0, 1, (b"",))


async def test_the_holes_of_a_large_answer_are_announced_in_several_writes() -> None:
    async with staged(LONGEST_NAME) as stage:
        partition, cursor = stage.partition, Cursor(2 * MANY, Place(MANY), MANY)
        partition.go_on(Cursor(0, Place(0), 0), 0)
        taken = Taken()
        fetcher = SourceFetcher(
            0, stage.flow.for_fetching, stage.links, way_of(stage.map_log, taken)
        )
        routed = Routed(cursor=cursor, starts=[(2 * n, Place(n)) for n in range(1, MANY)])
        asked = AskedPartition(partition, partition.attempt, 0)
        await fetcher._forward_behind_holes(
            [_Waiting(asked, routed, _announcements(asked, routed))]
        )
        assert stage.flow.progress.take() == {partition.topic_partition}
    assert taken.all == [(partition, routed)]
    partition.offset_map.advance(MANY)
    assert partition.offset_map.mirrored_source_end == 2 * MANY - 1


async def test_what_was_announced_and_never_came_is_taken_back_in_several_writes() -> None:
    async with staged(LONGEST_NAME) as stage:
        partition = stage.partition
        stage.flow.take_config(replace(CONFIG, is_active_active=False))
        for n in range(1, MANY):
            partition.offset_map.announce(2 * n, Place(n))
        place = TopicPartition(partition.topic, 0)
        found = LogReadings(
            source={place: LogEnds(start=0, end=2 * MANY)},
            target={place: LogEnds(start=0, end=10)},
            tails={},
            rewritten={},
        )
        positioning = Positioning(
            stage.flow.for_positioning, stage.links, stage.map_log, MemoryWriters()
        )
        await positioning._begin([Tried(partition, partition.attempt)], found)
    assert partition.state is PartitionState.CATCHING_UP
    assert partition.cursor == Cursor(19, Place(10), 9), "the hole before 20 is read again"
    assert partition.offset_map.beyond().pieces == ()


async def test_runs_that_gathered_are_told_in_several_writes_and_the_place_reached_last() -> None:
    async with staged(LONGEST_NAME) as stage:
        partition = stage.partition
        partition.go_on(Cursor(0, Place(0), 0), 0)
        place = TopicPartition(partition.topic, 0)
        stage.map_log.state.replay(*reached(*place, Reached(place=Place(0), target_end=0)))
        for n in range(1, MANY + 1):
            partition.displaced(forward_to(n), 2 * n)
        partition.offset_map.advance(2 * MANY)
        partition.offset_map.reach(Place(MANY + 1))
        flow = stage.flow
        keeper = ReachedKeeper(flow.live_config, flow.partitions, flow.reverse, stage.map_log)
        looks = 0
        while stage.map_log.state.reached[place].place == 0:
            await keeper.write()
            looks += 1
    assert looks == MANY // RECORDS_A_WRITE + 1
    assert not partition.target.untold_runs
    assert stage.map_log.state.reached[place] == Reached(
        place=Place(MANY + 1), target_end=2 * MANY + 1
    )


async def test_runs_that_gathered_are_told_in_several_writes_before_a_place_is_begun_at() -> None:
    """Half of them are known by acknowledgements, the others have been read off the log."""
    async with staged(LONGEST_NAME) as stage:
        partition = stage.partition
        place, half = TopicPartition(partition.topic, 0), MANY // 2
        stage.map_log.state.replay(*reached(*place, Reached(place=Place(0), target_end=0)))
        for n in range(1, half + 1):
            partition.displaced(forward_to(n), 2 * n)
        tail = Tail(partition.offset_map, Place(half))
        for n in range(half, MANY + 1):
            tail.take(2 * n, n, 1)
        found = LogReadings(
            source={place: LogEnds(start=0, end=2 * MANY)},
            target={place: LogEnds(start=0, end=2 * MANY + 1)},
            tails={place: tail},
            rewritten={},
        )
        positioning = Positioning(
            stage.flow.for_positioning, stage.links, stage.map_log, MemoryWriters()
        )
        await positioning._begin([Tried(partition, partition.attempt)], found)
    assert partition.state is PartitionState.CATCHING_UP
    assert partition.cursor == Cursor(MANY + 1, Place(MANY + 1), 0)
    assert list(partition.offset_map.runs) == [(n, 2 * n) for n in range(1, MANY + 1)]
    end = 2 * MANY + 1
    assert stage.map_log.state.reached[place] == Reached(place=Place(MANY + 1), target_end=end)

"""What is read off the last batches of a target, and what becomes of what cannot be read."""

from dataclasses import replace
from uuid import UUID

import pytest
import trio

from mirror.clusters.links import Links
from mirror.clusters.log_ends import LogEnds
from mirror.flow.flow_state import FlowState
from mirror.map.map_log import MapLog
from mirror.start.foreign_records import Found, Looked, find_foreign_records
from mirror.start.log_readings import LogReadings, Tried
from mirror.start.positioning import Positioning
from mirror.start.target_tail import Tails, read_tails, sequence_fault
from mirror.state.measurements import FlowMeasurements
from mirror.state.partition import MirroredPartition
from mirror.state.partition_state import PartitionState
from offset_translation.map_records import MirrorProducer, mirror_producer
from offset_translation.offset_map import OffsetMap
from offset_translation.runs import Place
from offset_translation.tail import Tail, TailGarbled
from tests.doubles.fake_answers import ANSWERS, fetch
from tests.doubles.fake_cluster import FakeBroker, FakeCluster, Script, run_fake_cluster
from tests.doubles.map_writers import MemoryWriters
from tests.mirror.building import CONFIG
from tests.mirror.start.tails import a_batch
from tests.mirror.two_fakes import two_fakes
from wire.errors import ErrorCode
from wire.headers import RequestHeader
from wire.messages.fetch import FetchRequest, FetchResponse
from wire.net import Cluster, ConnectionClosed, RequestRefused, open_cluster
from wire.record_batch import parse_header
from wire.topic_partition import TopicPartition

MIRROR = MirrorProducer(producer_id=7, producer_epoch=0)
FETCH = 1


def a_partition(index: int) -> MirroredPartition:
    return MirroredPartition(
        "orders",
        index,
        topic_id=UUID(int=1),
        offset_map=OffsetMap.from_starts([(0, 0)], target_end=0),
        now_ms=0,
    )


def fill(fake: FakeCluster, *leaders: int) -> list[MirroredPartition]:
    """Give each partition two records of the mirror's."""
    topic = fake.create_topic("orders", *leaders)
    for partition in topic.partitions.values():
        partition.batches.append(a_batch(MIRROR, 0))
        partition.end = 2
    return [a_partition(index) for index in topic.partitions]


async def read(
    cluster: Cluster, partitions: list[MirroredPartition], *, shared: bool, end: int = 2
) -> Tails | Found:
    map_log = MapLog(cluster, "dc1", 1, MemoryWriters())
    map_log.state.replay(*mirror_producer(MIRROR))
    target: dict[TopicPartition, LogEnds | ErrorCode] = {
        TopicPartition(one.topic, one.index): LogEnds(start=0, end=end) for one in partitions
    }
    if shared:
        return await read_tails(cluster, partitions, target, map_log)
    links = Links(
        source_data=cluster,
        source_groups=cluster,
        source_admin=cluster,
        target_data=cluster,
        target_admin=cluster,
    )
    looked = [Looked(partition=one, is_odd=True, was_returned=False) for one in partitions]
    return await find_foreign_records(links, looked, target, target, map_log.state)


def test_a_batch_is_held_against_the_run_that_it_lies_in() -> None:
    """Behind a seal an empty run says where the next record lies: the last batch lies before it."""
    offset_map = OffsetMap()
    offset_map.announce(0, Place(0))
    offset_map.begin_run(Place(2), 7)
    offset_map.advance(7)
    producer = MirrorProducer(producer_id=5, producer_epoch=0)
    ours = parse_header(a_batch(producer, 0))
    assert sequence_fault(offset_map, ours) is None
    fault = sequence_fault(offset_map, ours._replace(base_sequence=1))
    assert fault is not None
    assert "somebody else has written before it" in fault
    behind = ours._replace(base_offset=7, base_sequence=2)
    assert sequence_fault(offset_map, behind) is None
    assert sequence_fault(offset_map, behind._replace(base_sequence=7)) is not None


async def test_the_tail_of_a_shared_target_says_how_far_it_is_mirrored() -> None:
    async with run_fake_cluster(2) as fake:
        partitions = fill(fake, 0, 1)
        async with open_cluster(fake.bootstrap, client_id="test") as cluster:
            tails = await read(cluster, partitions, shared=True)
    for index in range(2):
        tail = tails[TopicPartition("orders", index)]
        assert isinstance(tail, Tail)
        assert tail.reached.place == 2


async def test_records_of_others_are_not_taken_for_mirrored_while_the_tail_is_read() -> None:
    async with run_fake_cluster(1) as fake:
        [partition] = fill(fake, 0)
        log = fake.topics["orders"].partitions[0]
        log.batches.append(a_batch(MirrorProducer(producer_id=-1, producer_epoch=-1), 2))
        log.end = 4
        partition.offset_map.advance(2)
        ends: list[int | None] = []

        async def looked_at(header: RequestHeader, request: FetchRequest) -> FetchResponse:
            ends.append(partition.offset_map.mirrored_source_end)
            answer: FetchResponse = ANSWERS[FETCH](fake.brokers[0], header.api_version, request)
            return answer

        fake.brokers[0].scripts[FETCH] = looked_at
        async with open_cluster(fake.bootstrap, client_id="test") as cluster:
            tails = await read(cluster, [partition], shared=True, end=4)
    tail = tails[TopicPartition("orders", 0)]
    assert isinstance(tail, Tail)
    assert tail.reached.place == 2
    assert set(ends) == {2}


@pytest.mark.parametrize("state", [PartitionState.RETENTION_OVERRUN, PartitionState.CATCHING_UP])
async def test_records_of_others_are_not_taken_for_mirrored_by_who_stops(
    state: PartitionState,
) -> None:
    async with run_fake_cluster(1) as fake:
        fake.create_topic("dc1.offset-map.internal", 0)
        [partition] = fill(fake, 0)
        place = TopicPartition(partition.topic, 0)
        source_start = 0 if state is PartitionState.CATCHING_UP else 5
        async with open_cluster(fake.bootstrap, client_id="test") as cluster:
            map_log = MapLog(cluster, "dc1", 1, MemoryWriters())
            map_log._writer = MirrorProducer(producer_id=9, producer_epoch=0)
            flow = FlowState(
                config=replace(CONFIG, is_active_active=True),
                measurements=FlowMeasurements("dc1->dc2"),
            )
            links = Links(
                source_data=cluster,
                source_groups=cluster,
                source_admin=cluster,
                target_data=cluster,
                target_admin=cluster,
            )
            tail = Tail(partition.offset_map, Place(2))
            found = LogReadings(
                source={place: LogEnds(start=source_start, end=9)},
                target={place: LogEnds(start=0, end=4)},
                tails={place: tail},
                rewritten={},
            )
            partition.move(PartitionState.POSITIONING, 0)
            tried = Tried(partition, partition.attempt)
            await Positioning(flow.for_positioning, links, map_log, MemoryWriters())._begin(
                [tried], found
            )
    assert partition.state is state
    assert partition.offset_map.mirrored_source_end == 2


@pytest.mark.parametrize("shared", [True, False])
async def test_a_leader_that_is_gone_concerns_its_partition_alone(shared: bool) -> None:
    async with run_fake_cluster(2) as fake:
        partitions = fill(fake, 0, 1)
        fake.topics["orders"].partitions[1].leader = -1
        async with open_cluster(fake.bootstrap, client_id="test") as cluster:
            tails = await read(cluster, partitions, shared=shared)
    refused = tails[TopicPartition("orders", 1)]
    assert isinstance(refused, RequestRefused)
    assert refused.code is ErrorCode.LEADER_NOT_AVAILABLE
    assert not isinstance(tails.get(TopicPartition("orders", 0)), RequestRefused)


@pytest.mark.parametrize("shared", [True, False])
async def test_targets_are_looked_at_together(shared: bool) -> None:
    """One after the other, thousands take long when a broker has gone."""
    async with run_fake_cluster(2) as fake:
        partitions, asked, both = fill(fake, 0, 1), set[int](), trio.Event()

        def script(broker: FakeBroker) -> Script:
            async def answer(header: RequestHeader, request: FetchRequest) -> FetchResponse:
                asked.add(broker.node_id)
                if len(asked) == len(fake.brokers):
                    both.set()
                await both.wait()
                return fetch(broker, header.api_version, request)

            return answer

        for broker in fake.brokers.values():
            broker.scripts[FETCH] = script(broker)
        async with open_cluster(fake.bootstrap, client_id="test") as cluster:
            with trio.fail_after(5):
                tails = await read(cluster, partitions, shared=shared)
    assert len(tails) == (2 if shared else 0)


@pytest.mark.parametrize("shared", [True, False])
async def test_connections_that_end_at_once_are_one_fault_that_passes(shared: bool) -> None:
    async with run_fake_cluster(2) as fake:
        partitions = fill(fake, 0, 1)

        async def cut(*_: object) -> None:
            for broker in fake.brokers.values():
                await broker.cut_connections()

        for broker in fake.brokers.values():
            broker.scripts[FETCH] = cut
        async with open_cluster(fake.bootstrap, client_id="test") as cluster:
            with pytest.raises(ConnectionClosed):
                await read(cluster, partitions, shared=shared)


@pytest.mark.parametrize("shared", [True, False])
async def test_a_last_batch_that_is_damaged_is_told_and_concerns_its_partition_alone(
    shared: bool,
) -> None:
    async with run_fake_cluster(1) as fake:
        partitions = fill(fake, 0, 0)
        [broker] = fake.brokers.values()

        async def damaged(header: RequestHeader, request: FetchRequest) -> FetchResponse:
            answer: FetchResponse = ANSWERS[FETCH](broker, header.api_version, request)
            [topic] = answer.responses
            [found] = topic.partitions
            if found.partition_index == 1:
                assert isinstance(found.records, bytes)
                batch = found.records
                found = replace(found, records=batch[:16] + b"\x07" + batch[17:])
            return replace(answer, responses=(replace(topic, partitions=(found,)),))

        broker.scripts[FETCH] = damaged
        async with open_cluster(fake.bootstrap, client_id="test") as cluster:
            tails = await read(cluster, partitions, shared=shared)
    assert not isinstance(tails.get(TopicPartition("orders", 0)), TailGarbled)
    told = tails[TopicPartition("orders", 1)]
    assert isinstance(told, TailGarbled)
    assert "damaged" in str(told)


@pytest.mark.parametrize("shared", [True, False])
async def test_a_target_that_may_not_be_read_does_not_hold_up_others_of_its_leader(
    shared: bool,
) -> None:
    async with two_fakes() as (dc1, dc2, links):
        for partition in dc1.create_topic("orders", 0, 0).partitions.values():
            partition.end = 2
        dc2.create_topic("dc1.offset-map.internal", 0)
        partitions = fill(dc2, 0, 0)
        [broker] = dc2.brokers.values()

        async def forbidden(header: RequestHeader, request: FetchRequest) -> FetchResponse:
            answer: FetchResponse = ANSWERS[FETCH](broker, header.api_version, request)
            [topic] = answer.responses
            [found] = topic.partitions
            if found.partition_index == 1:
                code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                found = replace(found, error_code=code, records=b"")
            return replace(answer, responses=(replace(topic, partitions=(found,)),))

        broker.scripts[FETCH] = forbidden
        config = replace(CONFIG, is_active_active=shared)
        flow = FlowState(config=config, measurements=FlowMeasurements("dc1->dc2"))
        map_log = MapLog(links.target_admin, "dc1", 1, MemoryWriters())
        map_log._writer = MirrorProducer(producer_id=9, producer_epoch=0)
        map_log.state.replay(*mirror_producer(MIRROR))
        for one in partitions:
            one.target.leave(0)  # what has come since is looked at
            one.move(PartitionState.POSITIONING, 0)
        tries = [Tried(one, one.attempt) for one in partitions]
        await Positioning(flow.for_positioning, links, map_log, MemoryWriters())._position(tries)
    states = [one.state for one in partitions]
    assert states == [PartitionState.STREAMING, PartitionState.NOT_AUTHORISED]


@pytest.mark.parametrize(
    ("writer", "state"),
    [(-1, PartitionState.TARGET_DIVERGED), (7, PartitionState.CATCHING_UP)],
    ids=["others", "a batch of ours whose answer was lost"],
)
async def test_what_has_come_since_a_partition_was_interrupted_is_looked_at(
    writer: int, state: PartitionState
) -> None:
    """A broker that has forgotten our sequences would refuse none of those that follow."""
    async with (
        run_fake_cluster() as dc1,
        run_fake_cluster() as dc2,
        open_cluster(dc1.bootstrap, client_id="test") as source,
        open_cluster(dc2.bootstrap, client_id="test") as target,
    ):
        dc1.create_topic("orders", 0).partitions[0].end = 9
        dc2.create_topic("dc1.offset-map.internal", 0)
        [partition] = fill(dc2, 0)
        flow = FlowState(config=CONFIG, measurements=FlowMeasurements("dc1->dc2"))
        links = Links(
            source_data=source,
            source_groups=source,
            source_admin=source,
            target_data=target,
            target_admin=target,
        )
        map_log = MapLog(target, "dc1", 1, MemoryWriters())
        map_log._writer = MirrorProducer(producer_id=9, producer_epoch=0)
        map_log.state.replay(*mirror_producer(MIRROR))
        positioning = Positioning(flow.for_positioning, links, map_log, MemoryWriters())
        ends = []
        for _ in range(2):
            partition.move(PartitionState.POSITIONING, 0)
            await positioning._position([Tried(partition, partition.attempt)])
            ends.append(partition.cursor and partition.cursor.place)
            if partition.is_flowing and len(ends) == 1:
                partition.interrupt("the target leader moved", 0)
                log = dc2.topics["orders"].partitions[0]
                log.batches.append(a_batch(replace(MIRROR, producer_id=writer), 2))
                log.end = 4
        assert partition.state is state
        assert ends == [2, 4 if state is PartitionState.CATCHING_UP else None]

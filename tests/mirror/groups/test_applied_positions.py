"""What is committed on the target when positions, or what is known of them, change on the way."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from uuid import UUID

import pytest
import trio

from mirror.flow.flow_state import FlowState
from mirror.groups.source_groups import OFFSETS_TOPIC, Held, SourcePosition
from mirror.groups.sync import CUT, SETTLED, GroupSync
from mirror.state.batches import Cursor
from mirror.state.partition import MirroredPartition
from mirror.state.partition_state import PartitionState
from mirror.state.reverse_flow import UnbelievedArrivals
from offset_translation import checkpoint
from offset_translation.checkpoint import Checkpoint
from offset_translation.map_records import piece_start
from offset_translation.offset_map import OffsetMap
from offset_translation.runs import Place
from tests.doubles.fake_cluster import FakeCluster, Raw, run_fake_cluster
from tests.doubles.fake_groups import offset_fetch
from tests.doubles.map_writers import MemoryWriters
from tests.mirror.building import CONFIG
from tests.mirror.groups.source_logs import commits, fetched, source_of
from wire.headers import RequestHeader
from wire.messages.fetch import FetchRequest, FetchResponse
from wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from wire.record_batch import iterate_batches, iterate_records
from wire.topic_partition import TopicPartition

TOPIC = CONFIG.names.checkpoints_topic


def applied(offset: int) -> Checkpoint:
    return Checkpoint("g", "orders", 0, offset, offset)


def positioned(offset_map: OffsetMap) -> MirroredPartition:
    """Return orders-0 with a map that is believed."""
    partition = MirroredPartition(
        "orders", 0, topic_id=UUID(int=1), offset_map=offset_map, now_ms=0
    )
    partition.target.find_position()
    return partition


@asynccontextmanager
async def sync_of(
    *, told: int, on_target: int, brokers: int = 1
) -> AsyncIterator[tuple[GroupSync, FlowState, FakeCluster]]:
    """Give the sync of a flow whose ten records of orders-0 are mirrored; it has read all."""
    async with run_fake_cluster(brokers) as fake, source_of(fake) as (_, flow, links):
        fake.create_topic(TOPIC, 0)
        fake.offsets["g"]["orders", 0] = on_target
        flow.partitions.take(positioned(OffsetMap.from_starts([(0, 0)], 10)))
        sync = GroupSync(flow.for_groups, links, MemoryWriters())
        await sync._load()
        sync.checkpoints.applied["g", "orders", 0] = applied(told)
        yield sync, flow, fake


def told(fake: FakeCluster) -> list[Checkpoint]:
    """Return the checkpoints that were written."""
    return [
        checkpoint.decode(record.key or b"", record.value or b"")
        for written in fake.topics[TOPIC].partitions[0].batches
        for _, batch in iterate_batches(memoryview(written))
        for record in iterate_records(batch)
    ]


async def run_until_told(sync: GroupSync, fake: FakeCluster) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(sync.run)
        with trio.move_on_after(5):
            while not told(fake):  # noqa: ASYNC110 - the fake has no event
                await trio.sleep(0.01)
        nursery.cancel_scope.cancel()


async def test_who_stops_before_all_is_read_takes_no_old_commit_for_a_rewind() -> None:
    async with sync_of(told=9, on_target=9) as (sync, _, fake):
        held: Held = {}
        for record in iterate_records(commits(2, "g")):
            sync.groups.replay(record, held)
        await sync.apply_now()
        assert fake.offsets["g"]["orders", 0] == 9
        sync.groups.release(held)
        await sync.apply_now()
        assert fake.offsets["g"]["orders", 0] == 2


async def test_a_coordinator_that_is_away_from_the_start_holds_up_its_own_groups_alone() -> None:
    async with sync_of(told=3, on_target=9, brokers=2) as (sync, flow, fake):
        flow.take_config(replace(flow.config, are_groups_polled=True))
        fake.coordinators["away"] = 1
        fake.offsets["away"]["orders", 0] = 5

        async def hang_up(_: RequestHeader, __: OffsetFetchRequest) -> Raw:
            return Raw(b"", cut=True)

        fake.brokers[1].scripts[OffsetFetchRequest.API_KEY] = hang_up
        await run_until_told(sync, fake)
        assert told(fake) == [applied(9)]


async def test_positions_are_applied_while_another_part_of_the_topic_has_no_leader() -> None:
    async with sync_of(told=3, on_target=9) as (sync, _, fake):
        topic = fake.create_topic(OFFSETS_TOPIC, 0, -1)
        topic.partitions[0].start, topic.partitions[0].end = 9, 10

        async def fetch(_: RequestHeader, request: FetchRequest) -> FetchResponse:
            return fetched({0: [(10, commits(9, "g"))]}, request)

        fake.brokers[0].scripts[FetchRequest.API_KEY] = fetch
        await run_until_told(sync, fake)
        assert told(fake) == [applied(9)]


async def test_a_commit_of_which_nothing_was_told_is_told_of_by_who_finds_it() -> None:
    async with sync_of(told=3, on_target=9) as (sync, _, fake):
        sync.groups._learn("g", TopicPartition("orders", 0), SourcePosition(9, ""))
        await sync.apply_now()
        assert told(fake) == [applied(9)]
        sync.groups._learn("g", TopicPartition("orders", 0), SourcePosition(6, ""))
        await sync.apply_now()
        assert fake.offsets["g"]["orders", 0] == 6, "a rewind on the source"


async def test_nothing_is_committed_while_the_map_of_the_way_back_is_not_believed() -> None:
    """The group may stand among records that came from there: it would read all of them again."""
    async with sync_of(told=3, on_target=3) as (sync, flow, fake):
        key, _ = piece_start("orders", 0, source_start=0, place=Place(0))
        flow.reverse.unbelieved.note(key)
        sync.groups._learn("g", TopicPartition("orders", 0), SourcePosition(9, ""))
        await sync.apply_now()
        assert fake.offsets["g"]["orders", 0] == 3
        flow.reverse.unbelieved = UnbelievedArrivals()
        flow.progress.tell(flow.partitions.own.values())
        await sync.apply_now()
        assert fake.offsets["g"]["orders", 0] == 9


@pytest.mark.parametrize("state", [PartitionState.TARGET_DIVERGED, PartitionState.SOURCE_WENT_BACK])
async def test_nothing_is_committed_by_a_map_that_came_into_doubt_meanwhile(
    state: PartitionState,
) -> None:
    async with sync_of(told=3, on_target=3) as (sync, flow, fake):
        partition = flow.partitions.own[TopicPartition("orders", 0)]

        async def tell(header: RequestHeader, request: OffsetFetchRequest) -> OffsetFetchResponse:
            partition.stop(state, "meanwhile", 1)
            found: OffsetFetchResponse = offset_fetch(fake.brokers[0], header.api_version, request)
            return found

        fake.brokers[0].scripts[OffsetFetchRequest.API_KEY] = tell
        sync.groups._learn("g", TopicPartition("orders", 0), SourcePosition(9, ""))
        await sync.apply_now()
        assert fake.offsets["g"]["orders", 0] == 3
        partition.retry("somebody has decided", 2)
        assert sync._due() == {}
        partition.move(PartitionState.POSITIONING, 3)
        partition.go_on(Cursor(10, Place(10), 0), 4)
        flow.progress.tell([partition])
        assert sync._due() == {"g": {("orders", 0)}}


async def test_a_group_that_stands_before_the_oldest_record_goes_on_at_the_target_by_itself() -> (
    None
):
    async with sync_of(told=3, on_target=-1) as (sync, flow, fake):
        flow.partitions.take(positioned(OffsetMap.from_starts([(100, 0)], 10)))
        del sync.checkpoints.applied["g", "orders", 0]
        sync.groups._learn("g", TopicPartition("orders", 0), SourcePosition(40, ""))
        await sync.apply_now()
        assert fake.offsets["g"]["orders", 0] == 0
        fake.offsets["g"]["orders", 0] = 7
        sync.groups._learn("g", TopicPartition("orders", 0), SourcePosition(40, "looked at again"))
        await sync.apply_now()
        assert fake.offsets["g"]["orders", 0] == 7


async def test_a_group_that_meets_an_error_is_held_back_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with sync_of(told=1, on_target=1) as (sync, flow, fake):
        place = TopicPartition("orders", 0)
        fake.offsets["bad"][place] = 1
        decided = []

        def decide_one(group: str, *_: object) -> dict[TopicPartition, object]:
            if group == "bad":
                raise ZeroDivisionError("planted")
            decided.append(group)
            return {}

        monkeypatch.setattr(sync, "_decide", decide_one)
        for group in ("bad", "g"):
            sync.groups.positions[group] = {place: SourcePosition(5, "")}
        await sync._apply({"bad": {place}, "g": {place}})
        assert decided == ["g"]
        assert sync.fault.text == "group bad: failed: ZeroDivisionError: planted"
        assert flow.partitions.own[place].state is not PartitionState.FAILED


async def test_a_group_before_the_targets_log_start_goes_on_there_and_is_shown_so() -> None:
    place = TopicPartition("orders", 0)
    async with sync_of(told=0, on_target=-1) as (sync, _, fake):
        fake.create_topic("orders", 0)
        log = fake.topics["orders"].partitions[0]
        log.start = log.end = 5
        sync.groups._learn("g", place, SourcePosition(2, ""))
        for _ in range(2):  # committed, then found there
            await sync.apply_now()
            assert fake.offsets["g"]["orders", 0] == 5
            assert sync.status["g", "orders", 0].state == CUT
        sync.groups._learn("g", place, SourcePosition(7, ""))
        await sync.apply_now()
        assert fake.offsets["g"]["orders", 0] == 7
        assert sync.status["g", "orders", 0].state == SETTLED


async def test_where_both_sites_are_written_to_no_position_is_moved_by_retention() -> None:
    """The flow back would carry it to the source, past records that are there."""
    async with sync_of(told=0, on_target=-1) as (sync, flow, fake):
        flow.take_config(replace(flow.config, is_active_active=True))
        fake.create_topic("orders", 0)
        log = fake.topics["orders"].partitions[0]
        log.start = log.end = 5
        sync.groups._learn("g", TopicPartition("orders", 0), SourcePosition(2, ""))
        await sync.apply_now()
        assert fake.offsets["g"]["orders", 0] == 2

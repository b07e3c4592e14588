"""What a fetcher asks for is what flows, however little it looks at for each request."""

from collections.abc import Iterable
from uuid import UUID

import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from mirror.flow.flow_state import FlowState
from mirror.forward.fetch_plan import LOOK_S, FetchPlan, partition_key_of
from mirror.forward.fetch_session import FetchSession, PartitionKey
from mirror.forward.lanes import Lane
from mirror.state.batches import Cursor, Forward
from mirror.state.measurements import FlowMeasurements
from mirror.state.partition import MirroredPartition
from mirror.state.partition_state import PartitionState
from offset_translation.offset_map import OffsetMap
from offset_translation.runs import Place
from tests.mirror.building import CONFIG
from tests.mirror.forward.session_broker import Broker
from wire.hot.fetch import Fetched, FetchedPartition, Wanted
from wire.topic_partition import TopicPartition

NODE = 1
COUNT = 4
ROOM = CONFIG.partition_in_flight_bytes or 0
FILLING = Forward(Place(0), 1, 1, 0, ROOM, (b"",))

events = st.sampled_from(
    ["comes", "comes", "fills", "empties", "stops", "stops unused", "goes on", "moves", "time"]
)


class Site:
    """A flow of a few partitions, a fetcher's part of it, and the broker that it asks."""

    def __init__(self) -> None:
        self.flow = FlowState(config=CONFIG, measurements=FlowMeasurements(CONFIG.name))
        for index in range(COUNT):
            offset_map = OffsetMap.from_starts([(0, 0)], 0)
            partition = MirroredPartition(
                "t",
                index,
                topic_id=UUID(int=1),
                offset_map=offset_map,
                now_ms=0,
                budget=self.flow.budget,
            )
            self.flow.partitions.take(partition)
            partition.leaders.follow_source(NODE, -1)
            partition.move(PartitionState.POSITIONING, 0)
            partition.go_on(Cursor(0, Place(0), 0), 0)
        self.plan = FetchPlan(self.flow.for_fetching, NODE, Lane())
        self.session, self.broker = FetchSession(), Broker()
        self.number = 0

    def partition(self, index: int) -> MirroredPartition:
        return self.flow.partitions.own[TopicPartition("t", index)]

    def ask(self) -> dict[PartitionKey, Wanted]:
        """Look, tell the broker, and return what it knows then."""
        updated, asked = self.plan.update(), self.plan.asked
        if updated is None or not self.session.is_open:
            wishes = {place: Wanted(place[1], one.offset, 9) for place, one in asked.items()}
            question = self.session.ask(wishes)
        else:
            question = self.session.ask_some(
                {
                    place: None if one is None else Wanted(place[1], one.offset, 9)
                    for place, one in updated.items()
                }
            )
        heard = self.broker.hear(question, opens=True)
        assert heard is not None
        self.session.answered(heard[0])
        return heard[1]

    def happen(self, event: str, index: int) -> None:
        """Let one thing happen to one partition."""
        partition = self.partition(index)
        match event:
            case "comes" | "fills" if partition_key_of(partition) in self.plan.asked:
                self.come(index)
                if partition.cursor is not None and event == "fills":
                    partition.in_flight.enqueue([FILLING])
            case "empties":
                partition.in_flight.abandon()
            case "stops" if partition.is_flowing:
                self.flow.interruptions.interrupt(partition, "why", 0)
            case "stops unused" if partition.is_flowing:
                self.flow.interruptions.interrupt(partition, "why", 0)
                if partition_key_of(partition) in self.plan.asked:
                    self.come(index)
            case "goes on" if partition.state is PartitionState.WAITING:
                partition.move(PartitionState.POSITIONING, 0)
                partition.go_on(Cursor(100, Place(100), 0), 0)
                self.flow.wakeups.fetch_anew()
            case "moves":
                leader = NODE if partition.leaders.source != NODE else NODE + 1
                partition.leaders.follow_source(leader, -1)
                self.flow.wakeups.fetch_anew()
            case _:
                pass

    def come(self, index: int) -> None:
        """Have an answer with a batch of a partition, as the fetcher takes it."""
        for one, found in self.plan.match(answer_with([index])):
            end = found.high_watermark
            one.partition.heard(source_end=end, readable_end=end, now_ms=0)
            if not one.is_current:
                self.session.say_again(partition_key_of(one.partition))
                continue
            source, target, shift = one.partition.cursor or Cursor(0, Place(0), 0)
            one.partition.advance(Cursor(source + 1, Place(target + 1), shift))


def answer_with(indexes: Iterable[int]) -> Fetched:
    found = [FetchedPartition(index, 0, 9, 9, 0, (), -1, memoryview(b"batch")) for index in indexes]
    return Fetched(0, 0, 1, [(UUID(int=1), found)])


@settings(deadline=None)
@given(st.lists(st.lists(st.tuples(events, st.integers(0, COUNT - 1)), max_size=4), max_size=12))
def test_the_broker_is_asked_for_all_that_flows_from_where_it_stands(
    rounds: list[list[tuple[str, int]]],
) -> None:
    async def check() -> None:
        site = Site()
        site.ask()
        for happening in rounds:
            for event, index in happening:
                site.happen(event, index)
                if event == "time":
                    await trio.sleep(LOOK_S)
            known = site.ask()
            fresh = FetchPlan(site.flow.for_fetching, NODE, Lane())
            fresh.update()
            for place, one in fresh.asked.items():
                assert known[place].fetch_offset == one.offset
            assert fresh.is_complete == site.plan.is_complete
            assert known.keys() == site.plan.asked.keys()
        await trio.sleep(LOOK_S)
        assert site.ask().keys() == {
            partition_key_of(one)
            for one in site.flow.partitions.own.values()
            if one.is_flowing and one.leaders.source == NODE and one.in_flight.bytes < ROOM
        }
        fresh = FetchPlan(site.flow.for_fetching, NODE, Lane())
        fresh.update()
        assert fresh.behind == site.plan.behind

    trio.run(check, clock=MockClock(autojump_threshold=0))


async def test_only_what_something_came_of_and_what_was_held_back_is_looked_at() -> None:
    site = Site()
    site.partition(3).in_flight.enqueue([FILLING])
    assert site.plan.update() is None
    assert [one for one, _ in site.plan.match(answer_with([1, 3]))] == [
        site.plan.asked[partition_key_of(site.partition(1))]
    ]
    updated = site.plan.update()
    assert updated is not None
    assert {index: one is not None for (_, index), one in updated.items()} == {1: True, 3: False}
    site.partition(3).in_flight.abandon()
    assert [index for _, index in site.plan.update() or ()] == [3]
    assert site.plan.is_complete
    assert site.plan.update() == {}


async def test_who_is_behind_is_known_from_what_was_heard_and_fetched() -> None:
    site = Site()
    site.plan.update()
    assert site.plan.behind == COUNT, "nothing was heard of yet"
    site.come(1)
    site.plan.update()
    assert site.plan.behind == COUNT, "a batch of many"
    site.come(1)
    site.partition(1).advance(Cursor(9, Place(9), 0))
    site.partition(1).in_flight.enqueue([FILLING])
    site.plan.update()
    assert site.plan.behind == COUNT - 1, "all was fetched, though not acknowledged"
    site.flow.interruptions.interrupt(site.partition(2), "why", 0)
    site.flow.wakeups.fetch_anew()
    site.plan.update()
    assert site.plan.behind == COUNT - 2, "who has stopped asks for nothing"

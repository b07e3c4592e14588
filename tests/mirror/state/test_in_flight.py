"""Bytes under way have one owner: the total is the sum of the partitions, whatever happens."""

from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from mirror.flow.flow_state import FlowState
from mirror.state.batches import Cursor, Forward
from mirror.state.in_flight import (
    FAR,
    LEAST_ROOM_BYTES,
    NEAR,
    REMEMBERED_MS,
    InFlight,
    InFlightBudget,
    Room,
)
from mirror.state.measurements import FlowMeasurements
from mirror.state.partition import MirroredPartition
from mirror.state.partition_state import PartitionState
from offset_translation.offset_map import OffsetMap
from offset_translation.runs import Place
from tests.mirror.building import CONFIG
from wire.topic_partition import TopicPartition

indexes = st.integers(0, 2)
sizes = st.lists(st.integers(1, 1_000), min_size=1, max_size=4)


def a_batch(size: int, place: int = 0) -> Forward:
    return Forward(Place(place), 1, place + 1, 0, size, (b"",))


class BytesUnderWay(RuleBasedStateMachine):
    """Three partitions of a flow, and whatever may happen to batches of theirs."""

    def __init__(self) -> None:
        super().__init__()
        self.flow = FlowState(config=CONFIG, measurements=FlowMeasurements(CONFIG.name))
        self.now_ms = 0
        self.all: list[MirroredPartition] = []
        """Those that were let go of too: what they had sent is still answered."""
        self.sent: list[tuple[MirroredPartition, int, Forward]] = []
        for index in range(3):
            self.take(index)

    def take(self, index: int) -> None:
        partition = MirroredPartition(
            "t",
            index,
            topic_id=UUID(int=1),
            offset_map=OffsetMap.from_starts([(0, 0)], 0),
            now_ms=self.now_ms,
            budget=self.flow.budget,
        )
        self.flow.partitions.take(partition)
        self.all.append(partition)

    def partition(self, index: int) -> MirroredPartition:
        return self.flow.partitions.own[TopicPartition("t", index)]

    @rule(index=indexes)
    def position(self, index: int) -> None:
        """Positioning waits until all that was sent is answered."""
        partition = self.partition(index)
        if partition.state is PartitionState.PAUSED:
            partition.retry("resumed", self.now_ms)
        due = {PartitionState.DISCOVERING, PartitionState.WAITING}
        if partition.state in due and partition.in_flight.is_settled:
            partition.move(PartitionState.POSITIONING, self.now_ms)
            partition.go_on(Cursor(0, Place(0), 0), self.now_ms)

    @rule(index=indexes, sizes=sizes)
    def enqueue(self, index: int, sizes: list[int]) -> None:
        partition = self.partition(index)
        if partition.is_flowing:
            partition.in_flight.enqueue([a_batch(size) for size in sizes])

    @rule(index=indexes)
    def send(self, index: int) -> None:
        partition = self.partition(index)
        forward = partition.in_flight.send_next(self.now_ms)
        if forward is not None:
            self.sent.append((partition, partition.attempt, forward))

    @precondition(lambda self: self.sent)
    @rule(data=st.data())
    def answer(self, data: st.DataObject) -> None:
        """A batch of this attempt is acknowledged; one of an attempt before is only let go of."""
        at = data.draw(st.integers(0, len(self.sent) - 1))
        partition, attempt, forward = self.sent.pop(at)
        if attempt == partition.attempt:
            assert partition.acknowledge([forward], self.now_ms) == forward.size
        else:
            partition.in_flight.release(forward)

    @precondition(lambda self: self.sent)
    @rule()
    def refuse(self) -> None:
        partition, attempt, forward = self.sent.pop(0)
        partition.in_flight.release(forward)
        if attempt == partition.attempt:
            self.flow.interruptions.interrupt(partition, "refused", self.now_ms)

    @rule(index=indexes)
    def interrupt(self, index: int) -> None:
        self.flow.interruptions.interrupt(self.partition(index), "the network", self.now_ms)

    @rule(index=indexes)
    def pause(self, index: int) -> None:
        self.partition(index).pause("ordered", self.now_ms)

    @rule(index=indexes)
    def stop(self, index: int) -> None:
        partition = self.partition(index)
        if partition.state is not PartitionState.PAUSED:
            self.flow.interruptions.stop(
                partition, PartitionState.TARGET_REFUSED, "refused", self.now_ms
            )
            partition.retry("restarted", self.now_ms)

    @rule(index=indexes)
    def let_go(self, index: int) -> None:
        """Another worker is to have it; what is under way here is still answered."""
        self.partition(index).pause("another worker is to mirror it", self.now_ms)
        self.take(index)

    @rule(passed_ms=st.sampled_from([1, REMEMBERED_MS]))
    def let_time_pass(self, passed_ms: int) -> None:
        self.now_ms += passed_ms

    @invariant()
    def the_total_is_the_sum(self) -> None:
        assert self.flow.budget.total == sum(one.in_flight.bytes for one in self.all)
        assert all(one.in_flight.bytes >= 0 for one in self.all)
        assert all(one.in_flight.sent_count >= 0 for one in self.all)
        sent = [(one, forward) for one, _, forward in self.sent]
        for one in self.all:
            batches = [*one.in_flight.queue, *(forward for of, forward in sent if of is one)]
            assert one.in_flight.bytes == sum(forward.size for forward in batches)
            assert one.in_flight.is_settled == (not batches)

    def teardown(self) -> None:
        """At rest nothing is left of it."""
        for partition, _, forward in self.sent:
            partition.in_flight.release(forward)
        for partition in self.all:
            partition.pause("the flow is stopped", self.now_ms)
        assert self.flow.budget.total == 0
        assert all(one.in_flight.is_settled for one in self.all)


TestBytesUnderWay = BytesUnderWay.TestCase


def test_behind_a_first_batch_nothing_goes_before_the_target_has_taken_it() -> None:
    under_way = InFlight(InFlightBudget())
    batches = [a_batch(1, place) for place in range(3)]
    under_way.enqueue(batches)
    assert under_way.line_up(7)
    assert not under_way.line_up(7), "it is in that line"
    assert under_way.send_next(1) is batches[0]
    assert under_way.send_next(2) is None
    assert under_way.queued_at is None, "it left the line"
    under_way.acknowledge(batches[:1], 3)
    under_way.line_up(7)
    assert [under_way.send_next(4), under_way.send_next(4)] == batches[1:]
    assert under_way.queued_at is None, "nothing is left to send"


@given(limit=st.integers(1, 1 << 30), under_way=st.integers(0, 1 << 31))
def test_a_flow_fetches_on_once_half_of_what_may_be_under_way_is_free(
    limit: int, under_way: int
) -> None:
    budget = InFlightBudget(limit)
    InFlight(budget).enqueue([a_batch(under_way)])
    assert budget.has_room == (2 * under_way <= limit or under_way == 0)


@pytest.mark.parametrize(("is_far", "room"), [(False, NEAR), (True, FAR)])
def test_from_afar_more_is_under_way_unless_the_configuration_says(
    *, is_far: bool, room: Room
) -> None:
    said = replace(CONFIG, in_flight_bytes=None, partition_in_flight_bytes=5_000)
    flow = FlowState(config=said, measurements=FlowMeasurements(said.name))
    if is_far:
        flow.budget.make_room_for_distance()
    assert (flow.budget.most_bytes, flow.budget.most_bytes_each) == (room.in_flight_bytes, 5_000)
    flow.take_config(replace(CONFIG, in_flight_bytes=5_000, partition_in_flight_bytes=None))
    assert (flow.budget.most_bytes, flow.budget.most_bytes_each) == (
        5_000,
        room.partition_in_flight_bytes,
    )


def drain(budget: InFlightBudget, bytes_per_s: int, seconds: int, now_ms: int = 0) -> None:
    """Have the target take so much, batch by batch, while whatever is taken is fetched anew."""
    for step in range(seconds * 10):
        if budget.has_room:
            budget.total = budget.most_bytes
        budget.acknowledge(min(budget.total, bytes_per_s // 10), now_ms + 100 * step)


def test_no_more_is_under_way_than_a_slow_target_takes_in_seconds() -> None:
    """With 32 MiB on the way to a target that takes 0.5 MB/s each batch is a minute old there."""
    budget = InFlightBudget()
    budget.total = budget.most_bytes
    drain(budget, 500_000, 60)
    assert 3_500_000 <= budget.most_bytes <= 4_500_000
    assert budget.most_bytes_each <= budget.most_bytes
    drain(budget, 50_000_000, 10, 60_000)
    assert budget.most_bytes == NEAR.in_flight_bytes, "as soon as it is fast again"
    drain(budget, 1, 60, 70_000)
    assert budget.most_bytes == LEAST_ROOM_BYTES


@given(st.lists(st.tuples(st.integers(0, 1_000_000), st.integers(0, 3_000)), max_size=60))
def test_what_passes_now_and_then_limits_nothing(passed: list[tuple[int, int]]) -> None:
    """A source with little to mirror says nothing of how fast its target is."""
    budget, now_ms = InFlightBudget(), 0
    for size, pause_ms in passed:
        now_ms += pause_ms
        budget.total = size
        budget.acknowledge(size, now_ms)
    assert (budget.most_bytes, budget.most_bytes_each) == NEAR


@pytest.mark.parametrize("pause_ms", [10_000, -3_600_000])
def test_a_target_that_pauses_and_a_clock_that_jumps_make_no_slow_target(pause_ms: int) -> None:
    budget = InFlightBudget()
    budget.total = budget.most_bytes
    drain(budget, 50_000_000, 5)
    drain(budget, 50_000_000, 5, 5_000 + pause_ms)
    assert budget.most_bytes == NEAR.in_flight_bytes

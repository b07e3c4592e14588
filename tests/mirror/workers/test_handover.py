"""The two-phase hand-over as a state machine: never two writers of one partition."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from mirror.state.orders import How, Restart, Scope
from mirror.workers.assignment import Loads
from mirror.workers.handover import (
    Assignment,
    Leaving,
    WorkerNode,
    is_carried_out,
    next_assignment,
    to_fence,
    vouched,
)
from offset_translation.map_records import MirrorProducer
from runtime.coordination.witness import WitnessGarbled, WorkerInfo
from wire.topic_partition import TopicPartition

INFO = WorkerInfo(host="h", pid=1, metrics_url="http://h:1/metrics", started_ms=5)


class Handover(RuleBasedStateMachine):
    """Workers join, confirm late, die without a word; the leader moves on at any moment."""

    def __init__(self) -> None:
        super().__init__()
        self.now = Assignment()
        self.members: dict[str, WorkerNode] = {}
        self.places: set[TopicPartition] = {TopicPartition("t", 0), TopicPartition("t", 1)}
        self.rates: dict[TopicPartition, float] = {}
        self.writing: dict[str, frozenset[TopicPartition]] = {}
        """What each worker believes it may write: the dead too, until they are fenced."""
        self.fenced: set[str] = set()
        self.count = 0

    @rule()
    def join(self) -> None:
        self.count += 1
        name = f"w{self.count}"
        writer = MirrorProducer(producer_id=self.count, producer_epoch=0)
        self.members[name] = WorkerNode(info=INFO, writer=writer)
        self.writing[name] = frozenset()

    @precondition(lambda self: self.members)
    @rule(data=st.data())
    def die_or_sleep(self, data: st.DataObject) -> None:
        del self.members[data.draw(st.sampled_from(sorted(self.members)))]

    @precondition(lambda self: self.members)
    @rule(data=st.data())
    def see_and_confirm(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.members)))
        self.writing[name] = self.now.of(name)
        self.members[name] = WorkerNode(
            info=INFO, writer=self.members[name].writer, confirmed=self.now.version
        )

    @rule()
    def fence(self) -> None:
        for name, writer in to_fence(self.now, self.members).items():
            assert writer.producer_id == int(name[1:])
            self.fenced.add(name)
            self.writing[name] = frozenset()

    @rule(index=st.integers(0, 7), rate=st.floats(0, 1e7))
    def grow_or_change_rate(self, index: int, rate: float) -> None:
        self.places.add(TopicPartition("t", index))
        self.rates[TopicPartition("t", index)] = rate

    @rule()
    def lead(self) -> None:
        step = next_assignment(
            self.now,
            self.members,
            self.places,
            fenced=self.fenced,
            loads=Loads(bytes_per_s=self.rates),
        )
        if step is not None:
            assert step.version == self.now.version + 1
            assert Assignment.decode(step.encode()) == step
            self.now = step

    @invariant()
    def nobody_else_may_take_what_is_written(self) -> None:
        for name, written in self.writing.items():
            for place in written:
                rest = [other for other in self.writing if other != name]
                assert not any(place in self.writing[other] for other in rest)
                assert self.now.owners.get(place, name) == name

    @invariant()
    def a_partition_is_owned_or_leaving(self) -> None:
        assert not self.now.owners.keys() & self.now.leaving.keys()
        assert self.now.writers.keys() == self.now.holders

    def teardown(self) -> None:
        """In the end everything has a worker, if there is one."""
        for _ in range(60):
            self.fence()
            for name in self.members:
                self.writing[name] = self.now.of(name)
                self.members[name] = WorkerNode(
                    info=INFO, writer=self.members[name].writer, confirmed=self.now.version
                )
            self.lead()
            self.nobody_else_may_take_what_is_written()
        if self.members:
            assert self.now.owners.keys() == self.places
            assert set(self.now.owners.values()) <= self.members.keys()
            assert not self.now.leaving


TestHandover = Handover.TestCase


def test_a_worker_whose_share_stays_is_not_touched_by_anothers_death() -> None:
    def member(number: int, confirmed: int) -> WorkerNode:
        writer = MirrorProducer(producer_id=number, producer_epoch=0)
        return WorkerNode(info=INFO, writer=writer, confirmed=confirmed)

    places = {TopicPartition("t", index) for index in range(9)}
    members = {f"w{number}": member(number, 0) for number in range(3)}
    first = next_assignment(Assignment(), members, places, fenced=(), loads=Loads())
    assert first is not None
    left = {"w0": members["w0"], "w2": members["w2"]}
    assert to_fence(first, left) == {"w1": members["w1"].writer}
    assert next_assignment(first, left, places, fenced=(), loads=Loads()) is None
    second = next_assignment(first, left, places, fenced={"w1"}, loads=Loads())
    assert second is not None
    assert second.of("w0") > first.of("w0")
    assert second.of("w2") > first.of("w2")
    assert not second.leaving


def test_a_flow_without_partitions_has_a_version_to_confirm() -> None:
    members = {"a": WorkerNode(info=INFO, writer=MirrorProducer(producer_id=1, producer_epoch=0))}
    first = next_assignment(Assignment(), members, (), fenced=(), loads=Loads())
    assert first == Assignment(version=1)
    assert next_assignment(first, members, (), fenced=(), loads=Loads()) is None


def test_what_a_member_says_of_itself_survives_its_node() -> None:
    writer = MirrorProducer(producer_id=7, producer_epoch=1)
    said = WorkerNode(
        info=INFO,
        writer=writer,
        confirmed=3,
        bytes_per_s={TopicPartition("t", 2): 4096.0},
        gone={TopicPartition("g", 0): 3},
        restarted=frozenset({Restart(scope=Scope(topic="t"), how=How.SKIP, by="me@h", at_ms=7)}),
    )
    assert WorkerNode.decode(said.encode()) == said


@pytest.mark.parametrize("data", [b"", b"{}", b"x\x9c"])
def test_a_garbled_node_is_named(data: bytes) -> None:
    with pytest.raises(WitnessGarbled):
        Assignment.decode(data)
    with pytest.raises(WitnessGarbled):
        WorkerNode.decode(data)


def test_positions_wait_for_the_word_of_who_has_the_partition_now() -> None:
    writer = MirrorProducer(producer_id=1, producer_epoch=0)
    here, there = TopicPartition("t", 0), TopicPartition("t", 1)
    now = Assignment(version=3, owners={here: "a", there: "b"})
    a = WorkerNode(info=INFO, writer=writer, confirmed=3, doubted=frozenset({here}))
    late = WorkerNode(info=INFO, writer=writer, confirmed=2)
    assert vouched(frozenset(), now, {"a": a, "b": late}) == frozenset()
    assert vouched(frozenset({here, there}), now, {"a": a, "b": late}) == {there}
    assert vouched(frozenset({here, there}), now, {"a": a}) == {there}, "b is dead"
    b = WorkerNode(info=INFO, writer=writer, confirmed=3)
    assert vouched(frozenset(), now, {"a": a, "b": b}) == {there}
    assert WorkerNode.decode(a.encode()) == a


def test_a_restart_is_carried_out_when_all_who_have_something_now_have_said_so() -> None:
    writer = MirrorProducer(producer_id=1, producer_epoch=0)
    restart, other = (
        Restart(scope=Scope(topic="t"), how=How.SKIP, by="me@h", at_ms=at) for at in (7, 8)
    )
    now = Assignment(version=3, owners={TopicPartition("t", 0): "a", TopicPartition("t", 1): "b"})

    def member(confirmed: int, *restarted: Restart) -> WorkerNode:
        return WorkerNode(
            info=INFO, writer=writer, confirmed=confirmed, restarted=frozenset(restarted)
        )

    a = member(3, restart, other)
    assert is_carried_out(now, {"a": a, "b": member(3, restart)}, restart)
    assert not is_carried_out(now, {"a": a, "b": member(3, restart)}, other)
    assert not is_carried_out(now, {"a": a, "b": member(2, restart)}, restart), (
        "b may have got another"
    )
    moving = Assignment(version=3, leaving={TopicPartition("t", 1): Leaving("b", 3, "a")})
    assert not is_carried_out(moving, {"a": a, "b": member(3, restart)}, restart)

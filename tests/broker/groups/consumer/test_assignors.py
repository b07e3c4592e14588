"""Who gets which partition: everything is assigned, once, to who asked for it, and fairly."""

from uuid import UUID

import hypothesis.strategies as st
import pytest
from hypothesis import given

from broker.groups.consumer import assignors
from broker.groups.consumer.assignors import (
    Assign,
    Assignment,
    Counts,
    Subscriber,
    in_ranges,
    uniform,
)
from broker.groups.consumer.partitions import TopicIdPartition

A, B, C = (UUID(int=number) for number in (1, 2, 3))
counts_of_topics = st.fixed_dictionaries({}, optional=dict.fromkeys((A, B, C), st.integers(1, 7)))


@st.composite
def groups(draw: st.DrawFn) -> list[Subscriber]:
    """Members with any subscriptions, and targets as an assignor may have left them."""
    names = draw(st.lists(st.sampled_from("abcdef"), unique=True, min_size=1))
    partitions = st.builds(TopicIdPartition, st.sampled_from([A, B, C]), st.integers(0, 8))
    return [
        Subscriber(
            member_id=name,
            instance_id=draw(st.none() | st.just(f"static-{name}")),
            topics=draw(st.frozensets(st.sampled_from([A, B, C]))),
            target=draw(st.frozensets(partitions, max_size=4)),
        )
        for name in names
    ]


def all_of(*topics: UUID, counts: Counts) -> set[TopicIdPartition]:
    return {
        TopicIdPartition(topic_id, index)
        for topic_id in topics
        for index in range(counts.get(topic_id, 0))
    }


@pytest.mark.parametrize("assign", [uniform, in_ranges])
@given(members=groups(), counts=counts_of_topics)
def test_every_partition_goes_to_one_subscriber_of_its_topic(
    assign: Assign, members: list[Subscriber], counts: Counts
) -> None:
    assignment = assign(members, counts)

    assert assignment.keys() == {member.member_id for member in members}
    given_out = [partition for owned in assignment.values() for partition in owned]
    wanted = {topic for member in members for topic in member.topics}
    assert len(given_out) == len(set(given_out))
    assert set(given_out) == all_of(*wanted, counts=counts)
    for member in members:
        assert {topic for topic, _ in assignment[member.member_id]} <= member.topics


@given(members=groups(), counts=counts_of_topics)
def test_uniform_leaves_nobody_with_two_more_than_who_could_take_one(
    members: list[Subscriber], counts: Counts
) -> None:
    assignment = uniform(members, counts)

    for giver in members:
        for taker in members:
            could_take = any(topic in taker.topics for topic, _ in assignment[giver.member_id])
            if could_take:
                given_out = len(assignment[giver.member_id]), len(assignment[taker.member_id])
                assert given_out[0] <= given_out[1] + 1


@given(members=groups(), counts=counts_of_topics)
def test_uniform_moves_nothing_of_what_it_has_assigned(
    members: list[Subscriber], counts: Counts
) -> None:
    first = uniform(members, counts)
    again = [
        Subscriber(
            member_id=member.member_id,
            instance_id=member.instance_id,
            topics=member.topics,
            target=first[member.member_id],
        )
        for member in members
    ]
    assert uniform(again, counts) == first


def loads(assignment: Assignment) -> list[int]:
    return [len(assignment[name]) for name in sorted(assignment)]


def test_uniform_levels_a_long_row_of_members_over_several_assignments(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topics = [UUID(int=number) for number in range(1, 12)]
    counts = {topic: 4 * place for place, topic in enumerate(topics)}
    row: Assignment = {f"m{place:02}": frozenset() for place in range(10)}

    def assigned() -> Assignment:
        return uniform(
            [
                Subscriber(
                    member_id=name,
                    instance_id=None,
                    topics=frozenset(topics[place : place + 2]),
                    target=row[name],
                )
                for place, name in enumerate(row)
            ],
            counts,
        )

    level = loads(assigned())
    monkeypatch.setattr(assignors, "MOST_LOOKS", 0)
    row = assigned()
    assert sum(loads(row)) == sum(level)
    assert loads(row) != level, "one look at each partition is not enough"
    for _ in range(100):
        row = assigned()
    assert max(loads(row)) <= max(level)


def homogeneous(*names: str, target: Assignment | None = None) -> list[Subscriber]:
    return [
        Subscriber(
            member_id=name,
            instance_id=None,
            topics=frozenset({A, B}),
            target=(target or {}).get(name, frozenset()),
        )
        for name in names
    ]


def test_uniform_moves_as_little_as_a_newcomer_needs() -> None:
    counts = {A: 4, B: 2}
    before = uniform(homogeneous("a", "b"), counts)
    after = uniform(homogeneous("a", "b", "c", target=before), counts)

    assert {name: len(owned) for name, owned in after.items()} == {"a": 2, "b": 2, "c": 2}
    assert after["a"] < before["a"]
    assert after["b"] < before["b"]


def test_ranges_of_topics_lie_side_by_side() -> None:
    assignment = in_ranges(homogeneous("b", "a"), {A: 5, B: 5})

    def numbers(name: str, topic_id: UUID) -> list[int]:
        return sorted(index for topic, index in assignment[name] if topic == topic_id)

    assert numbers("a", A) == numbers("a", B) == [0, 1, 2]
    assert numbers("b", A) == numbers("b", B) == [3, 4]


def test_a_static_member_keeps_its_range_under_another_id() -> None:
    def members(name: str) -> list[Subscriber]:
        static = Subscriber(member_id=name, instance_id="one", topics=frozenset({A}))
        return [*homogeneous("m"), static]

    assert in_ranges(members("a"), {A: 4})["a"] == in_ranges(members("z"), {A: 4})["z"]

"""Replicas are spread as Kafka spreads them."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.controller.placement import RacksIncomplete, alternated, place


def test_the_example_of_kafkas_own_comment() -> None:
    """From `AdminUtils`: ten partitions, three replicas, five brokers, starting at broker 0."""
    placed = place(
        dict.fromkeys(range(5)), partitions=range(10), replication_factor=3, start=0, shift=0
    )
    assert placed == {
        0: (0, 1, 2),
        1: (1, 2, 3),
        2: (2, 3, 4),
        3: (3, 4, 0),
        4: (4, 0, 1),
        5: (0, 2, 3),
        6: (1, 3, 4),
        7: (2, 4, 0),
        8: (3, 0, 1),
        9: (4, 1, 2),
    }


@given(
    brokers=st.sets(st.integers(0, 50), min_size=1, max_size=8),
    partitions=st.integers(1, 40),
    data=st.data(),
)
def test_leaders_are_even_and_replicas_distinct(
    brokers: set[int], partitions: int, data: st.DataObject
) -> None:
    factor = data.draw(st.integers(1, len(brokers)))
    start = data.draw(st.integers(0, len(brokers) - 1))
    shift = data.draw(st.integers(0, len(brokers) - 1))
    placed = place(
        dict.fromkeys(brokers),
        partitions=range(partitions),
        replication_factor=factor,
        start=start,
        shift=shift,
    )
    assert list(placed) == list(range(partitions))
    for replicas in placed.values():
        assert len(set(replicas)) == factor
        assert set(replicas) <= brokers
    leaders = Counter(replicas[0] for replicas in placed.values())
    counts = [leaders[broker] for broker in brokers]
    assert max(counts) - min(counts) <= 1


RACKS = {0: "rack1", 1: "rack3", 2: "rack3", 3: "rack2", 4: "rack2", 5: "rack1"}


def test_the_example_of_kafkas_comment_on_racks() -> None:
    """From `AdminUtils`, too: six brokers in three racks."""
    assert alternated(RACKS) == [0, 3, 1, 5, 4, 2]
    without_5 = {broker: rack for broker, rack in RACKS.items() if broker != 5}
    assert alternated(without_5) == [0, 3, 1, 4, 2]
    placed = place(RACKS, partitions=range(7), replication_factor=3, start=0, shift=0)
    assert placed == {
        0: (0, 3, 1),
        1: (3, 1, 5),
        2: (1, 5, 4),
        3: (5, 4, 2),
        4: (4, 2, 0),
        5: (2, 0, 3),
        6: (0, 4, 2),
    }


def test_racks_that_only_some_brokers_name_are_refused() -> None:
    with pytest.raises(RacksIncomplete, match=r"missing on \[1\]"):
        place({0: "a", 1: None}, partitions=range(1), replication_factor=1, start=0, shift=0)


@given(
    racks=st.dictionaries(st.integers(0, 20), st.sampled_from("abc"), min_size=1, max_size=9),
    partitions=st.integers(1, 30),
    data=st.data(),
)
def test_replicas_are_in_as_many_racks_as_can_be(
    racks: dict[int, str], partitions: int, data: st.DataObject
) -> None:
    factor = data.draw(st.integers(1, len(racks)))
    placed = place(
        racks,
        partitions=range(partitions),
        replication_factor=factor,
        start=data.draw(st.integers(0, len(racks) - 1)),
        shift=data.draw(st.integers(0, len(racks) - 1)),
    )
    for replicas in placed.values():
        assert len(set(replicas)) == factor
        used = {racks[broker] for broker in replicas}
        assert len(used) == min(factor, len(set(racks.values())))

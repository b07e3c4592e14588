"""Replicas are spread as Kafka spreads them."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from broker.controller.placement import place


def test_the_example_of_kafkas_own_comment() -> None:
    """From `AdminUtils`: ten partitions, three replicas, five brokers, starting at broker 0."""
    placed = place(range(5), partitions=range(10), replication_factor=3, start=0, shift=0)
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
        sorted(brokers),
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

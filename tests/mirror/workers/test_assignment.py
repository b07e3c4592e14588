"""Properties of the assignment: complete, balanced within its bound, and sticky."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from mirror.workers.assignment import FLOOR_BYTES_PER_S, SETTLED, TRIGGER, WORTH_IT, assign
from wire.topic_partition import TopicPartition

PLACES = st.sets(st.tuples(st.sampled_from("abc"), st.integers(0, 15)), max_size=40)
MEMBERS = st.sets(st.sampled_from("uvwxyz"), min_size=1)
RATES = st.dictionaries(
    st.tuples(st.sampled_from("abc"), st.integers(0, 15)), st.floats(0, 1e7), max_size=40
)


def loads_of(
    owners: dict[TopicPartition, str], members: set[str], rates: dict[TopicPartition, float]
) -> dict[str, float]:
    return {
        member: sum(
            FLOOR_BYTES_PER_S + rates.get(place, 0.0)
            for place, owner in owners.items()
            if owner == member
        )
        for member in members
    }


def spread(loads: dict[str, float]) -> float:
    return max(loads.values()) - min(loads.values())


def mean(loads: dict[str, float]) -> float:
    return sum(loads.values()) / len(loads)


def moved(before: dict[TopicPartition, str], after: dict[TopicPartition, str]) -> set[object]:
    return {place for place in before if after.get(place) != before[place]}


@given(PLACES, MEMBERS, RATES, st.randoms())
def test_every_partition_has_one_worker_whatever_the_order(
    places: set[TopicPartition],
    members: set[str],
    rates: dict[TopicPartition, float],
    random: Random,
) -> None:
    owners = assign(places, members, before={}, bytes_per_s=rates)
    assert owners.keys() == places
    assert set(owners.values()) <= members
    shuffled_places, shuffled_members = list(places), list(members)
    random.shuffle(shuffled_places)
    random.shuffle(shuffled_members)
    assert assign(shuffled_places, shuffled_members, before={}, bytes_per_s=rates) == owners


@given(PLACES, MEMBERS, MEMBERS, RATES, RATES)
def test_the_loads_differ_by_no_more_than_the_bound(
    places: set[TopicPartition],
    members: set[str],
    others: set[str],
    rates: dict[TopicPartition, float],
    later: dict[TopicPartition, float],
) -> None:
    before = assign(places, members, before={}, bytes_per_s=rates)
    owners = assign(places, others, before=before, bytes_per_s=later)
    loads = loads_of(owners, others, later)
    heaviest = max(loads, key=lambda member: (loads[member], member))
    lightest_there = min(
        (
            FLOOR_BYTES_PER_S + later.get(place, 0.0)
            for place in owners
            if owners[place] == heaviest
        ),
        default=0.0,
    )
    allowed = max(TRIGGER * mean(loads), lightest_there / WORTH_IT)
    assert spread(loads) <= allowed * (1 + 1e-9)


@given(PLACES, MEMBERS, RATES)
def test_nothing_moves_while_nothing_changes(
    places: set[TopicPartition], members: set[str], rates: dict[TopicPartition, float]
) -> None:
    owners = assign(places, members, before={}, bytes_per_s=rates)
    assert assign(places, members, before=owners, bytes_per_s=rates) == owners


@given(PLACES, MEMBERS, RATES, st.data())
def test_a_small_change_of_rates_moves_nothing(
    places: set[TopicPartition],
    members: set[str],
    rates: dict[TopicPartition, float],
    data: st.DataObject,
) -> None:
    owners = assign(places, members, before={}, bytes_per_s=rates)
    loads = loads_of(owners, members, rates)
    if spread(loads) > SETTLED * mean(loads):
        return  # too few partitions to be balanced by moves of whole ones
    changed = {
        place: rate * data.draw(st.floats(0.95, 1.05)) for place, rate in sorted(rates.items())
    }
    assert assign(places, members, before=owners, bytes_per_s=changed) == owners


@given(st.integers(1, 60), st.integers(1, 5))
def test_of_equal_partitions_a_newcomer_gets_its_share_and_nothing_else_moves(
    count: int, workers: int
) -> None:
    places = {TopicPartition("t", index) for index in range(count)}
    members = {f"w{number}" for number in range(workers)}
    before = assign(places, members, before={}, bytes_per_s={})
    after = assign(places, {*members, "new"}, before=before, bytes_per_s={})
    gone = moved(before, after)
    assert all(after[place] == "new" for place in gone)  # type: ignore[index]
    assert len(gone) <= count // (workers + 1)
    if count >= 8 * (workers + 1):
        assert gone


@given(st.integers(1, 60), st.integers(2, 6), st.data())
def test_of_equal_partitions_only_those_of_a_leaver_move(
    count: int, workers: int, data: st.DataObject
) -> None:
    places = {TopicPartition("t", index) for index in range(count)}
    members = [f"w{number}" for number in range(workers)]
    before = assign(places, members, before={}, bytes_per_s={})
    leaver = data.draw(st.sampled_from(members))
    left = [member for member in members if member != leaver]
    after = assign(places, left, before=before, bytes_per_s={})
    assert moved(before, after) == {place for place in places if before[place] == leaver}


def test_one_heavy_partition_has_a_worker_for_itself() -> None:
    places = {TopicPartition("t", index) for index in range(9)}
    owners = assign(places, {"a", "b"}, before={}, bytes_per_s={TopicPartition("t", 4): 1e6})
    alone = owners[TopicPartition("t", 4)]
    assert [place for place in places if owners[place] == alone] == [("t", 4)]


def test_without_workers_nothing_is_assigned() -> None:
    assert (
        assign(
            {TopicPartition("t", 0)}, (), before={TopicPartition("t", 0): "gone"}, bytes_per_s={}
        )
        == {}
    )

"""Moves by load in virtual time: what lasts is evened out, what passes moves nothing."""

from hypothesis import given
from hypothesis import strategies as st

from mirror.workers.assignment import assign, is_uneven
from mirror.workers.balance import PATIENCE, REST, Balance
from wire.topic_partition import TopicPartition

PLACES = [TopicPartition("t", index) for index in range(8)]
Rates = dict[TopicPartition, float]
Owners = dict[TopicPartition, str]


class Leader:
    """Looks at the rates of one flow again and again, as the worker that leads does."""

    def __init__(self, members: set[str]) -> None:
        self.members = members
        self.balance = Balance()
        self.owners: Owners = {}
        self.look({})

    def look(self, rates: Rates) -> set[TopicPartition]:
        """Return what is moved from a worker to another."""
        self.balance.take_rates(rates, self.owners, self.members)
        before = self.owners
        self.owners = assign(
            PLACES,
            self.members,
            before=before,
            bytes_per_s=self.balance.bytes_per_s,
            at_rest=self.balance.at_rest(PLACES, self.members),
        )
        moved = {place for place, owner in before.items() if self.owners[place] != owner}
        self.balance.decided(self.members, moved)
        return moved


RATES = st.fixed_dictionaries({place: st.floats(0, 1e7) for place in PLACES})


@given(RATES)
def test_an_imbalance_that_lasts_is_evened_out_and_then_nothing_moves(rates: Rates) -> None:
    leader = Leader({"a", "b", "c"})
    for _ in range(3 * REST):
        leader.look(rates)
    owners = leader.owners
    for _ in range(2 * REST):
        assert not leader.look(rates)
    assert assign(PLACES, leader.members, before=owners, bytes_per_s=rates) == owners


def test_a_heavy_partition_gets_company_taken_from_it_after_a_few_looks() -> None:
    leader = Leader({"a", "b"})
    rates: Rates = {TopicPartition("t", 0): 5e6, TopicPartition("t", 2): 5e6}
    assert leader.owners[TopicPartition("t", 0)] == leader.owners[TopicPartition("t", 2)]
    looks = 1
    while not (moved := leader.look(rates)):
        looks += 1
        assert looks <= PATIENCE
    assert len(moved & rates.keys()) == 1
    assert leader.owners[TopicPartition("t", 0)] != leader.owners[TopicPartition("t", 2)]
    assert not is_uneven(leader.owners, leader.members, rates)


def test_a_burst_of_one_look_moves_nothing() -> None:
    leader = Leader({"a", "b"})
    steady: Rates = dict.fromkeys(PLACES, 1e5)
    for _ in range(3):
        leader.look(steady)
    assert not leader.look({**steady, TopicPartition("t", 0): 4e5})
    for _ in range(REST):
        assert not leader.look(steady)


@given(st.lists(RATES, min_size=1, max_size=40))
def test_whatever_the_rates_do_nobody_is_moved_again_before_it_has_rested(
    history: list[Rates],
) -> None:
    leader = Leader({"a", "b", "c"})
    moved_at: dict[TopicPartition, int] = {}
    for number, rates in enumerate(history):
        for place in leader.look(rates):
            assert number - moved_at.get(place, -REST) >= REST
            moved_at[place] = number


@given(RATES)
def test_a_newcomer_is_given_its_share_at_once(rates: Rates) -> None:
    leader = Leader({"a", "b"})
    leader.look(rates)
    leader.members = {"a", "b", "new"}
    known = leader.balance.bytes_per_s
    expected = assign(PLACES, leader.members, before=leader.owners, bytes_per_s=known)
    leader.look(dict(known))
    assert leader.owners == expected


def test_of_a_dead_workers_partitions_those_at_rest_go_on_elsewhere_too() -> None:
    leader = Leader({"a", "b"})
    leader.members = {"a"}
    leader.look({})
    assert set(leader.owners.values()) == {"a"}


def test_a_topic_that_was_pinned_is_shared_again_at_once_and_the_others_stay() -> None:
    leader = Leader({"a", "b"})
    other = TopicPartition("u", 0)
    everything = [*PLACES, other]
    leader.balance.decided(leader.members, PLACES, {"t"})
    pinned_to_a = {**dict.fromkeys(PLACES, "a"), other: "a"}
    resting = leader.balance.at_rest(everything, leader.members, {"t"})
    assert set(resting) == set(everything)
    after = assign(
        everything,
        leader.members,
        before=pinned_to_a,
        bytes_per_s={},
        at_rest=leader.balance.at_rest(everything, leader.members),
    )
    assert after[other] == "a"
    assert not is_uneven(after, leader.members, {})
    leader.balance.decided(leader.members, ())
    assert set(leader.balance.at_rest(everything, leader.members)) == set(everything)

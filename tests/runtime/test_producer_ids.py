"""Mirrors write under ids that no broker gives out, and no client of an endpoint has."""

from hypothesis import given
from hypothesis import strategies as st

from failover.bootstrap.owned_ids import MOST_EPOCH, owned
from failover.bootstrap.owned_ids import given as given_id
from runtime.producer_ids import MOST_GIVEN, MOST_OWNER, mirror_id

ids = st.integers(0, MOST_GIVEN)
luck = st.integers(1, MOST_OWNER)
epochs = st.integers(0, MOST_EPOCH)


@given(ids, luck)
def test_a_mirrors_id_is_none_that_a_broker_gives_out(broker_id: int, drawn: int) -> None:
    assert MOST_GIVEN < mirror_id(broker_id, drawn) < 2**63


@given(ids, luck, ids, epochs, epochs)
def test_a_mirrors_id_is_no_clients_of_an_endpoint(
    broker_id: int, drawn: int, theirs: int, first: int, now: int
) -> None:
    assert mirror_id(broker_id, drawn) != owned(given_id(theirs, first), now)


@given(ids, luck, ids, luck)
def test_two_mirrors_have_two_ids(a: int, luck_a: int, b: int, luck_b: int) -> None:
    is_same = (a, luck_a) == (b, luck_b)
    assert (mirror_id(a, luck_a) == mirror_id(b, luck_b)) is is_same


def test_an_id_that_is_too_large_to_be_marked_stays() -> None:
    assert mirror_id(MOST_GIVEN + 1, 1) == MOST_GIVEN + 1

"""Producer ids of two sites never meet, however often a producer lives through a switch."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failover.bootstrap.owned_ids import MOST_EPOCH, IdNotKnown, owned
from failover.bootstrap.owned_ids import given as given_id
from runtime.producer_ids import MOST_GIVEN, MOST_OWNER, mirror_id

ids = st.integers(0, MOST_GIVEN)
epochs = st.integers(0, MOST_EPOCH)


@given(ids, epochs, ids, epochs, epochs)
def test_two_producers_are_never_the_same_to_a_broker(
    a: int, given_a: int, b: int, given_b: int, now: int
) -> None:
    is_same = (a, given_a) == (b, given_b)
    assert (owned(given_id(a, given_a), now) == owned(given_id(b, given_b), now)) is is_same


@given(ids, epochs, epochs, epochs)
def test_brokers_of_two_epochs_never_know_a_producer_by_the_same_id(
    broker_id: int, first: int, second: int, third: int
) -> None:
    shown = given_id(broker_id, first)
    assert (owned(shown, second) == owned(shown, third)) is (second == third)


@given(ids, epochs)
def test_a_producer_of_this_epoch_keeps_its_id(broker_id: int, epoch: int) -> None:
    shown = given_id(broker_id, epoch)
    assert owned(shown, epoch) == shown
    assert 2**47 <= shown < 2**63


@given(ids, epochs, epochs)
def test_owning_an_id_twice_is_owning_it_once(broker_id: int, first: int, second: int) -> None:
    once = owned(given_id(broker_id, first), second)
    assert owned(once, second) == once


@given(ids)
def test_an_id_that_a_broker_gave_out_itself_is_refused(broker_id: int) -> None:
    with pytest.raises(IdNotKnown, match="restart the producer"):
        owned(broker_id, 1)


@given(ids, st.integers(1, MOST_OWNER))
def test_an_id_by_which_a_mirror_writes_is_refused(broker_id: int, luck: int) -> None:
    with pytest.raises(IdNotKnown, match="restart the producer"):
        owned(mirror_id(broker_id, luck), 1)


@pytest.mark.parametrize(
    ("broker_id", "epoch"), [(-1, 1), (MOST_GIVEN + 1, 1), (1, MOST_EPOCH + 1)]
)
def test_ids_and_epochs_that_cannot_be_told_apart_are_refused(broker_id: int, epoch: int) -> None:
    with pytest.raises(IdNotKnown, match="can be told apart"):
        given_id(broker_id, epoch)

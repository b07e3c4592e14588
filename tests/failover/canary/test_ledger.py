"""What is counted of a canary's records, whatever comes when."""

from hypothesis import given
from hypothesis import strategies as st

from failover.canary.ledger import CanaryLedger


def sent(ledger: CanaryLedger, count: int) -> None:
    for at in range(count):
        ledger.acknowledge(ledger.send(at))


def test_an_arrival_tells_how_long_it_took() -> None:
    ledger = CanaryLedger()
    ledger.acknowledge(ledger.send(100))
    assert ledger.oldest_ms(150) == 50
    assert ledger.arrive(0, 175) == 75
    assert (ledger.arrived, ledger.is_waiting, ledger.oldest_ms(500)) == (1, False, 0)


def test_a_record_that_a_later_one_overtook_is_lost() -> None:
    ledger = CanaryLedger()
    sent(ledger, 3)
    ledger.arrive(2, 9)
    assert (ledger.arrived, ledger.lost) == (1, 2)


def test_what_was_not_acknowledged_is_neither_lost_nor_out_of_order() -> None:
    ledger = CanaryLedger()
    refused = ledger.send(0)
    ledger.refuse(refused)
    late = ledger.send(0)
    ledger.refuse(late)
    ledger.acknowledge(ledger.send(1))
    assert ledger.arrive(refused, 2) is None, "it was appended all the same"
    assert ledger.arrive(2, 2) == 1
    assert (ledger.refused, ledger.lost, ledger.out_of_order) == (2, 0, 0)


def test_an_arrival_before_its_acknowledgement_is_one() -> None:
    ledger = CanaryLedger()
    number = ledger.send(0)
    assert ledger.arrive(number, 1) == 1
    ledger.acknowledge(number)
    assert not ledger.is_waiting


def test_a_second_arrival_is_out_of_order() -> None:
    ledger = CanaryLedger()
    sent(ledger, 1)
    ledger.arrive(0, 1)
    assert ledger.arrive(0, 2) is None
    assert ledger.out_of_order == 1


def test_behind_a_gap_of_the_reader_nothing_is_called_lost_or_arrived() -> None:
    ledger = CanaryLedger()
    sent(ledger, 2)
    ledger.forget()
    assert (ledger.unknown, ledger.lost, ledger.arrived) == (2, 0, 0)


def test_what_a_switch_left_behind_is_lost() -> None:
    ledger = CanaryLedger()
    sent(ledger, 2)
    ledger.arrive(0, 1)
    ledger.give_up()
    assert (ledger.lost, ledger.is_waiting) == (1, False)


FATES = ("arrives", "never", "refused", "refused and arrives")
fates = st.lists(st.sampled_from(FATES), max_size=30)


@given(fates, st.booleans())
def test_every_record_is_counted_once(fates: list[str], is_given_up: bool) -> None:
    """One partition keeps the order, and the source answers one after the other."""
    ledger = CanaryLedger()
    for at, fate in enumerate(fates):
        number = ledger.send(at)
        if fate.startswith("refused"):
            ledger.refuse(number)
        else:
            ledger.acknowledge(number)
        if fate.endswith("arrives"):
            ledger.arrive(number, at)
    if is_given_up:
        ledger.give_up()
    acknowledged = sum(fate in {"arrives", "never"} for fate in fates)
    assert ledger.sent == len(fates)
    assert ledger.refused == len(fates) - acknowledged
    assert ledger.arrived == fates.count("arrives")
    assert ledger.out_of_order == 0
    overtaken = acknowledged - ledger.arrived
    assert ledger.lost <= overtaken
    if is_given_up:
        assert ledger.lost == overtaken
    else:
        assert ledger.is_waiting == (ledger.lost < overtaken)

"""The demo's verdict finds each kind of fault that is planted in its evidence."""

import json
from dataclasses import replace
from itertools import islice

import pytest

from demo.data_set import RecordAltered, _lines, departures, number_of, require_intact
from demo.ledger import UNTOLD, Delivery
from demo.verdict import (
    DemoEvidence,
    DemoVerdict,
    broken_promises,
    consumed,
    duplicated,
    lost,
    misnamed,
    reordered,
    reread,
    skipped,
    uncommitted,
)


def delivery(number: int, key: str = "N1", *, site: str = "dc1", offset: int = 0) -> Delivery:
    return Delivery(at_ns=number, site=site, partition=0, offset=offset, key=key, number=number)


def evidence(numbers: list[int], survivors: tuple[int, ...]) -> DemoEvidence:
    return DemoEvidence(
        acknowledged={number: (0, number) for number in range(4)},
        deliveries=tuple(delivery(number, offset=number) for number in numbers),
        survivors={0: survivors},
        committed={0: 4},
        listed=frozenset(),
        left_site="dc1",
    )


GOOD = DemoVerdict(
    records=4,
    consumed=4,
    lost=0,
    listed_lost=0,
    duplicated=0,
    reordered=0,
    reread=0,
    uncommitted=0,
    rto_s=1.0,
    mirror_cpu_s_per_gib=1.0,
    audit="clean",
)


def test_a_perfect_run_breaks_no_promise() -> None:
    clean = evidence([0, 1, 2, 3], (0, 1, 2, 3))
    counts = (lost, duplicated, reordered, reread, uncommitted)
    assert [count(clean) for count in counts] == [0, 0, 0, 0, 0]
    assert consumed(clean) == 4
    assert broken_promises(GOOD, disaster=False) == []


def test_a_record_missing_from_the_surviving_log_is_lost() -> None:
    assert lost(evidence([0, 1, 2, 3], (0, 1, 3))) == 1


def test_a_place_that_is_lost_and_not_listed_or_the_other_way_round_is_misnamed() -> None:
    missing = evidence([0, 1, 2, 3], (0, 1, 3))
    assert misnamed(missing) == 1
    assert misnamed(replace(missing, listed=frozenset({(0, 2)}))) == 0
    assert misnamed(replace(missing, listed=frozenset({(0, 3)}))) == 2
    assert broken_promises(GOOD, disaster=True, misnamed=1)


def test_a_lost_record_whose_place_was_not_told_may_be_any_listed_one_of_its_partition() -> None:
    missing = evidence([0, 1, 2, 3], (0, 1, 3))
    untold = replace(missing, acknowledged={**missing.acknowledged, 2: (0, UNTOLD)})
    assert lost(untold) == 1
    assert misnamed(untold) == 1
    assert misnamed(replace(untold, listed=frozenset({(0, 2)}))) == 0
    assert misnamed(replace(untold, listed=frozenset({(0, 2), (0, 3)}))) == 1
    assert misnamed(replace(untold, listed=frozenset({(1, 2)}))) == 2


def test_a_surviving_record_that_the_group_was_never_given_is_skipped() -> None:
    """As many were lost after they had been read: the numbers alone do not show it."""
    read_two_that_are_lost = evidence([0, 1], (2, 3))
    assert (lost(read_two_that_are_lost), consumed(read_two_that_are_lost)) == (2, 2)
    assert skipped(read_two_that_are_lost) == 2
    assert skipped(evidence([0, 1, 2, 3], (2, 3))) == 0
    judged = replace(GOOD, consumed=2, lost=2, listed_lost=2, audit="findings")
    assert broken_promises(judged, disaster=True) == []
    assert broken_promises(judged, disaster=True, skipped=2)


def test_a_record_twice_in_the_surviving_log_is_duplicated() -> None:
    assert duplicated(evidence([0, 1, 2, 3], (0, 1, 2, 3, 2, 2))) == 2


def test_a_second_delivery_is_a_reread_and_not_a_reordering() -> None:
    again = evidence([0, 1, 0, 1, 2], (0, 1, 2, 3))
    assert (reread(again), reordered(again), consumed(again)) == (2, 0, 3)


def test_a_late_first_delivery_of_a_key_is_reordered() -> None:
    assert reordered(evidence([1, 0, 2], (0, 1, 2, 3))) == 1
    other_key = replace(
        evidence([], (0,)), deliveries=(delivery(1, "N1"), delivery(0, "N2"), delivery(2, "N1"))
    )
    assert reordered(other_key) == 0


def test_deliveries_behind_the_last_commit_are_uncommitted() -> None:
    late = replace(evidence([0, 1, 2, 3], (0, 1, 2, 3)), committed={0: 3})
    assert uncommitted(late) == 1
    assert uncommitted(replace(late, left_site="dc2")) == 0


@pytest.mark.parametrize(
    "change",
    [
        {"duplicated": 1},
        {"reordered": 1},
        {"lost": 1, "listed_lost": 1, "audit": "findings"},
        {"listed_lost": 1},
        {"reread": 1, "uncommitted": 1},
        {"consumed": 3},
        {"audit": "findings"},
        {"audit": "unknown"},
    ],
)
def test_each_fault_breaks_a_promise_of_the_planned_switch_over(
    change: dict[str, int | str],
) -> None:
    assert broken_promises(replace(GOOD, **change), disaster=False)  # type: ignore[arg-type]


def test_a_disaster_may_lose_what_is_listed_and_reread_what_was_not_committed() -> None:
    listed = replace(GOOD, lost=2, listed_lost=2, reread=3, uncommitted=3, audit="findings")
    assert broken_promises(listed, disaster=True) == []
    assert broken_promises(replace(listed, listed_lost=1), disaster=True)
    assert broken_promises(replace(listed, reread=4), disaster=True)
    assert broken_promises(replace(listed, audit="clean"), disaster=True)


def test_the_data_set_is_whole() -> None:
    header, *lines = _lines()
    columns = header.split(",")
    tail_number = columns.index("tailnum")
    assert len(lines) == 336_776
    assert {line.count(",") for line in lines} == {len(columns) - 1}
    assert len({line.split(",", tail_number + 1)[tail_number] for line in lines}) == 4_044


def test_departures_are_numbered_in_order_keyed_by_aircraft_and_checked() -> None:
    """`make demo` sends and reads all of them."""
    events = list(islice(departures(), 2_000))
    assert [number_of(event.value) for event in events] == list(range(2_000))
    assert [require_intact(event.key, event.value) for event in events] == list(range(2_000))
    times = [json.loads(event.value)["time"] for event in events]
    assert times == sorted(times)
    assert {b"N14228", b"N24211"} < {event.key for event in events}


def test_an_altered_record_is_noticed() -> None:
    first = next(departures())
    for key, value in (
        (b"other", first.value),
        (first.key, first.value.replace(b'"id":0', b'"id":1')),
        (first.key, first.value[:-1]),
        (first.key, None),
    ):
        with pytest.raises(RecordAltered, match="not as it was sent"):
            require_intact(key, value)

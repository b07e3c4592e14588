"""Records of open fate: none is lost, none is doubled, whatever the old site had taken."""

import random

from hypothesis import given
from hypothesis import strategies as st

from failover.client.ledger import Content, Ledger, Pending, find_in_order, size_of


def content(number: int) -> Content:
    """A record of ours; equal numbers give equal records."""
    return Content(key=b"k", value=b"%d" % number, timestamp_ms=number, headers=())


OTHERS = Content(key=b"k", value=b"another producer's", timestamp_ms=0, headers=())

sent_lists = st.lists(st.integers(0, 3), max_size=12).map(
    lambda numbers: [content(number) for number in numbers]
)


@given(sent_lists, st.integers(0, 12), st.randoms(use_true_random=False))
def test_what_the_old_site_took_is_found_and_the_rest_is_not(
    sent: list[Content], taken: int, chance: random.Random
) -> None:
    tail = list(sent[:taken])
    for _ in range(chance.randrange(5)):
        tail.insert(chance.randrange(len(tail) + 1), OTHERS)
    found = find_in_order(sent, list(enumerate(tail)))
    assert [tail[where] for where in found] == sent[:taken]
    assert found == sorted(set(found))


@given(sent_lists, sent_lists)
def test_only_a_leading_run_of_the_sent_records_is_ever_found(
    sent: list[Content], tail: list[Content]
) -> None:
    found = find_in_order(sent, list(enumerate(tail)))
    assert [tail[where] for where in found] == sent[: len(found)]


def test_a_record_that_differs_in_any_part_is_another_record() -> None:
    ours = Content(key=b"k", value=b"v", timestamp_ms=1, headers=(("h", b"1"),))
    others = [
        Content(key=None, value=b"v", timestamp_ms=1, headers=(("h", b"1"),)),
        Content(key=b"k", value=None, timestamp_ms=1, headers=(("h", b"1"),)),
        Content(key=b"k", value=b"v", timestamp_ms=2, headers=(("h", b"1"),)),
        Content(key=b"k", value=b"v", timestamp_ms=1, headers=()),
        Content(key=b"k", value=b"v", timestamp_ms=1, headers=(("h", None),)),
    ]
    assert find_in_order([ours], list(enumerate(others))) == []
    assert find_in_order([ours], list(enumerate([*others, ours]))) == [5]


def pending(partition: int, number: int) -> Pending:
    """A record on its way."""
    what = content(number)
    return Pending(
        topic="t", partition=partition, content=what, size=size_of(what), on_delivery=None
    )


def send_all(ledger: Ledger, most: int = 100) -> list[Pending]:
    """Send what waits, and return it."""
    found: list[Pending] = []
    while len(found) < most and (waiting := ledger.first_unsent()) is not None:
        found.append(waiting)
        ledger.note_sent()
    return found


def test_the_ledger_keeps_order_by_partition_and_counts_bytes() -> None:
    ledger = Ledger()
    records = [pending(number % 2, number) for number in range(6)]
    for record in records:
        ledger.add(record)
    assert (len(ledger), ledger.total_bytes) == (6, sum(record.size for record in records))
    assert send_all(ledger, 4) == records[:4]
    ledger.remove(records[2])  # refused alone, from the middle
    assert ledger.sent() == {("t", 0): [records[0]], ("t", 1): [records[1], records[3]]}
    assert ledger.first_unsent() is records[4]
    ledger.forget_sending()
    assert ledger.sent() == {}
    again = send_all(ledger)
    assert again == [records[0], records[4], records[1], records[3], records[5]]
    for record in again:
        ledger.remove(record)
    assert (len(ledger), ledger.total_bytes, ledger.sent()) == (0, 0, {})

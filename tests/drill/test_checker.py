"""Each fault that is planted in a good history is found and named, and nothing else is."""

from dataclasses import replace
from pathlib import Path
from typing import TypeGuard

import pytest

from tests.drill.checker import Kind, Offence, Promises, check, story_of
from tests.drill.history import (
    UNTOLD,
    Aborted,
    Acked,
    Event,
    Fault,
    Read,
    content_of,
    line_of,
    read_events,
    value_of,
)

PROMISES = Promises(logs=frozenset({"t-0", "t-1"}))
COUNT = 20


def content(number: int) -> str:
    return content_of(value_of("p", number, 40))


def good() -> list[Event]:
    """Return a history of two logs, of which a consumer has seen a part; a fault ended at 10 s."""
    acks = [
        Acked(
            at_s=float(number),
            who="p",
            log=f"t-{number % 2}",
            offset=number // 2,
            content=content(number),
            number=number,
        )
        for number in range(COUNT)
    ]
    reads = [
        Read(at_s=ack.at_s + 1, who="c", log=ack.log, offset=ack.offset, content=ack.content)
        for ack in acks
    ]
    final = [replace(read, at_s=50.0, who="final", is_final=True) for read in reads]
    fault = Fault(at_s=5.0, ended_s=10.0, what="kill broker-1")
    return [*acks, *reads, *final, fault]


def found(events: list[Event]) -> list[Offence]:
    return check(story_of(events), PROMISES)


def kinds(events: list[Event]) -> set[str]:
    return {offence.kind for offence in found(events)}


def is_final_of(event: Event, offset: int) -> TypeGuard[Read]:
    return (
        isinstance(event, Read) and event.is_final and (event.log, event.offset) == ("t-0", offset)
    )


def test_a_good_history_has_no_offence() -> None:
    assert found(good()) == []


def test_a_lost_record_is_found() -> None:
    events = [event for event in good() if isinstance(event, Acked) or not is_final_of(event, 9)]
    without_reader = [
        event for event in events if not (isinstance(event, Read) and event.offset == 9)
    ]
    assert found([*without_reader, *_reads_after()]) == [
        Offence("LOST", "t-0", 9, f"p 18 ({content(18)}) was acknowledged; nothing is there"),
        Offence("LOST", "t-1", 9, f"p 19 ({content(19)}) was acknowledged; nothing is there"),
    ]


def untold(events: list[Event], number: int) -> list[Event]:
    """Let one acknowledgement come without an offset."""
    return [
        replace(event, offset=UNTOLD)
        if isinstance(event, Acked) and event.number == number
        else event
        for event in events
    ]


def test_an_acknowledgement_without_an_offset_is_kept_by_a_record_anywhere_in_its_log() -> None:
    assert found(untold(good(), 8)) == []


def test_a_lost_record_whose_acknowledgement_told_no_offset_is_found() -> None:
    events = [
        event
        for event in untold(good(), 6)
        if not (isinstance(event, Read) and (event.log, event.offset) == ("t-0", 3))
    ]
    assert found(events) == [
        Offence("LOST", "t-0", UNTOLD, f"p 6 ({content(6)}) was acknowledged; nothing is there")
    ]


def test_a_record_out_of_order_whose_acknowledgement_told_no_offset_is_found() -> None:
    swapped = {2: 4, 4: 2}
    events = [
        replace(event, number=swapped.get(event.number, event.number))
        if isinstance(event, Acked)
        else event
        for event in good()
    ]
    assert kinds(untold(events, 2)) == {"REORDERED"}


def _reads_after() -> list[Event]:
    return [Read(at_s=12.0, who="c", log="t-0", offset=8, content=content(16))]


def test_a_lost_record_that_another_one_replaced_is_found() -> None:
    other = content_of(value_of("q", 1, 40))
    events = [
        replace(event, content=other)
        if isinstance(event, Read) and (event.log, event.offset) == ("t-0", 9)
        else event
        for event in good()
    ]
    assert kinds(events) == {"LOST", "CHANGED"}
    assert f"p 18 ({content(18)}) was acknowledged; {other} is there" in [
        offence.says for offence in found(events)
    ]


def test_a_duplicate_is_found() -> None:
    twice = Read(at_s=50.0, who="f", log="t-0", offset=10, content=content(4), is_final=True)
    assert found([*good(), twice]) == [
        Offence("DUPLICATE", "t-0", 10, f"{content(4)} is at 2 already")
    ]


def test_an_altered_record_is_found() -> None:
    value = bytearray(value_of("p", 6, 40))
    value[20] ^= 1
    altered = content_of(bytes(value))
    events = [
        replace(event, content=altered) if is_final_of(event, 3) else event for event in good()
    ]
    assert Kind.ALTERED.name in kinds(events)
    assert {offence.offset for offence in found(events)} == {3}


def test_an_offset_with_two_contents_is_found() -> None:
    """A consumer was shown a record that was cut off afterwards; no producer was told of it."""
    shown = Read(at_s=3.0, who="c", log="t-0", offset=5, content=content_of(value_of("x", 0, 40)))
    assert [(offence.kind, offence.offset) for offence in found([*good(), shown])] == [
        ("CHANGED", 5)
    ]


def test_a_record_that_a_consumer_was_shown_and_that_is_gone_is_found() -> None:
    shown = Read(at_s=3.0, who="c", log="t-0", offset=10, content=content_of(value_of("x", 0, 40)))
    assert [(offence.kind, offence.offset) for offence in found([*good(), shown])] == [
        ("CHANGED", 10)
    ]


def test_a_record_of_an_aborted_transaction_that_was_read_is_found() -> None:
    events = good()
    unread = Aborted(at_s=3.0, who="t", log="t-0", content=content(99), number=99)
    assert not found([*events, unread])
    read = Aborted(at_s=3.0, who="t", log="t-0", content=content(4), number=4)
    offences = found([*events, read])
    assert {(one.kind, one.log, one.offset) for one in offences} == {(Kind.ABORTED.name, "t-0", 2)}


def test_records_out_of_their_producers_order_are_found() -> None:
    swapped = {2: 4, 4: 2}
    events = [
        replace(event, number=swapped.get(event.number, event.number))
        if isinstance(event, Acked)
        else event
        for event in good()
    ]
    assert kinds(events) == {"REORDERED"}


@pytest.mark.parametrize("stuck", [Acked, Read])
def test_no_progress_after_the_last_fault_is_found(stuck: type) -> None:
    """The last thing that went on was before the end of the last fault, or too long after it."""
    late = Fault(at_s=22.0, ended_s=23.0, what="pause broker-2")
    going_on: list[Event] = [
        Acked(at_s=30.0, who="p", log=log, offset=9, content=content(number), number=number)
        for log, number in (("t-0", 18), ("t-1", 19))
    ]
    going_on += [Read(at_s=30.0, who="c", log="t-0", offset=9, content=content(18))]
    assert found([*good(), late, *going_on]) == []
    without = [event for event in going_on if not isinstance(event, stuck)]
    assert kinds([*good(), late, *without]) == {"NO_PROGRESS"}
    too_late = [replace(event, at_s=38.5) for event in going_on]
    assert kinds([*good(), late, *too_late]) == {"NO_PROGRESS"}


def test_a_log_that_cannot_be_read_in_the_end_is_found() -> None:
    events = [event for event in good() if not (isinstance(event, Read) and event.log == "t-1")]
    assert "could not be read in the end" in {offence.says for offence in found(events)}


def test_histories_are_read_back_up_to_a_line_cut_off(tmp_path: Path) -> None:
    file = tmp_path / "history.jsonl"
    file.write_text("".join(map(line_of, good())) + '{"kind": "Acked", "at')
    assert list(read_events([file])) == good()


def test_a_value_tells_by_itself_that_it_was_altered() -> None:
    value = value_of("p", 1, 100)
    assert len(value) > 100
    assert content_of(value) != content_of(value_of("p", 2, 100))
    for position in range(len(value)):
        changed = bytearray(value)
        changed[position] ^= 1
        assert content_of(bytes(changed)).startswith("garbled ")
    assert content_of(None).startswith("garbled ")

"""Each fault that is planted in a group's good history is found and named, and nothing else is."""

from dataclasses import replace

import pytest

from tests.drill.checker import Offence, Promises, check, story_of
from tests.drill.group_checker import check_group
from tests.drill.history import Committed, Event, Fault, Position, Read, Took

LOG = "t-0"


def read(offset: int, at_s: float, who: str = "m0") -> Read:
    return Read(
        at_s=at_s, who=who, log=LOG, offset=offset, content=f"content {offset}", in_group=True
    )


def final(offset: int) -> Read:
    return Read(
        at_s=90.0, who="final", log=LOG, offset=offset, content=f"content {offset}", is_final=True
    )


def committed(offset: int, at_s: float, who: str = "m0") -> Committed:
    return Committed(at_s=at_s, who=who, log=LOG, offset=offset)


def seen(offset: int, asked_s: float) -> Position:
    return Position(asked_s=asked_s, at_s=asked_s + 0.5, who="w", log=LOG, offset=offset)


GOOD: list[Event] = [
    Took(at_s=1.0, who="m0", log=LOG),
    *(read(offset, 2.0 + offset) for offset in range(6)),
    committed(4, 8.0),
    # m0 dies; 4 and 5 were not committed, so m1 is given them again.
    Took(at_s=9.0, who="m1", log=LOG),
    *(read(offset, 6.0 + offset, "m1") for offset in range(4, 10)),
    committed(10, 17.0, "m1"),
    seen(0, 1.0),
    seen(4, 8.1),
    seen(10, 17.5),
    *(final(offset) for offset in range(10)),
]


def found(events: list[Event]) -> list[Offence]:
    return check_group(story_of(events))


def test_a_good_history_has_no_offence() -> None:
    assert found(GOOD) == []


def test_what_was_committed_must_not_be_given_to_the_next_member() -> None:
    assert found([*GOOD, read(3, 9.5, "m1")]) == [
        Offence("REREAD", LOG, 3, "m1 was given it; 4 was committed or given before")
    ]


def test_a_commit_that_comes_after_the_log_was_taken_over_does_not_count() -> None:
    late = [replace(one, at_s=9.2) if one == committed(4, 8.0) else one for one in GOOD]
    without_watcher = [one for one in late if not isinstance(one, Position)]
    assert found([*without_watcher, read(3, 9.5, "m1")]) == []


def test_nothing_is_given_twice_while_one_member_has_the_log() -> None:
    assert found([*GOOD, read(5, 16.5, "m1")]) == [
        Offence("REREAD", LOG, 5, "m1 was given it; 10 was committed or given before")
    ]


def test_a_member_that_is_given_the_log_again_begins_at_the_commit() -> None:
    again = Took(at_s=17.2, who="m1", log=LOG)
    assert found([*GOOD, again, final(10), read(10, 17.4, "m1")]) == []
    assert found([*GOOD, again, read(9, 17.4, "m1")]) == [
        Offence("REREAD", LOG, 9, "m1 was given it; 10 was committed or given before")
    ]


def test_a_record_that_nobody_was_given_is_found() -> None:
    events = [one for one in GOOD if not (isinstance(one, Read) and one == read(2, 4.0))]
    assert found(events) == [Offence("MISSED", LOG, 2, "no member was given content 2")]


@pytest.mark.parametrize(
    "planted",
    [seen(3, 8.1), seen(9, 17.1), seen(4, 18.5)],
    ids=["below a commit", "just below", "below what was seen"],
)
def test_a_position_that_goes_back_is_found(planted: Position) -> None:
    [offence] = found([*GOOD, planted])
    assert (offence.kind, offence.offset) == ("WENT_BACK", planted.offset)


def test_an_answer_that_was_asked_for_before_a_commit_may_be_older() -> None:
    slow = Position(asked_s=7.9, at_s=16.0, who="w", log=LOG, offset=0)
    assert found([*GOOD, slow]) == []


def test_the_group_makes_progress_whoever_of_it_does() -> None:
    fault = Fault(at_s=3.0, ended_s=14.5, what="kill m0")
    promises = Promises(logs=frozenset(), group_within_s=15.0)
    assert check(story_of([*GOOD, fault]), promises) == []
    nothing_more = [*GOOD, replace(fault, ended_s=20.0)]
    assert [str(offence) for offence in check(story_of(nothing_more), promises)] == [
        "NO_PROGRESS: all logs: the group was given nothing within 15 s of the last fault"
    ]


def test_each_group_is_held_against_its_own_history() -> None:
    other: list[Event] = [
        replace(one, group="other")
        for one in GOOD
        if isinstance(one, Took | Committed | Position) or (isinstance(one, Read) and one.in_group)
    ]
    assert found([*GOOD, *other]) == []
    [missed] = found([*GOOD, *(one for one in other if one != other[1])])
    assert (missed.kind, missed.offset) == ("MISSED", 0), "the other group was not given it"
    back = replace(seen(0, 30.0), group="other")
    assert [one.kind for one in found([*GOOD, *other, back])] == ["WENT_BACK"]

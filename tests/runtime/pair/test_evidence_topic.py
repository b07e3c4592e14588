"""What an evidence topic says, whoever has written into it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.pair.evidence import Evidence
from runtime.pair.evidence_topic import CarriedEvidence, EvidenceUnreadable

IDS = {"dc1": "id-1", "dc2": "id-2"}
EVIDENCE = Evidence(path="/dr", pair="p", clusters=IDS, active="dc1", epoch=3)
KEY = EVIDENCE.encode()[0]


def said(*records: tuple[bytes, bytes]) -> list[Evidence]:
    carried = CarriedEvidence(KEY)
    for key, value in records:
        carried.replay(key, value)
    return carried.newest()


ages = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=6)


@given(ages)
def test_something_older_behind_the_newest_hides_nothing(ages: list[tuple[int, int]]) -> None:
    written = [replace(EVIDENCE, epoch=epoch, number=number) for epoch, number in ages]
    [newest] = said(*(one.encode() for one in written))
    assert newest.age == max(ages)


def test_of_the_same_number_the_last_counts() -> None:
    other = replace(EVIDENCE, active="dc2")
    assert said(EVIDENCE.encode(), other.encode()) == [other]


def test_garbage_at_the_end_is_told_and_what_is_written_behind_it_counts() -> None:
    with pytest.raises(EvidenceUnreadable, match=r"internal holds for b'/dr dc1 dc2'"):
        said(EVIDENCE.encode(), (KEY, b"x"))
    assert said((KEY, b"x"), EVIDENCE.encode()) == [EVIDENCE]
    assert said(EVIDENCE.encode(), (b"/other dc1 dc2", b"x")) == [EVIDENCE]

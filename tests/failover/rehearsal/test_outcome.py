"""A rehearsal in the witness: what is written is read again, and what is not one is refused."""

import json

import pytest

from failover.rehearsal.outcome import Rehearsal, RehearsalUnreadable
from failover.rehearsal.told import REHEARSAL_TITLES, rehearsal_lines, rehearsal_row
from tests.failover.rehearsal.rehearsed import BEGUN, REHEARSAL


@pytest.mark.parametrize("one", [REHEARSAL, BEGUN])
def test_a_rehearsal_is_read_as_it_was_written(one: Rehearsal) -> None:
    assert Rehearsal.decode(one.encode()) == one


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("state", "so-so"),
        ("number", -1),
        ("legs", [{"site": "dc2"}]),
        ("load", {"acknowledged": 1}),
        ("applications", [{"set": "a", "site": "b", "ready": "yes", "reason": None}]),
        ("given", None),
    ],
)
def test_what_is_no_rehearsal_is_refused(key: str, value: object) -> None:
    with pytest.raises(RehearsalUnreadable):
        Rehearsal.decode(json.dumps({**REHEARSAL.document(), key: value}).encode())


def test_the_report_tells_each_way_the_counts_and_what_would_be_refused() -> None:
    told = "\n".join(rehearsal_lines(REHEARSAL))
    assert "rehearsal 3 of dc2 from dc1: failed" in told
    assert "nobody could write for 0.50 s; writers stood 0.70 s, readers ?" in told
    assert "drain 0.10 s, fence 0.04 s" in told
    assert "set default to dc2: refused: behind" in told
    assert "set payments to dc1: not known: nobody answers" in told
    assert "set stock to dc2: could be promoted" in told


def test_what_is_not_known_is_nothing_in_the_history_and_not_zero() -> None:
    row = rehearsal_row(BEGUN)
    assert row.keys() == REHEARSAL_TITLES.keys()
    assert {row[key] for key in ("rto_ms", "back_ms", "lost", "reread")} == {None}
    assert (rehearsal_row(REHEARSAL)["rto_ms"], rehearsal_row(REHEARSAL)["reread"]) == (900, 0)

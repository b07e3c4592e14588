"""What became of a rehearsal's records, by what the load has seen and the logs hold."""

from collections.abc import Sequence

import pytest

from failover.rehearsal.judgement import Numbers, judge_load, standstill_ms
from failover.rehearsal.load import keys_for
from failover.rehearsal.outcome import RehearsedLeg, why_not_passed
from failover.rehearsal.seen import LoadSeen, Sighting

LOGS: Numbers = {0: [0, 2, 4], 1: [1, 3]}
ALL: Sequence[int] = (0, 1, 2, 3, 4)


def load(
    acknowledged: Sequence[int] = ALL, delivered: Sequence[int] = ALL, sent: int = 5
) -> LoadSeen:
    return LoadSeen(
        run="r",
        sent=sent,
        acknowledged=[Sighting(10 * number, "dc1", number) for number in acknowledged],
        delivered=[Sighting(10 * number + 5, "dc1", number) for number in delivered],
    )


def faults(seen: LoadSeen, active: Numbers = LOGS, other: Numbers = LOGS) -> dict[str, int]:
    return dict(judge_load(seen, active, other).faults())


def test_what_is_written_read_and_mirrored_once_has_no_fault() -> None:
    assert judge_load(load(), LOGS, LOGS).acknowledged == 5
    assert faults(load()) == {}


@pytest.mark.parametrize(
    ("seen", "active", "other", "found"),
    [
        (load(), {0: [0, 2, 4], 1: [1]}, LOGS, {"lost": 1}),
        (load(), {0: [0, 2, 4, 2], 1: [1, 3]}, LOGS, {"doubled": 1}),
        (load(), {0: [0, 4, 2], 1: [1, 3]}, LOGS, {"out_of_order": 1}),
        (load(delivered=(0, 1, 2, 3, 4, 3, 4)), LOGS, LOGS, {"reread": 2}),
        (load(delivered=(0, 1, 2, 3)), LOGS, LOGS, {"unread": 1}),
        (load(), LOGS, {0: [0, 2], 1: [1]}, {"uncopied": 2}),
        (load(sent=7), LOGS, LOGS, {"unsettled": 2}),
        (load(acknowledged=(0, 1, 2, 3)), LOGS, LOGS, {"unsettled": 1}),
    ],
)
def test_each_fault_is_counted_by_itself(
    seen: LoadSeen, active: Numbers, other: Numbers, found: dict[str, int]
) -> None:
    assert faults(seen, active, other) == found


def test_a_record_that_a_site_has_refused_is_settled() -> None:
    seen = load(acknowledged=(0, 1, 2, 3))
    seen.refused.append("too large")
    assert faults(seen) == {"refused": 1}


def test_a_standstill_lies_between_the_last_before_the_switch_and_the_first_behind_it() -> None:
    seen = [
        Sighting(100, "dc2", 0),  # an earlier way
        Sighting(200, "dc1", 1),
        Sighting(300, "dc1", 2),
        Sighting(1_200, "dc2", 3),
        Sighting(1_300, "dc2", 4),
    ]
    assert standstill_ms(seen, "dc2", 250) == 900
    assert standstill_ms(seen, "dc2", 0) is None, "nothing was seen elsewhere before"
    assert standstill_ms(seen[:3], "dc2", 250) is None, "nothing was seen there since"


def test_a_rehearsal_passes_only_where_everybody_went_on_at_both_sites() -> None:
    leg = RehearsedLeg(
        site="dc2", epoch=1, rto_ms=9, closed_ms=5, writers_ms=7, readers_ms=None, steps={}
    )
    clean = judge_load(load(), LOGS, LOGS)
    assert why_not_passed((leg,), clean) == "nothing was read on dc2 behind the switch"
    wrong = judge_load(load(delivered=(*ALL, 4)), LOGS, LOGS)
    assert why_not_passed((), wrong) == "1 records read again"
    assert why_not_passed((), clean) is None


def test_records_of_other_rehearsals_and_of_others_are_no_records_of_this_one() -> None:
    seen = LoadSeen(run="r")
    number, value = seen.next_value()
    assert (seen.number_of(value), seen.unsettled) == (number, 1)
    for other in (LoadSeen(run="q").next_value()[1], b"{}", b"[1]", b"\xff", b"", None):
        assert seen.number_of(other) is None


@pytest.mark.parametrize("count", [1, 3, 17])
def test_keys_reach_each_partition(count: int) -> None:
    assert len(set(keys_for(count))) == count

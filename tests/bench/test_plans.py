"""What is run in full and in a hurry, and that each part has rows, rounds and a time."""

import pytest

from tests.bench.__main__ import main
from tests.bench.measure.results import (
    MIRROR_CPU,
    MM2_DEFAULT,
    MM2_TUNED,
    OURS,
    OURS_EARLIER,
    OURS_IN_PYTHON,
    RELAY,
    UNITS,
)
from tests.bench.measure.workloads import Part
from tests.bench.plans import PATIENCE, QUICK_RUNS, RUNS, Plan, plan_for

FULL, QUICK = plan_for(is_quick=False), plan_for(is_quick=True)


def rounds(plan: Plan) -> set[int]:
    return {
        plan.runs,
        plan.brokers.runs,
        plan.replicated.runs,
        plan.drain.runs,
        plan.audit.runs,
    }


def test_everything_is_measured_in_as_many_rounds_as_are_asked_for() -> None:
    assert (rounds(FULL), rounds(QUICK)) == ({RUNS}, {QUICK_RUNS})
    for is_quick in (False, True):
        assert rounds(plan_for(is_quick=is_quick, runs=5)) == {5}


@pytest.mark.parametrize("plan", [FULL, QUICK])
def test_every_part_has_rows_of_ours_and_of_a_peer(plan: Plan) -> None:
    for part in Part:
        rows = plan.rows(part)
        assert OURS in rows
        assert set(rows) - {OURS, RELAY}
        for of_system in rows.values():
            assert len(of_system) == len(set(of_system)) > 0
            assert {bench for _, bench in of_system} <= set(UNITS)


def test_the_rows_of_all_parts_are_all_benches() -> None:
    benches = {bench for part in Part for rows in FULL.rows(part).values() for _, bench in rows}
    assert benches == set(UNITS)


def test_six_workloads_are_mirrored_in_a_hurry_with_the_kernel_and_without() -> None:
    rows = QUICK.rows(Part.MIRROR)
    assert len([row for row in rows[OURS_IN_PYTHON] if row[1] == MIRROR_CPU]) == 6
    assert set(rows[OURS_IN_PYTHON]) <= set(rows[OURS]) & set(rows[MM2_TUNED])


def test_against_an_earlier_commit_nobody_else_takes_part() -> None:
    plan = plan_for(is_quick=False, is_against=True)
    assert set(plan.rows(Part.MIRROR)) == {OURS, OURS_EARLIER}
    assert plan.runs == RUNS
    assert main(["--against", "no-such-commit"]) == 2


def test_mirrormaker_does_not_wait_for_its_timers_in_a_hurry() -> None:
    assert MM2_DEFAULT not in QUICK.rows(Part.OFFSETS)
    assert MM2_TUNED in QUICK.rows(Part.OFFSETS)


def test_a_part_begins_nothing_long_after_its_usual_time() -> None:
    assert QUICK.limit_s(Part.BROKER) == QUICK.minutes[Part.BROKER] * 60 * PATIENCE
    assert sum(QUICK.limit_s(part) for part in Part) < FULL.limit_s(Part.MIRROR)


def test_help_says_how_long_each_part_takes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    told = capsys.readouterr().out
    for part in Part:
        for plan in (FULL, QUICK):
            assert f"{part.value} {plan.minutes[part]:g}" in told


@pytest.mark.parametrize("wrong", [["--runs", "0"], ["--runs", "few"], ["--quick=2"]])
def test_what_cannot_be_run_is_refused(
    wrong: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(wrong)
    assert "error: argument" in capsys.readouterr().err

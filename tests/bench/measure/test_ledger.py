"""A run that fails leaves its reason, and the rest goes on; a bug of the harness ends its part."""

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.bench.measure.ledger import (
    COMPLETE,
    INCOMPLETE,
    Cell,
    Ledger,
    RunFailed,
    cells,
    is_expected,
    reason_of,
    run_reported,
)
from tests.bench.measure.machine import ROOT
from tests.bench.measure.results import MIRROR_CPU, MIRROR_RATE, MM2_TUNED, OURS
from tests.interop.peers import PeerFailed, PeerUnavailable
from tests.interop.peers.artifacts import maven_reason

ROWS = cells("w", (MIRROR_CPU, MIRROR_RATE))


def failing_with(fault: Exception) -> Mapping[Cell, float]:
    raise fault


def test_a_run_fills_its_rows() -> None:
    ledger = Ledger()
    assert ledger.try_run(OURS, 0, ROWS, lambda: {("w", MIRROR_CPU): 0.5})
    [one] = ledger.measured
    assert (one.row.bench, one.row.workload, one.row.system) == (MIRROR_CPU, "w", OURS)


def test_a_peer_that_fails_is_tried_again_and_one_that_cannot_be_had_is_not() -> None:
    ledger = Ledger()
    assert ledger.try_run(MM2_TUNED, 0, ROWS, lambda: failing_with(PeerFailed("it died:\nlog")))
    assert not ledger.try_run(MM2_TUNED, 0, ROWS, lambda: failing_with(PeerUnavailable("no Maven")))
    assert [(each.row.bench, each.reason) for each in ledger.missed] == [
        (MIRROR_CPU, "it died: log"),
        (MIRROR_RATE, "it died: log"),
        (MIRROR_CPU, "no Maven"),
        (MIRROR_RATE, "no Maven"),
    ]


def test_what_a_system_said_that_failed_is_kept(tmp_path: Path) -> None:
    ledger = Ledger(logs=tmp_path / "failed")
    for log in ("it broke", "", "again"):
        ledger.keep_log(MM2_TUNED, log)
    kept = {path.name: path.read_text() for path in (tmp_path / "failed").iterdir()}
    assert kept == {"1-mm2-tuned.log": "it broke", "2-mm2-tuned.log": "again"}
    Ledger().keep_log(MM2_TUNED, "nobody asked for it")


def test_no_run_begins_when_the_time_is_over() -> None:
    ledger = Ledger(ends_at=0.0)
    assert ledger.try_run(OURS, 0, ROWS, lambda: {("w", MIRROR_CPU): 0.5})
    assert not ledger.measured
    assert {each.reason for each in ledger.missed} == {
        "the time of this part was over before its turn"
    }
    faults: list[BaseException] = []
    with ledger.started(starting(None), faults.append) as nothing:
        assert nothing is None
    assert len(faults) == 1


def test_a_fault_of_a_whole_part_is_the_reason_of_its_rows_that_have_none() -> None:
    ledger = Ledger()
    with ledger.part("mirror", {OURS: ROWS, MM2_TUNED: ROWS}, limit_s=60):
        ledger.add(OURS, 0, {ROWS[0]: 0.5})
        ledger.miss(MM2_TUNED, ROWS[:1], PeerUnavailable("no Maven"))
        failing_with(FileNotFoundError(2, "No such file or directory", "round-0"))
    assert [(each.row.system, each.row.bench, each.reason) for each in ledger.missed] == [
        (MM2_TUNED, MIRROR_CPU, "no Maven"),
        (OURS, MIRROR_RATE, "[Errno 2] No such file or directory: 'round-0'"),
        (MM2_TUNED, MIRROR_RATE, "[Errno 2] No such file or directory: 'round-0'"),
    ]
    assert ledger.status == INCOMPLETE


def test_a_bug_of_the_harness_ends_its_part_without_a_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger = Ledger(logs=tmp_path)
    with ledger.part("mirror", {OURS: ROWS}, limit_s=60):
        failing_with(KeyError("oops"))
    assert {each.reason for each in ledger.missed} == {"a bug of the harness: KeyError: 'oops'"}
    assert ledger.status == INCOMPLETE
    [log] = tmp_path.iterdir()
    assert "KeyError: 'oops'" in log.read_text()
    told = capsys.readouterr()
    assert "Traceback" not in told.out + told.err


def test_each_part_has_a_time_of_its_own() -> None:
    ledger = Ledger()
    with ledger.part("mirror", {}, limit_s=-1.0), pytest.raises(RunFailed):
        ledger.require_time()
    with ledger.part("broker", {}, limit_s=60.0):
        ledger.require_time()
    assert ledger.status == COMPLETE


def test_a_bug_of_the_harness_is_not_taken_for_a_result() -> None:
    with pytest.raises(KeyError):
        Ledger().try_run(OURS, 0, ROWS, lambda: failing_with(KeyError("oops")))
    with pytest.raises(KeyError), Ledger().guard([OURS], ROWS):
        failing_with(KeyError("oops"))


def test_what_several_systems_need_and_do_not_get_is_told_for_each() -> None:
    ledger = Ledger()
    with ledger.guard([OURS, MM2_TUNED], ROWS):
        failing_with(RunFailed("no topic"))
    assert {(each.row.system, each.reason) for each in ledger.missed} == {
        (OURS, "no topic"),
        (MM2_TUNED, "no topic"),
    }


@contextmanager
def starting(fault: Exception | None) -> Iterator[str]:
    if fault is not None:
        raise fault
    yield "it runs"


def test_what_does_not_start_is_told_and_what_fails_later_is_raised() -> None:
    faults: list[BaseException] = []
    with Ledger().started(starting(None), faults.append) as running:
        assert running == "it runs"
    with Ledger().started(starting(PeerUnavailable("no Java")), faults.append) as nothing:
        assert nothing is None
    assert [reason_of(fault) for fault in faults] == ["no Java"]
    with pytest.raises(RunFailed), Ledger().started(starting(None), faults.append):
        raise RunFailed("later")


def test_a_measurement_without_a_figure_has_a_status_and_says_why(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(fault: Exception) -> int:
        raise fault

    assert run_reported("lags", lambda: 1) == 1
    assert capsys.readouterr().out == ""
    assert run_reported("lags", lambda: fail(PeerFailed("broker 0 ended"))) == INCOMPLETE
    assert capsys.readouterr().out.endswith("lags: no figure: broker 0 ended\n")
    with pytest.raises(KeyError):
        run_reported("lags", lambda: fail(KeyError("oops")))


def test_a_group_of_faults_is_expected_only_if_all_are() -> None:
    good, bad = RunFailed("17 of 20 records"), KeyError("oops")
    assert is_expected(ExceptionGroup("nursery", [good]))
    assert not is_expected(ExceptionGroup("nursery", [good, bad]))
    assert reason_of(ExceptionGroup("nursery", [ExceptionGroup("inner", [good])])) == str(good)
    assert reason_of(TimeoutError()) == "TimeoutError"


def test_a_reason_has_the_last_words_of_what_did_not_start_and_no_path_of_this_machine() -> None:
    said = "broker 0 ended with status 1; it last said:\nstarting\nno room on the heap"
    assert reason_of(PeerFailed(said)) == (
        "broker 0 ended with status 1; it last said: no room on the heap"
    )
    assert reason_of(PeerUnavailable(f"too little disk for {ROOT}/build/x")) == (
        "too little disk for build/x"
    )
    assert reason_of(RunFailed("unsaid:")) == "unsaid"


def test_a_registry_that_cannot_be_reached_is_named() -> None:
    said = (
        "[ERROR] Plugin p:1 or one of its dependencies could not be resolved: "
        "Failed to read artifact descriptor for p:1: Could not transfer artifact p:pom:1 from/to "
        "central (https://registry.example/maven): Connect to registry.example:443 failed: "
        "Connection refused (Connection refused) -> [Help 1]"
    )
    ended = subprocess.CompletedProcess(["mvn"], 1, stdout="", stderr=said)
    assert maven_reason(ended) == (
        "the registry that it asks cannot be reached or refuses: "
        "Connection refused (Connection refused)"
    )
    ended = subprocess.CompletedProcess(["mvn"], 1, stdout="[ERROR] no pom.xml", stderr="")
    assert maven_reason(ended) == "no pom.xml"


def test_a_reason_is_short_and_names_no_registry() -> None:
    said = (
        "Maven cannot resolve it: https://user:secret@registry.example/maven/ is away " + "x" * 200
    )
    assert reason_of(PeerUnavailable(said)) == ("Maven cannot resolve it: its address is away ...")

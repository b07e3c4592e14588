"""A run that fails leaves its reason, and the rest goes on; a bug of the harness does not."""

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.bench.ledger import Cell, Ledger, RunFailed, cells, is_expected, reason_of, started
from tests.bench.machine import ROOT
from tests.bench.results import MIRROR_CPU, MIRROR_RATE, MM2_TUNED, OURS
from tests.interop.peers import PeerFailed, PeerUnavailable
from tests.interop.peers.artifacts import maven_reason

ROWS = cells("w", (MIRROR_CPU, MIRROR_RATE))


def failing_with(fault: Exception) -> Mapping[Cell, float]:
    raise fault


def test_a_run_fills_its_rows() -> None:
    ledger = Ledger()
    assert ledger.try_run(OURS, 0, ROWS, lambda: {("w", MIRROR_CPU): 0.5})
    [one] = ledger.measured
    assert (one.place.bench, one.place.workload, one.place.system) == (MIRROR_CPU, "w", OURS)


def test_a_peer_that_fails_is_tried_again_and_one_that_cannot_be_had_is_not() -> None:
    ledger = Ledger()
    assert ledger.try_run(MM2_TUNED, 0, ROWS, lambda: failing_with(PeerFailed("it died:\nlog")))
    assert not ledger.try_run(MM2_TUNED, 0, ROWS, lambda: failing_with(PeerUnavailable("no Maven")))
    assert [(each.place.bench, each.reason) for each in ledger.not_run] == [
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
    assert {each.reason for each in ledger.not_run} == {
        "the time that this benchmark may take was over before its turn"
    }
    told: list[BaseException] = []
    with started(starting(None), told.append, ledger.require_time) as nothing:
        assert nothing is None
    assert len(told) == 1


def test_a_bug_of_the_harness_is_not_taken_for_a_result() -> None:
    with pytest.raises(KeyError):
        Ledger().try_run(OURS, 0, ROWS, lambda: failing_with(KeyError("oops")))
    with pytest.raises(KeyError), Ledger().guard([OURS], ROWS):
        failing_with(KeyError("oops"))


def test_what_several_systems_need_and_do_not_get_is_told_for_each() -> None:
    ledger = Ledger()
    with ledger.guard([OURS, MM2_TUNED], ROWS):
        failing_with(RunFailed("no topic"))
    assert {(each.place.system, each.reason) for each in ledger.not_run} == {
        (OURS, "no topic"),
        (MM2_TUNED, "no topic"),
    }


@contextmanager
def starting(fault: Exception | None) -> Iterator[str]:
    if fault is not None:
        raise fault
    yield "it runs"


def test_what_does_not_start_is_told_and_what_fails_later_is_raised() -> None:
    told: list[BaseException] = []
    with started(starting(None), told.append) as running:
        assert running == "it runs"
    with started(starting(PeerUnavailable("no Java")), told.append) as nothing:
        assert nothing is None
    assert [reason_of(fault) for fault in told] == ["no Java"]
    with pytest.raises(RunFailed), started(starting(None), told.append):
        raise RunFailed("later")


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

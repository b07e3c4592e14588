import logging

import pytest

import runtime.process.fault_note
from runtime.process.fault_note import AGAIN_MS, FaultNote


def test_what_lasts_is_logged_when_it_begins_once_a_minute_and_when_it_is_over(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    now_ms = 5
    monkeypatch.setattr(runtime.process.fault_note, "monotonic_ms", lambda: now_ms)
    note = FaultNote("fences")
    for seconds in range(0, 2 * AGAIN_MS // 1_000, 2):
        now_ms = 5 + seconds * 1_000
        note.note(f"cannot be set, try {seconds}")
    assert caplog.messages == ["fences: cannot be set, try 0", "fences: cannot be set, try 60"]
    assert note.text == "cannot be set, try 118"
    note.clear()
    note.clear()
    assert caplog.messages[2:] == ["fences: works again"]
    assert note.text is None


def test_each_place_has_its_own_fault(caplog: pytest.LogCaptureFixture) -> None:
    note = FaultNote("groups")
    note.note("no right", "broker 1", is_refusal=True)
    note.note("no right", "broker 2")
    note.note("cut off", "broker 3")
    assert caplog.messages == ["groups: no right", "groups: no right", "groups: cut off"]
    states = [(note.is_refusal, note.text)]
    for broker in ("broker 1", "broker 2"):
        note.clear(broker)
        states.append((note.is_refusal, note.text))
    assert states == [
        (True, "no right; cut off"),
        (False, "no right; cut off"),
        (False, "cut off"),
    ]

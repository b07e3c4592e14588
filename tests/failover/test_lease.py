"""Whose lease may be taken before its session ends: that of a process that is certainly gone."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from failover.lease import _is_of_dead_process, _machine


def lease_of(pid: int) -> bytes:
    return json.dumps({"host": "here", "pid": pid, "machine": _machine()}).encode()


def test_the_lease_of_a_process_that_is_gone_is_free() -> None:
    child = subprocess.Popen(["true"])
    assert not _is_of_dead_process(lease_of(child.pid))
    child.wait()
    assert _is_of_dead_process(lease_of(child.pid))
    assert not _is_of_dead_process(lease_of(1))


def test_a_process_of_somebody_else_that_is_hidden_is_alive(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def kill(_: int, __: int) -> None:
        raise PermissionError

    machine = lease_of(1_234)
    monkeypatch.setattr(Path, "exists", lambda _: False)
    monkeypatch.setattr(os, "kill", kill)
    assert not _is_of_dead_process(machine)

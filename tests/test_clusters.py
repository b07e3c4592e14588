"""What tests are told of the processes of their clusters."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clusters import RunningCluster, is_alive, words_of_running

FIRST_THREAD_GONE = """
import ctypes, os, sys, threading
def last(): sys.stdin.read(); os._exit(0)
threading.Thread(target=last).start()
ctypes.CDLL(None).pthread_exit(None)
"""
"""A process whose first thread is a zombie while another still holds its ports and locks."""


def test_a_process_lives_as_long_as_any_of_its_threads() -> None:
    command = [sys.executable, "-c", FIRST_THREAD_GONE]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        descriptor = os.pidfd_open(process.pid)
        try:
            while "Z (zombie)" not in Path(f"/proc/{process.pid}/status").read_text():
                assert process.poll() is None
            assert is_alive(process.pid)
            assert process.stdin is not None
            process.stdin.close()
            os.waitid(os.P_PIDFD, descriptor, os.WEXITED | os.WNOWAIT)  # and leaves a zombie
            assert not is_alive(process.pid)
        finally:
            os.close(descriptor)
    assert not is_alive(process.pid)


def test_what_clusters_said_last_is_shown_with_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = RunningCluster(name="dc1", data=tmp_path / "dc1", broker_count=1)
    (tmp_path / "dc1" / "broker-0").mkdir(parents=True)
    (tmp_path / "dc1.log").write_text("cluster dc1 is ready\n")
    (tmp_path / "dc1" / "broker-0" / "broker.log").write_text("line\n" * 100 + "cannot listen\n")
    monkeypatch.setattr("tests.clusters._RUNNING", {id(cluster): cluster})
    words = words_of_running()
    assert words["dc1: dc1.log"] == "cluster dc1 is ready"
    assert words["dc1: dc1/broker-0/broker.log"].splitlines() == ["line"] * 39 + ["cannot listen"]

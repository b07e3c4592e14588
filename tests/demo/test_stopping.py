"""The demo stops in order, however often it is told to."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_does_not_cut_the_stop_short(
    number: signal.Signals, tmp_path: Path
) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "demo", "--folder", str(tmp_path), "play"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as demo:
        assert demo.stdout is not None
        assert demo.stderr is not None
        assert "starting two clusters" in demo.stdout.readline()
        demo.send_signal(number)
        assert "received, stopping" in demo.stderr.readline()
        demo.send_signal(number)
        told = demo.stderr.read()
    assert (demo.returncode, told) == (130, "")

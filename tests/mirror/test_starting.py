"""Signals that come while a daemon starts: its imports alone take a second."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bad_input.programs import start, write_configuration
from tests.mirror.daemon import wait_until

pytestmark = pytest.mark.integration

HANGUP = 1 << (signal.SIGHUP - 1)


def holds_hangups(pid: int) -> bool:
    """Whether SIGHUP would wait."""
    status = Path(f"/proc/{pid}/status").read_text()
    [blocked] = [line.split()[1] for line in status.splitlines() if line.startswith("SigBlk:")]
    return bool(int(blocked, 16) & HANGUP)


@pytest.mark.parametrize("options", [(), ("--workers", "2")])
def test_a_hangup_while_the_daemon_starts_is_followed_once_it_can_be(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    file, log = write_configuration(tmp_path), tmp_path / "log"
    with log.open("wb") as output:
        command = [sys.executable, "-m", "mirror", "run", *options, str(file)]
        daemon = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        wait_until("hangups are held", lambda: daemon.poll() is None and holds_hangups(daemon.pid))
        assert not log.read_text()
        daemon.send_signal(signal.SIGHUP)
        told = "is process" if options else "reloaded: nothing has changed"
        wait_until(told, lambda: told in log.read_text())
        daemon.send_signal(signal.SIGTERM)
        assert daemon.wait(25) == 0, log.read_text()
    finally:
        daemon.kill()
        daemon.wait()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_who_is_ended_while_it_starts_says_nothing(tmp_path: Path, number: signal.Signals) -> None:
    before = signal.signal(number, signal.SIG_DFL)  # in the background of a shell SIGINT is ignored
    try:
        daemon = start("mirror", "run", write_configuration(tmp_path))
    finally:
        signal.signal(number, before)
    try:
        wait_until("hangups are held", lambda: daemon.poll() is None and holds_hangups(daemon.pid))
        daemon.send_signal(number)
        _, said = daemon.communicate(timeout=25)
        assert said == ""
        # Before its imports the signal ends it, behind them the program itself does.
        assert daemon.returncode in {-number, 128 + number}
    finally:
        daemon.kill()
        daemon.wait()

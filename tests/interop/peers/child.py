"""One peer's process: ends with the tests, keeps what it says in a file, and can be killed."""

import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Final

from runtime.process.child import ENDS_WITH_ITS_PARENT
from tests.interop.peers.faults import PeerFailed, PeerLost

LAST_LINES: Final = 12
PAUSE_S: Final = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """A started program called `name`; `pid` is its own and its process group's."""

    name: str
    log: Path
    process: subprocess.Popen[bytes]
    log_start: int = 0

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    def said(self) -> str:
        """Return what this run of it has said so far."""
        return self.log.read_bytes()[self.log_start :].decode(errors="replace")

    def failure(self, what: str) -> PeerFailed:
        """Return the error that names this peer and tells its last words."""
        last = "\n".join(self.said().splitlines()[-LAST_LINES:]) or "(it said nothing)"
        return PeerFailed(f"{self.name} {what}; it last said:\n{last}")

    def wait_until(self, is_ready: Callable[[], bool], *, timeout_s: float) -> None:
        """Return once `is_ready()`; PeerFailed when the program ended or the time is over."""
        deadline = monotonic() + timeout_s
        while not is_ready():
            if not self.is_running:
                raise self.failure(f"ended with status {self.process.returncode}")
            if monotonic() > deadline:
                raise self.failure(f"was not ready within {timeout_s:.0f} s")
            pause(PAUSE_S)

    def ask_to_stop(self) -> None:
        """Send it SIGTERM, if it still runs; does not wait."""
        if self.is_running:
            self.process.terminate()

    def stop(self, *, patience_s: float) -> None:
        """Ask it to end by SIGTERM; PeerLost, after SIGKILL, when it does not in time.

        It ran and has met us: that it hangs may well be for what we did.
        """
        self.ask_to_stop()
        try:
            self.process.wait(patience_s)
        except subprocess.TimeoutExpired as error:
            self.kill()
            told = self.failure(f"did not stop within {patience_s:.0f} s")
            raise PeerLost(str(told)) from error
        self.kill()

    def wait_gone(self, *, patience_s: float) -> None:
        """Give it that long to end by itself, then kill it."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(patience_s)
        self.kill()

    def kill(self) -> None:
        """End its whole process group by SIGKILL; nothing if it is gone."""
        assert self.process.stdin is not None, "start_child gave it a pipe"
        # Gone means: neither the program nor the shell beside it is left.
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process.stdin.close()


def start_child(name: str, command: Sequence[str], *, log: Path) -> Child:
    """Start a program in a process group of its own; what it says is appended to `log`."""
    with log.open("ab") as output:
        log_start = output.tell()
        process = subprocess.Popen(
            ["/bin/sh", "-c", ENDS_WITH_ITS_PARENT, command[0], *command],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    return Child(name=name, log=log, process=process, log_start=log_start)


def pause(seconds: float) -> None:
    """Wait outside trio: peers are started by plain fixtures."""
    Event().wait(seconds)

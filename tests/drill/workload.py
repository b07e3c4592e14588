"""The clients of a drill as processes, and what they are told while it runs."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, Final

import trio

from tests.drill.cluster import DrillFailed
from tests.drill.faults import Absence
from tests.drill.history import Acked, Fault, Read, event_of
from tests.forked import Process, start_command

TOPIC: Final = "drilled"
PARTITIONS: Final = 3
LONGEST_LINE: Final = 64 * 1024
LOG: Final = "clients.log"
LAST_WORDS: Final = 4_000


@dataclass(slots=True, kw_only=True)
class Clients:
    """The processes that produce and consume; each writes its own history."""

    folder: Path
    client: Mapping[str, Any]
    rate: int
    topic: str = TOPIC
    partitions: int = PARTITIONS
    running: dict[str, Process] = field(default_factory=dict)

    def start(
        self,
        does: str,
        name: str,
        client: Mapping[str, Any] | None = None,
        topic: str | None = None,
    ) -> None:
        """Start a client, of another cluster or topic if so told; `does` is what it can do."""
        file = self.folder / f"{name}.client.json"
        file.touch(mode=0o600)
        file.write_text(json.dumps(client or self.client))
        command = [
            *(sys.executable, "-m", "tests.drill.clients", does, name),
            *(str(file), topic or self.topic, str(self.partitions)),
            *(str(self.folder / f"{name}.jsonl"), str(self.rate)),
        ]
        with (self.folder / LOG).open("ab") as said:
            self.running[name] = start_command(command, said)

    def let_go(self, names: Iterable[str]) -> None:
        """Tell clients to come to their ends, side by side."""
        for name in names:
            child = self.running[name]
            assert child.stdin is not None, "started with a pipe"
            child.stdin.close()

    async def finish(self, name: str, patience_s: float, *, lets_go: bool = True) -> None:
        """Let a client come to its end. Raises DrillFailed when it does not, or fails."""
        child = self.running[name]
        assert child.stdin is not None, "started with a pipe"
        if lets_go:
            child.stdin.close()
        try:
            status = await trio.to_thread.run_sync(partial(child.wait, patience_s))
        except subprocess.TimeoutExpired as error:
            child.send_signal(signal.SIGABRT)
            await trio.to_thread.run_sync(child.wait)
            said = (self.folder / LOG).read_text()[-LAST_WORDS:]
            raise DrillFailed(f"client {name} does not end; it was here:\n{said}") from error
        child.stdin.close()
        del self.running[name]
        if status and lets_go:
            raise DrillFailed(f"client {name} ended with status {status}")

    def kill_one(self, name: str) -> None:
        """End a client by SIGKILL; what it had not yet written down is gone."""
        child = self.running.pop(name)
        child.kill()
        child.wait()
        assert child.stdin is not None, "started with a pipe"
        child.stdin.close()

    def kill(self) -> None:
        """End all of them."""
        for name in [*self.running]:
            self.kill_one(name)


class Group:
    """Members of one group, some of whom die and are followed by others."""

    def __init__(self, clients: Clients, name: str, members: int) -> None:
        self._clients = clients
        self._of = name
        self._lives = [0] * members
        for member in range(members):
            self._start(member)
        if members:
            clients.start(f"{name}-positions", self.watcher)

    @property
    def watcher(self) -> str:
        """The client that asks for the group's positions."""
        return f"{self._of}-watcher"

    def _start(self, member: int) -> None:
        self._clients.start(f"{self._of}-member", self._name(member))

    def _name(self, member: int) -> str:
        return f"{self._of}{member}-{self._lives[member]}"

    @property
    def names(self) -> list[str]:
        """Return the members of now."""
        return [self._name(member) for member in range(len(self._lives))]

    async def change(self, absences: Sequence[Absence], note: Callable[[Fault], None]) -> None:
        """Let members die and come back as planned."""
        began_s = trio.current_time()
        for absence in absences:
            await trio.sleep_until(began_s + absence.at_s)
            at_s, name = monotonic(), self._name(absence.member)
            self._clients.kill_one(name)
            await trio.sleep_until(began_s + absence.at_s + absence.lasts_s)
            self._lives[absence.member] += 1
            self._start(absence.member)
            note(Fault(at_s=at_s, ended_s=monotonic(), what=f"kill {name}"))


@contextmanager
def open_clients(folder: Path, client: Mapping[str, Any], rate: int) -> Iterator[Clients]:
    """Have clients that are gone with the block."""
    clients = Clients(folder=folder, client=client, rate=rate)
    try:
        yield clients
    finally:
        clients.kill()


class Progress:
    """Follows histories as they are written: when was each client last told about each log."""

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self._folder = folder
        self._files: dict[str, Path] = {}
        self._read_bytes: dict[str, int] = {}
        self.also(names)
        self._last_s: dict[tuple[str, str], float] = {}

    def also(self, names: Sequence[str]) -> None:
        """Follow these as well."""
        self._files |= {name: self._folder / f"{name}.jsonl" for name in names}
        self._read_bytes |= {name: 0 for name in names if name not in self._read_bytes}

    def logs(self, name: str, since_s: float) -> set[str]:
        """Return the logs of which a client has been told something since then."""
        return {log for (who, log), at_s in self._last_s.items() if who == name and at_s > since_s}

    def skip(self) -> None:
        """Leave out what has been written: a long drill's would take longer than networks wait."""
        for name, file in self._files.items():
            if file.exists():
                with file.open("rb") as lines:
                    end = lines.seek(0, os.SEEK_END)
                    lines.seek(max(self._read_bytes[name], end - LONGEST_LINE))
                    tail = lines.read()
                self._read_bytes[name] = end - len(tail) + tail.rfind(b"\n") + 1

    def follow(self) -> None:
        """Take in what was written since the last time."""
        for name, file in self._files.items():
            if not file.exists():
                continue
            with file.open("rb") as lines:
                lines.seek(self._read_bytes[name])
                fresh = lines.read()
            whole = fresh[: fresh.rfind(b"\n") + 1]
            self._read_bytes[name] += len(whole)
            for line in whole.splitlines():
                event = event_of(line)
                if isinstance(event, Acked | Read):
                    self._last_s[name, event.log] = event.at_s

"""Our programs as processes that need not import everything anew.

To import what a program needs takes a second of CPU, and the tests start hundreds. So each test
process has one child, the stem (`tests.stem`), which imports each program once and does nothing
else; a program is a fork of it that gets its arguments, environment, folder and files, and runs
`main`. It is a process of its own, killed and signalled like any; so are the brokers of a
`broker up` that is such a fork. That programs start as users start them is shown by
`tests/bad_input` and `tests/demo`.

A program whose environment steers the interpreter or the loader, or which Java is found, is started
by a new interpreter, and so are its brokers.
"""

import atexit
import json
import os
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Final, TypeAlias

import trio

from tests.readable import is_readable

PROGRAMS: Final = (
    "broker.cli",
    "mirror.cli",
    "failover.cli",
    "runtime.process.zookeeper_server",
    "tests.drill.clients",
    "tests.drill.failover.controller",
)
"""What the stem forks."""
LIMIT: Final = 1_000_000
"""Bytes of a request: arguments and an environment."""
STATUS: Final = struct.Struct("i")
_STEERING: Final = ("PYTHON", "LD_", "MALLOC_", "JAVA_HOME", "PATH")


@dataclass(slots=True)
class ForkedProgram:
    """A fork of the stem, which reaps it and tells its status."""

    pid: int
    stdin: IO[bytes] | None
    _told: socket.socket
    returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit status, below 0 for a signal; None while it runs."""
        return self._look(0)

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit status; TimeoutExpired if it does not end in time."""
        status = self._look(timeout)
        if status is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
        return status

    def send_signal(self, number: int) -> None:
        """Signal it unless it has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):  # the stem has just reaped it
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """End it by SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it by SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def _look(self, timeout: float | None) -> int | None:
        if self.returncode is not None:
            return self.returncode
        if is_readable(self._told.fileno(), timeout):
            data = self._told.recv(STATUS.size)
            assert data, "the stem of all programs has died"
            (self.returncode,) = STATUS.unpack(data)
            self._told.close()
        return self.returncode


Process: TypeAlias = ForkedProgram | subprocess.Popen[bytes]
"""What both have: pid, stdin, returncode, poll, wait, send_signal, terminate, kill."""


def start_program(
    module: str,
    *arguments: str,
    output: IO[bytes],
    errors: IO[bytes] | None = None,
    has_stdin: bool = False,
    niceness: int = 0,
) -> Process:
    """Start a program of ours with its outputs into files; its input is a pipe, or nothing.

    Without `errors` both outputs go into one file. With a niceness, everybody else comes first.
    """
    if is_forked(module):
        ours = {"has_session": False, "niceness": niceness}
        return _STEM.fork(
            {"module": module, "arguments": arguments, **ours},
            output,
            errors or output,
            has_stdin=has_stdin,
        )
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.Popen(
        ["nice", "-n", str(niceness), *command] if niceness else command,
        stdin=subprocess.PIPE if has_stdin else None,
        stdout=output,
        stderr=errors or output,
    )


def start_command(command: Sequence[str], output: IO[bytes]) -> Process:
    """Start a command line, `python -m` and a program of ours or another, its input a pipe."""
    if list(command[:2]) == [sys.executable, "-m"]:
        return start_program(*command[2:], output=output, has_stdin=True)
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, stderr=output)


@dataclass(frozen=True, slots=True)
class Call:
    """A command that is being carried out; files take what it says."""

    process: Process
    _output: IO[bytes]
    _complaint: IO[bytes]

    def output(self) -> str:
        """Return its standard output so far."""
        written = self._output.fileno()
        return os.pread(written, os.fstat(written).st_size, 0).decode()

    def finish(self, timeout_s: float) -> "subprocess.CompletedProcess[str]":
        """Wait for its end; call once. Raises TimeoutExpired, and then it runs on."""
        status = self.process.wait(timeout_s)
        said = []
        for file in (self._output, self._complaint):
            with file:
                file.seek(0)
                said.append(file.read().decode())
        return subprocess.CompletedProcess((), status, *said)


def call_program(module: str, *arguments: str | Path, niceness: int = 0) -> Call:
    """Start a command that ends by itself, or is ended by a signal."""
    output, complaint = TemporaryFile(), TemporaryFile()  # noqa: SIM115 - `finish` closes them
    process = start_program(
        *(module, *map(str, arguments)), output=output, errors=complaint, niceness=niceness
    )
    return Call(process, output, complaint)


def is_forked(module: str) -> bool:
    """Return whether a program would be a fork: what steers interpreters is as in the stem."""
    return _steering(os.environ) == _STEM.steering and module in PROGRAMS


def _steering(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(_STEERING)}


@dataclass(slots=True)
class _Stem:
    """The child that has imported everything, started when it is first needed."""

    steering: dict[str, str] = field(default_factory=lambda: _steering(os.environ))
    requests: socket.socket | None = None
    _process: subprocess.Popen[bytes] | None = None

    def fork(
        self,
        program: Mapping[str, object],
        output: IO[bytes],
        errors: IO[bytes],
        *,
        has_stdin: bool,
    ) -> ForkedProgram:
        requests = self._started()
        told, telling = socket.socketpair()
        reading, writing = os.pipe() if has_stdin else (os.open(os.devnull, os.O_RDONLY), -1)
        request = {**program, "environment": dict(os.environ), "folder": str(Path.cwd())}
        with telling:
            files = [telling.fileno(), reading, output.fileno(), errors.fileno()]
            files.append(requests.fileno())  # it may want forks of its own
            socket.send_fds(requests, [json.dumps(request).encode()], files)
        os.close(reading)
        (pid,) = STATUS.unpack(told.recv(STATUS.size))
        return ForkedProgram(pid, os.fdopen(writing, "wb", 0) if has_stdin else None, told)

    def _started(self) -> socket.socket:
        if self.requests is None:
            self.requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            for end in (self.requests, theirs):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LIMIT)
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "tests.stem", str(theirs.fileno())],
                    pass_fds=[theirs.fileno()],
                    cwd=Path(__file__).parents[1],
                )
            atexit.register(self._end)
        return self.requests

    def _end(self) -> None:
        assert self.requests is not None
        assert self._process is not None
        self.requests.shutdown(socket.SHUT_WR)  # programs that still run have it open as well
        self.requests.close()
        self._process.wait(60)


_STEM: Final = _Stem()


def ask_at(requests: int) -> None:
    """Have this process, a fork of the stem, ask the same stem for its own children."""
    os.set_inheritable(requests, False)
    _STEM.requests = socket.socket(fileno=requests)


class ForkedBroker:
    """A fork for `broker up`, which waits for it under trio."""

    def __init__(self, program: ForkedProgram) -> None:
        assert program.stdin is not None, "brokers are started with a pipe"
        self._program = program
        self.stdin = trio.lowlevel.FdStream(os.dup(program.stdin.fileno()))
        program.stdin.close()

    @property
    def pid(self) -> int:
        """Return the process id."""
        return self._program.pid

    def poll(self) -> int | None:
        """Return the exit status, None while it runs."""
        return self._program.poll()

    async def wait(self) -> int:
        """Return the exit status once it has ended."""
        try:
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return self._program.wait()  # the stem has reaped it
        try:
            await trio.lowlevel.wait_readable(descriptor)
        finally:
            os.close(descriptor)
        return self._program.wait()

    def terminate(self) -> None:
        """End it by SIGTERM."""
        self._program.terminate()

    def kill(self) -> None:
        """End it by SIGKILL."""
        self._program.kill()


async def open_broker(
    properties: Path, output: IO[bytes], log_words: Sequence[str] = ()
) -> ForkedBroker:
    """Start a broker as `broker.up.open_broker` does, but as a fork: in a session of its own."""
    program = {
        "module": "broker.cli",
        "arguments": [*log_words, "run", str(properties), "--end-with-stdin"],
        "has_session": True,
        "niceness": 0,
    }
    return ForkedBroker(_STEM.fork(program, output, output, has_stdin=True))

"""Our long-running programs as processes that need not import everything anew.

To import what a daemon needs takes a second of CPU, and the tests start hundreds. So each test
process has one child, the stem, which has imported the programs and done nothing else; a program
is a fork of it that gets its arguments, environment, folder and files, and runs `main`. It is a
process of its own, killed and signalled like any. That programs start as users start them is shown
by `tests/bad_input`, `tests/demo` and every broker: `broker up` starts those itself.

A program whose environment steers the interpreter or the loader is started by a new interpreter.
"""

import atexit
import importlib
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final, NoReturn, TypeAlias

PROGRAMS: Final = {
    "broker.cli": ("up", "run"),
    "mirror.cli": ("run",),
    "runtime.zookeeper_server": (),
}
"""What the stem loads: programs and, as those load each only when it is asked for, commands."""
_LIMIT: Final = 1_000_000
"""Bytes of a request: arguments and an environment."""
_STEERING: Final = ("PYTHON", "LD_", "MALLOC_")
_STATUS: Final = struct.Struct("i")


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
        readable, _, _ = select.select([self._told], [], [], timeout)
        if readable:
            data = self._told.recv(_STATUS.size)
            assert data, "the stem of all programs has died"
            (self.returncode,) = _STATUS.unpack(data)
            self._told.close()
        return self.returncode


Process: TypeAlias = ForkedProgram | subprocess.Popen[bytes]
"""What both have: pid, stdin, returncode, poll, wait, send_signal, terminate, kill."""


def start_program(
    module: str, *arguments: str, output: IO[bytes], has_stdin: bool = False
) -> Process:
    """Start a program of ours with both outputs into a file; its input is a pipe, or nothing."""
    if _steering(os.environ) == _STEM.steering and module in PROGRAMS:
        return _STEM.fork(module, arguments, output, has_stdin=has_stdin)
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        stdin=subprocess.PIPE if has_stdin else None,
        stdout=output,
        stderr=output,
    )


def start_command(command: Sequence[str], output: IO[bytes]) -> Process:
    """Start a command line, `python -m` and a program of ours or another, its input a pipe."""
    if list(command[:2]) == [sys.executable, "-m"]:
        return start_program(*command[2:], output=output, has_stdin=True)
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, stderr=output)


def _steering(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(_STEERING)}


@dataclass(slots=True)
class _Stem:
    """The child that has imported everything, started when it is first needed."""

    steering: dict[str, str] = field(default_factory=lambda: _steering(os.environ))
    _process: subprocess.Popen[bytes] | None = None
    _requests: socket.socket | None = None

    def fork(
        self, module: str, arguments: Sequence[str], output: IO[bytes], *, has_stdin: bool
    ) -> ForkedProgram:
        requests = self._started()
        told, telling = socket.socketpair()
        reading, writing = os.pipe() if has_stdin else (os.open(os.devnull, os.O_RDONLY), -1)
        request = {
            "module": module,
            "arguments": arguments,
            "environment": dict(os.environ),
            "folder": str(Path.cwd()),
        }
        with telling:
            files = [telling.fileno(), reading, output.fileno()]
            socket.send_fds(requests, [json.dumps(request).encode()], files)
        os.close(reading)
        (pid,) = _STATUS.unpack(told.recv(_STATUS.size))
        return ForkedProgram(pid, os.fdopen(writing, "wb", 0) if has_stdin else None, told)

    def _started(self) -> socket.socket:
        if self._requests is None:
            self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            for end in (self._requests, theirs):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _LIMIT)
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "tests.forked", str(theirs.fileno())],
                    pass_fds=[theirs.fileno()],
                    cwd=Path(__file__).parents[1],
                )
            atexit.register(self._end)
        return self._requests

    def _end(self) -> None:
        assert self._requests is not None
        assert self._process is not None
        self._requests.close()
        self._process.wait(60)


_STEM: Final = _Stem()


def serve(requests: socket.socket) -> None:
    """Fork a program for each request until the tests are gone."""
    mains = {module: _load(module, commands) for module, commands in PROGRAMS.items()}
    running: dict[int, socket.socket] = {}
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: it is for the tests
    woken, wake = socket.socketpair()
    for end in (woken, wake):
        end.setblocking(False)
    signal.set_wakeup_fd(wake.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        readable, _, _ = select.select([requests, woken], [], [])
        if woken in readable:
            woken.recv(4096)
            _tell_who_ended(running)
        if requests in readable:
            data, descriptors, _, _ = socket.recv_fds(requests, _LIMIT, 3)
            if not data:
                return
            telling = socket.socket(fileno=descriptors[0])
            pid = os.fork()
            if pid == 0:
                for one in (requests, woken, wake, telling, *running.values()):
                    one.detach()  # or its number would be closed when that is another file's
                _become(json.loads(data), mains, descriptors[1:])
            for descriptor in descriptors[1:]:
                os.close(descriptor)
            running[pid] = telling
            telling.send(_STATUS.pack(pid))


def _load(module: str, commands: Sequence[str]) -> Callable[[], int | None]:
    program = importlib.import_module(module)
    for command in program.PROGRAM.commands if commands else ():
        if command.name in commands:
            command.load()
    main: Callable[[], int | None] = program.main
    return main


def _tell_who_ended(running: dict[int, socket.socket]) -> None:
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        with running.pop(pid) as telling:
            try:
                telling.send(_STATUS.pack(os.waitstatus_to_exitcode(status)))
            except BrokenPipeError:
                continue  # nobody wants to know


def _become(
    request: dict[str, Any], mains: Mapping[str, Callable[[], int | None]], files: Sequence[int]
) -> NoReturn:
    """Run the program and end with its status, as an interpreter of its own would."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    given, written = files
    for number, descriptor in enumerate((given, written, written)):
        os.dup2(descriptor, number)
    os.closerange(3, 4096)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    sys.argv = [request["module"], *request["arguments"]]
    sys.exit(mains[request["module"]]())


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))

"""The child of a test process that has imported our programs, and forks one for each request.

`tests.forked` starts it and sends the requests.
"""

import atexit
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, Final, NoReturn, TypeAlias

from runtime.process.java import JavaMissing, java_command
from runtime.program.program import Program
from tests import forked

_DESCRIPTORS: Final = 4096
"""No process has more files open."""
Main: TypeAlias = Callable[[], int | None]
_loaded: set[tuple[str, str]] = set()


def serve(requests: socket.socket) -> None:
    """Fork a program for each request until the tests are gone."""
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
            data, descriptors, _, _ = socket.recv_fds(requests, forked.LIMIT, 5)
            if not data:
                return
            request = json.loads(data)
            main = load(request["module"], request["arguments"])
            telling = socket.socket(fileno=descriptors[0])
            pid = os.fork()
            if pid == 0:
                for one in (requests, woken, wake, telling, *running.values()):
                    one.detach()  # or its number would be closed when that is another file's
                _become(request, main, descriptors[1:])
            for descriptor in descriptors[1:]:
                os.close(descriptor)
            running[pid] = telling
            telling.send(forked.STATUS.pack(pid))


def load(module: str, arguments: Sequence[str]) -> Main:
    """Import a program and, as it imports what a command needs when that is typed, its command."""
    main = _main_of(module)
    for word in arguments:
        _load_command(module, word)
    return main


@cache
def _main_of(module: str) -> Main:
    main: Main = importlib.import_module(module).main
    program = _program_of(module)
    if program is not None:
        program.faults()  # each program that fails would import them for itself
    if module == "runtime.process.zookeeper_server":
        with suppress(JavaMissing):  # each program says so for itself
            java_command()  # asks each Java for its version
    _keep_what_is_loaded()
    return main


def _program_of(module: str) -> Program | None:
    program: Program | None = getattr(importlib.import_module(module), "PROGRAM", None)
    return program


def _load_command(module: str, word: str) -> None:
    program = _program_of(module)
    for command in program.commands if program is not None else ():
        if command.name == word and (module, word) not in _loaded:
            command.load()
            _loaded.add((module, word))
            if (module, word) == ("broker.cli", "up"):
                load(module, ["run"])
                load("runtime.process.zookeeper_server", [])
                vars(importlib.import_module("broker.up"))["open_broker"] = forked.open_broker
            _keep_what_is_loaded()


def _keep_what_is_loaded() -> None:
    """Leave modules to no garbage collector: each fork would copy what it marks."""
    gc.collect()
    gc.freeze()


def _tell_who_ended(running: dict[int, socket.socket]) -> None:
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        with running.pop(pid) as telling:
            try:
                telling.send(forked.STATUS.pack(os.waitstatus_to_exitcode(status)))
            except BrokenPipeError:
                continue  # nobody wants to know


def _become(request: dict[str, Any], main: Main, files: Sequence[int]) -> NoReturn:
    """Run the program and end with its status, as an interpreter of its own would."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    *standard, requests = files
    for number, descriptor in enumerate(standard):
        os.dup2(descriptor, number)
    os.closerange(3, requests)
    os.closerange(requests + 1, _DESCRIPTORS)
    forked.ask_at(requests)
    if request["has_session"]:
        os.setsid()
    os.nice(request["niceness"])
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    sys.argv = [request["module"], *request["arguments"]]
    _end(main())


def _end(status: int | None) -> NoReturn:
    """End as an interpreter does, but leave its objects to the kernel.

    To free one after the other all that the stem has imported takes as long as many a command.
    """
    for thread in threading.enumerate():
        if not thread.daemon and thread is not threading.current_thread():
            thread.join()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status or 0)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))

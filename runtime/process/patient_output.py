"""Lines for standard output that never hold up the work they tell of.

A pipe whose reader stands still takes no more than its buffer, and a write to it waits. A promotion
must not wait behind its fence until somebody scrolls. Lines are therefore written by a thread; at
the end they are waited for briefly, and dropped if nobody has read by then.
"""

import os
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from io import UnsupportedOperation
from typing import Final, Protocol, TextIO

import trio

from runtime.process.clock import monotonic_ms
from runtime.process.output import complain, escaped, is_terminal, print_nowhere
from wire.values import frozen

LAST_LINES_S: Final = 2.0
"""So long the last lines are waited for when the work is done."""
CLEAR_LINE: Final = "\r\x1b[2K"
MOST_BYTES: Final = 16 << 20
"""What waits unread at most; the oldest lines go first."""


class Telling(Protocol):
    """Prints lines; a terminal also shows what is being done, in a last line that passes."""

    def __call__(self, line: str) -> None:
        """Print a line."""

    def doing(self, what: str) -> None:
        """Show what is being done from now on, until the next line."""


@frozen(kw_only=False)
class TellingBy:
    """Tells by a function, and shows nothing that passes."""

    tell: Callable[[str], None]

    def __call__(self, line: str) -> None:
        self.tell(line)

    def doing(self, what: str) -> None:
        """Take no notice."""


@asynccontextmanager
async def printing_aside(
    program: str, otherwise: Callable[[str], None], stream: TextIO | None = None
) -> AsyncIterator[Telling]:
    """Give what prints a line, and returns at once whoever reads or does not.

    Names from outside in a line are escaped. Lines go to standard output unless another `stream`
    is given; where that is no file of the system, as in a test, `otherwise` prints.
    """
    stream = stream or sys.stdout
    try:
        descriptor = stream.fileno()
    except (UnsupportedOperation, ValueError):
        yield TellingBy(otherwise)
        return
    stream.flush()
    lines = _Lines(is_live=is_terminal(stream))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lines.write, program, descriptor)
        nursery.start_soon(lines.tick)
        try:
            yield lines
        finally:
            lines.doing("")
            with trio.move_on_after(LAST_LINES_S, shield=True):
                await lines.wait_written()
            nursery.cancel_scope.cancel()


class _Lines:
    """The lines that wait to be written, and what is being done meanwhile."""

    def __init__(self, *, is_live: bool) -> None:
        self._is_live = is_live
        self._doing = ""
        self._since_ms = 0
        self._is_passing = False
        """Whether the last line on the screen is to give way."""
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        self._more = trio.Event()
        self._written = trio.Event()
        self._written.set()

    def __call__(self, line: str) -> None:
        """Have a line written after those before it."""
        self._doing = ""
        self._put(f"{escaped(line)}\n")

    def doing(self, what: str) -> None:
        """Show on a terminal what is being done, and for how long already."""
        self._doing, self._since_ms = what, monotonic_ms()
        if self._is_live:
            self._show_doing()

    async def tick(self) -> None:
        """Show anew each second how long it takes; not while the terminal is held up."""
        while self._is_live:
            await trio.sleep(1)
            if self._doing and not self._waiting:
                self._show_doing()

    def _show_doing(self) -> None:
        seconds = (monotonic_ms() - self._since_ms) // 1000
        self._put(f"{escaped(self._doing):<13} ...     {seconds:4} s" if self._doing else "")
        self._is_passing = bool(self._doing)

    def _put(self, text: str) -> None:
        before, self._is_passing = CLEAR_LINE if self._is_passing else "", False
        data = f"{before}{text}".encode(errors="backslashreplace")
        self._waiting.append(data)
        self._bytes += len(data)
        while self._bytes > MOST_BYTES:
            self._bytes -= len(self._waiting.popleft())
        self._more.set()
        if self._written.is_set():
            self._written = trio.Event()

    async def wait_written(self) -> None:
        """Return when no line waits."""
        await self._written.wait()

    async def write(self, program: str, descriptor: int) -> None:
        """Write lines as they come, until standard output takes no more."""
        while True:
            await self._more.wait()
            self._more = trio.Event()
            while self._waiting:
                data = b"".join(self._waiting)
                self._waiting.clear()
                self._bytes = 0
                try:
                    await trio.to_thread.run_sync(
                        _write_all, descriptor, data, abandon_on_cancel=True
                    )
                except OSError as fault:
                    self._give_up(program, descriptor, fault)
                    return
            self._written.set()

    def _give_up(self, program: str, descriptor: int, fault: OSError) -> None:
        if descriptor == sys.stdout.fileno():
            print_nowhere()
        complain(program, f"nothing more can be shown ({fault.strerror}); the work goes on")
        self._written.set()


def _write_all(descriptor: int, data: bytes) -> None:
    """Write without the lock of sys.stdout, which the interpreter takes when it ends."""
    while data:
        data = data[os.write(descriptor, data) :]

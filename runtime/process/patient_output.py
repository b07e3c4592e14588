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
from typing import Final

import trio

from runtime.process.output import complain, escaped, print_nowhere

LAST_LINES_S: Final = 2.0
"""So long the last lines are waited for when the work is done."""
MOST_BYTES: Final = 16 << 20
"""What waits unread at most; the oldest lines go first."""


@asynccontextmanager
async def printing_aside(
    program: str, otherwise: Callable[[str], None]
) -> AsyncIterator[Callable[[str], None]]:
    """Give a function that prints a line, and returns at once whoever reads or does not.

    Names from outside in a line are escaped. Where standard output is no file of the system, as in
    a test, `otherwise` prints.
    """
    try:
        descriptor = sys.stdout.fileno()
    except (UnsupportedOperation, ValueError):
        yield otherwise
        return
    sys.stdout.flush()
    lines = _Lines()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lines.write, program, descriptor)
        try:
            yield lines.put
        finally:
            with trio.move_on_after(LAST_LINES_S, shield=True):
                await lines.wait_written()
            nursery.cancel_scope.cancel()


class _Lines:
    """The lines that wait to be written."""

    def __init__(self) -> None:
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        self._more = trio.Event()
        self._written = trio.Event()
        self._written.set()

    def put(self, line: str) -> None:
        """Have a line written after those before it."""
        data = f"{escaped(line)}\n".encode(errors="backslashreplace")
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
                    self._give_up(program, fault)
                    return
            self._written.set()

    def _give_up(self, program: str, fault: OSError) -> None:
        print_nowhere()
        complain(program, f"nothing more can be shown ({fault.strerror}); the work goes on")
        self._written.set()


def _write_all(descriptor: int, data: bytes) -> None:
    """Write without the lock of sys.stdout, which the interpreter takes when it ends."""
    while data:
        data = data[os.write(descriptor, data) :]

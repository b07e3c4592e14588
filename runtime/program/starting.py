"""The first moments of a process, in which it imports what it needs: so this imports little."""

import gc
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager


def hold_hangups() -> None:
    """Keep a SIGHUP until `take_held_hangups` of `signals`; unheld it would end the process."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})


@contextmanager
def interrupts_just_end() -> Iterator[None]:
    """At a Ctrl-C within the block the process just ends.

    Python would raise KeyboardInterrupt, perhaps where it is ignored, as in what an import lock
    calls back.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:  # ignored, in the background of a shell
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def nothing_is_garbage() -> Iterator[None]:
    """Have Python look for no garbage within the block, where all that is made is to stay.

    Its looks take 4 % of the time in which a command is imported.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def unwind_at_signals() -> None:
    """Have SIGINT and SIGTERM raise SystemExit with 130 and 143, so that every `finally` runs."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: sys.exit(128 + number))

"""What every command shares: lines at once, and an end at a signal."""

import signal
import sys
from collections.abc import Awaitable, Callable

import trio

from runtime.process.output import complain, print_line
from runtime.process.signals import cancel_on_signal
from runtime.process.tasks import background_tasks
from runtime.program.command import Options
from runtime.program.program import ExitStatus
from runtime.set_option import set_option


def show(line: str) -> None:
    """Print one line at once, so that a promotion can be watched through a pipe."""
    print_line(line)
    sys.stdout.flush()


async def stop_at_signals(act: Callable[[Options], Awaitable[int]], options: Options) -> int:
    """Run a command until it ends or SIGINT or SIGTERM stops it; return the exit status.

    A terminal that goes away ends no promotion: a site would stay closed with nobody at work.
    """
    if options.command.name in {"promote", "abort", "rehearse"}:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with trio.CancelScope() as scope:
        async with background_tasks() as tasks:
            await tasks.start(cancel_on_signal, scope)
            return await act(options)
    name = options.command.name
    if name == "serve":
        return ExitStatus.DONE
    is_noted = name in {"promote", "abort"} and not options.is_asking
    of_set = set_option(_set_to_abort(options)) if is_noted else ""
    go_on = f"; run the same command again to go on, or `failover abort{of_set}`"
    if name == "rehearse":
        complain("failover", "stopped; the next rehearsal takes the set back first")
    else:
        complain("failover", f"stopped{go_on if is_noted else ''}")
    return ExitStatus.FAILED


def _set_to_abort(options: Options) -> str | None:
    """Return the set whose promotion was stopped; NAME where the command moves several."""
    configuration = options.configuration
    named: str | None = configuration.topic_set or options.set
    return named if named is not None or not configuration.sets.named else "NAME"

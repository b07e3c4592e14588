"""SIGINT and SIGTERM end a program through its cancel scope, so that every `finally` runs.

Python raises KeyboardInterrupt wherever the program happens to be, and code there may swallow it.
A program that Ctrl-C is to end therefore listens for the signal. With which exit status, its
caller says.

A SIGHUP that a daemon has held back while it started comes when it is asked for.
"""

import logging
import signal

import trio

_LOG = logging.getLogger(__name__)


async def cancel_on_signal(
    cancel_scope: trio.CancelScope,
    *,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Cancel the scope at the first SIGINT or SIGTERM."""
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        task_status.started()
        async for number in signals:
            _LOG.info("%s received, stopping", signal.Signals(number).name)
            cancel_scope.cancel()
            return


def take_held_hangups() -> None:
    """Let those come that were held back: from now on somebody listens."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})

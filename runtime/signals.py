"""SIGINT and SIGTERM end a program through its cancel scope, so that every `finally` runs."""

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

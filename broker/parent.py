"""A child that does not outlive its parent: the parent holds a pipe, the child watches its end."""

import logging
import sys

import trio

_LOG = logging.getLogger(__name__)


async def cancel_without_parent(scope: trio.CancelScope) -> None:
    """Cancel when standard input ends: the parent that held the other end is gone, however."""
    async with trio.lowlevel.FdStream(sys.stdin.fileno()) as pipe:
        async for _ in pipe:
            continue
    _LOG.info("the parent process is gone, stopping")
    scope.cancel()

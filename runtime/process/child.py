"""Child processes that end with their parent, even when the parent is killed by SIGKILL."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from typing import IO, Final

import trio

# Linux's own parent-death signal cannot be used: it fires when the thread that forked ends, and
# trio forks in worker threads. A child cannot be trusted to watch a pipe (Java does not), so a
# shell beside it does: when the pipe's writer is gone, for whatever reason, the child gets a
# SIGTERM, and is woken to take it in case it is stopped. Both are in one process group, and a
# process id is not given out again while it names a group, so `$$`, the child that the shell has
# become, cannot be a stranger.
ENDS_WITH_ITS_PARENT: Final = (
    'exec 3<&0; (cat <&3 >/dev/null; kill "$$"; kill -CONT "$$") 2>/dev/null &'
    ' exec "$@" 3<&- </dev/null'
)


async def open_child(
    command: Sequence[str],
    *,
    output: IO[bytes] | None = None,
    errors: IO[bytes] | None = None,
    environment: Mapping[str, str] | None = None,
) -> trio.Process:
    """Start a command in a process group of its own; its `pid` is the command's.

    `output` and `errors` take its standard streams (`errors` alone goes where `output` goes);
    without them they are the parent's, as the environment is.
    """
    return await trio.lowlevel.open_process(
        ["/bin/sh", "-c", ENDS_WITH_ITS_PARENT, command[0], *command],
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=errors or output,
        start_new_session=True,
        env=environment,
    )


async def end_child(process: trio.Process, *, patience_s: float) -> None:
    """Ask the child to end and wait; after `patience_s` its whole group is killed."""
    assert process.stdin is not None, "the child was started by open_child"
    with trio.CancelScope(shield=True):
        await process.stdin.aclose()
        with trio.move_on_after(patience_s) as patience:
            await process.wait()
        if patience.cancelled_caught:
            kill_child(process)
            await process.wait()


def kill_child(process: trio.Process) -> None:
    """Kill the child and all of its process group with SIGKILL; nothing when it is gone."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return

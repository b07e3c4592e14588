"""Child processes that end with their parent."""

import os
import signal
from pathlib import Path

import trio

from runtime.process.child import open_child


async def test_a_child_that_is_stopped_ends_with_its_parent() -> None:
    process = await open_child(["sleep", "1000"])
    assert process.stdin is not None
    with trio.fail_after(60):
        while Path(f"/proc/{process.pid}/comm").read_text() != "sleep\n":  # noqa: ASYNC110
            await trio.sleep(0.01)
        os.kill(process.pid, signal.SIGSTOP)
        await process.stdin.aclose()  # as when the parent is gone
        await process.wait()
    assert process.returncode == -signal.SIGTERM

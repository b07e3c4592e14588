"""What a drill knows of the processes that it starts and ends."""

import signal
import sys
from pathlib import Path

import trio

from tests.drill.cluster import Cluster, Process
from tests.drill.links import Links


async def test_only_a_process_that_nobody_ended_has_died(tmp_path: Path) -> None:
    cluster = Cluster(folder=tmp_path, links=Links())
    waits = [sys.executable, "-c", "input()"]
    cluster.processes["p"] = process = Process(name="p", command=waits, log=tmp_path / "log")
    cluster.start("p")
    assert cluster.died() == []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(cluster.stop, "p", signal.SIGKILL)
        assert process.child is not None
        await trio.to_thread.run_sync(process.child.wait)
        assert cluster.died() == [], "it is just being ended"
    cluster.start("p")
    process.child.kill()
    process.child.wait()
    assert cluster.died() == ["p"]
    await cluster.stop("p", signal.SIGKILL)
    assert cluster.died() == []

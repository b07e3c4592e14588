"""A mirror on one processor."""

import os
import subprocess
import sys
from pathlib import Path

import trio

from tests.bench.measure.racers import children_on, last_core
from tests.bench.measure.workloads import BASE
from tests.bench.stage.relay import relaying

ASK = "import os; print(*os.sched_getaffinity(0))"


def test_a_child_stays_on_its_processor_and_the_parent_does_not() -> None:
    before = os.sched_getaffinity(0)
    [core] = last_core()
    with children_on([core]):
        child = subprocess.Popen([sys.executable, "-c", ASK], stdout=subprocess.PIPE, text=True)
    assert os.sched_getaffinity(0) == before
    told, _ = child.communicate()
    assert told.split() == [str(core)]


async def test_a_fed_relay_has_one_processor_and_what_starts_beside_it_all(tmp_path: Path) -> None:
    before = os.sched_getaffinity(0)
    with trio.fail_after(60):
        async with relaying(tmp_path, BASE) as entrant:
            try:
                await entrant.come_up()
                its_own = os.sched_getaffinity(entrant.racer.pid)
                beside = await trio.run_process([sys.executable, "-c", ASK], capture_stdout=True)
                threads = await trio.to_thread.run_sync(os.sched_getaffinity, 0)
            finally:
                entrant.racer.kill()
    assert its_own == last_core()
    assert {int(core) for core in beside.stdout.split()} == before == threads

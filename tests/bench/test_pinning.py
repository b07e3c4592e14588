"""A mirror on one processor."""

import os
import subprocess
import sys

from tests.bench.pinning import children_on, last_core

ASK = "import os; print(*os.sched_getaffinity(0))"


def test_a_child_stays_on_its_processor_and_the_parent_does_not() -> None:
    before = os.sched_getaffinity(0)
    [core] = last_core()
    with children_on([core]):
        child = subprocess.Popen([sys.executable, "-c", ASK], stdout=subprocess.PIPE, text=True)
    assert os.sched_getaffinity(0) == before
    told, _ = child.communicate()
    assert told.split() == [str(core)]

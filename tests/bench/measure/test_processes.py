"""What the kernel says of a process."""

import os
import subprocess
import sys
from time import process_time

import pytest

from tests.bench.measure.processes import (
    ProcessGone,
    cpu_and_memory,
    resident_bytes,
    user_and_kernel,
)

LINE = (
    "4242 (a (b) c) S 1 4242 4242 0 -1 4194304 900 0 0 0 123 45 6 7 20 0 8 0 100 "
    "99999999 2500 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0"
)


def test_a_name_may_hold_brackets_and_blanks() -> None:
    assert resident_bytes(LINE, page_bytes=4096) == 2500 * 4096


def test_this_process_uses_memory() -> None:
    before = process_time()
    cpu_s, resident = cpu_and_memory(os.getpid())
    assert before <= cpu_s <= process_time()
    assert resident > 1_000_000
    assert sum(user_and_kernel(os.getpid())) > 0


def test_a_process_that_ended_is_gone_even_before_anyone_waited_for_it() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.read()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    with pytest.raises(ProcessGone, match=f"process {process.pid} has ended"):
        cpu_and_memory(process.pid)
    process.communicate()
    with pytest.raises(ProcessGone, match=f"process {process.pid} is gone"):
        cpu_and_memory(process.pid)

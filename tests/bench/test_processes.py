"""What the kernel says of a process."""

import os
import subprocess
import sys

import pytest

from tests.bench.processes import ProcessGone, cpu_and_memory, parse_stat, user_and_kernel

LINE = (
    "4242 (a (b) c) S 1 4242 4242 0 -1 4194304 900 0 0 0 123 45 6 7 20 0 8 0 100 "
    "99999999 2500 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0"
)


def test_a_name_may_hold_brackets_and_blanks() -> None:
    assert parse_stat(LINE, ticks_per_s=100, page_bytes=4096) == (1.68, 2500 * 4096)


def test_this_process_uses_memory() -> None:
    cpu_s, resident = cpu_and_memory(os.getpid())
    assert cpu_s > 0
    # Both count whole ticks; their sum is the same number up to the last bit of a float.
    assert sum(user_and_kernel(os.getpid())) >= cpu_s - 1e-6
    assert resident > 1_000_000


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

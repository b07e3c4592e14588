"""What the kernel says of a process."""

import os
import subprocess
import sys
from time import process_time

import pytest

from tests.bench.measure.processes import (
    ProcessGone,
    begin_peak,
    cpu_and_memory,
    most_resident_bytes,
    peak_bytes,
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


def test_the_peak_is_read_in_kibibytes() -> None:
    assert most_resident_bytes("Name:\tpython\nVmHWM:\t  2048 kB\nVmRSS:\t 1 kB\n") == 2 * 1024**2


def test_a_peak_counts_from_where_it_was_begun_anew() -> None:
    large = bytearray(b"x") * (32 << 20)
    before = peak_bytes(os.getpid())
    assert before > len(large)
    del large
    begin_peak(os.getpid())
    assert peak_bytes(os.getpid()) < before - (16 << 20)


def test_a_process_that_ended_is_gone_even_before_anyone_waited_for_it() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.read()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    with pytest.raises(ProcessGone, match=f"process {process.pid} has ended"):
        cpu_and_memory(process.pid)
    with pytest.raises(ProcessGone):
        peak_bytes(process.pid)
    process.communicate()
    with pytest.raises(ProcessGone, match=f"process {process.pid} is gone"):
        cpu_and_memory(process.pid)

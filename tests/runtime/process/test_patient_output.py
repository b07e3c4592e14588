"""Lines whose reader stands still hold nothing up."""

import fcntl
import os
import pty
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import trio

from runtime.process import patient_output
from runtime.process.patient_output import printing_aside
from tests.terminals import shown_by

PIPE_BYTES = 4_096


def never(_: str) -> None:
    pytest.fail("the descriptor is there")


@contextmanager
def piped(monkeypatch: pytest.MonkeyPatch, *, is_full: bool = False) -> Iterator[int]:
    """Have a pipe for standard output; give the end to read from.

    Not a fixture: pytest sets standard output anew before it calls a test.
    """
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    if is_full:
        os.write(writing, b"." * PIPE_BYTES)
    with os.fdopen(writing, "w") as output, os.fdopen(reading, "rb"):
        monkeypatch.setattr(sys, "stdout", output)
        yield reading


async def test_work_ends_although_nobody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patient_output, "LAST_LINES_S", 0.1)
    with trio.fail_after(5), piped(monkeypatch, is_full=True):
        async with printing_aside("failover", never) as tell:
            for number in range(1_000):
                tell(f"line {number}")


async def test_a_reader_that_comes_late_gets_every_line_in_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read = b""
    with trio.fail_after(5), piped(monkeypatch, is_full=True) as reading:
        async with printing_aside("failover", never) as tell:
            for number in range(1_000):
                tell(f"line {number}")
            while b"line 999\n" not in read:
                read += await trio.to_thread.run_sync(
                    os.read, reading, 65_536, abandon_on_cancel=True
                )
    lines = read.lstrip(b".").decode().splitlines()
    assert lines == [f"line {number}" for number in range(1_000)]


async def test_a_name_from_outside_forges_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with piped(monkeypatch) as reading:
        async with printing_aside("failover", never) as tell:
            tell("  group    x\ndc2 is active (epoch 99)\x1b[2J")
        shown = os.read(reading, 1_000)
    assert shown == b"  group    x\\ndc2 is active (epoch 99)\\x1b[2J\n"


async def test_a_full_disk_is_said_once_and_the_work_goes_on(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with os.fdopen(os.open("/dev/full", os.O_WRONLY), "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        async with printing_aside("failover", never) as tell:
            tell("one")
            await trio.sleep(0.1)
            tell("two")
    assert capfd.readouterr().err.count("nothing more can be shown") == 1


async def test_a_terminal_shows_what_is_done_until_the_next_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as output:
        monkeypatch.setattr(sys, "stdout", output)
        with trio.fail_after(5):
            async with printing_aside("failover", never) as tell:
                tell.doing("drain")
                tell("drain done")
                tell.doing("seal")
    drain, seal = (f"{step:<13} ...        0 s" for step in ("drain", "seal"))
    assert shown_by(ours) == f"{drain}\r\x1b[2Kdrain done\n{seal}\r\x1b[2K"

"""What is held of free memory follows what the others use, and leaves them what is theirs."""

import mmap
import os
import signal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from tests.bench.hoard import (
    HOLDS,
    LEAST_FREE_MB,
    PIECE_MB,
    SLACK_MB,
    change,
    left_free_mb,
    pieces_wanted,
    running_hoard,
)
from tests.interop.peers import PeerFailed

LEFT_MB = 1500


@given(some.integers(0, 1000), some.integers(0, 100_000))
def test_one_look_is_enough_to_leave_what_is_to_be_left(held: int, free_mb: int) -> None:
    wanted = pieces_wanted(held, free_mb, LEFT_MB)
    free_then_mb = free_mb + (held - wanted) * PIECE_MB
    assert wanted == 0 or free_then_mb >= LEFT_MB
    assert free_then_mb <= LEFT_MB + SLACK_MB
    assert pieces_wanted(wanted, free_then_mb, LEFT_MB) == wanted, "nothing comes and goes"


@given(some.integers(0, 1000), some.integers(0, 100_000))
def test_only_what_the_others_lack_is_let_go(held: int, free_mb: int) -> None:
    wanted = pieces_wanted(held, free_mb, LEFT_MB)
    if free_mb >= LEFT_MB:
        assert wanted >= held
    else:
        assert held - wanted <= -((free_mb - LEFT_MB) // PIECE_MB)


def test_a_machine_with_far_more_memory_keeps_the_rest_free() -> None:
    assert left_free_mb(free_mb=250_000, most_mb=22_000) == 228_000
    assert left_free_mb(free_mb=23_000, most_mb=22_000) == LEAST_FREE_MB


def test_pieces_are_taken_and_given_back() -> None:
    pieces: list[mmap.mmap] = []
    before = _resident_mb()
    change(pieces, 2)
    assert _resident_mb() - before >= PIECE_MB * 2 - 1
    change(pieces, 0)
    assert not pieces
    assert _resident_mb() - before < PIECE_MB


def test_a_holder_takes_when_asked_and_a_dead_one_is_told_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with running_hoard(tmp_path, most_mb=0) as hoard:
        hoard.take()
        assert hoard.child.said().count(HOLDS) == 2
        assert hoard.told == "free memory held"
        os.kill(hoard.child.pid, signal.SIGKILL)
        hoard.take()
        hoard.take()
        assert hoard.told == "free memory held at first"
    assert capsys.readouterr().out.count("from now on free memory is not held: hoard ended") == 1


def test_a_holder_that_cannot_start_is_named(tmp_path: Path) -> None:
    with (
        pytest.raises(PeerFailed, match="hoard ended with status 1"),
        running_hoard(tmp_path, most_mb="much"),  # type: ignore[arg-type]
    ):
        raise AssertionError


def _resident_mb() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE // 2**20

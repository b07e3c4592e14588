"""Processes that take turns: real ones, which count as fast as they are let."""

import mmap
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import monotonic

import pytest

from tests.bench.measure import turns
from tests.bench.measure.ledger import RunFailed
from tests.bench.measure.turns import START_SHARE, TURN_SHARE, Entrant, take_turns
from tests.interop.peers.child import Child, start_child

RECORDS = 60_000
COUNT = """
import mmap, sys, time
with open(sys.argv[1], "r+b") as file, mmap.mmap(file.fileno(), 8) as shared:
    time.sleep(float(sys.argv[4]))
    count, each = 0, int(sys.argv[2])
    while count < int(sys.argv[3]):
        time.sleep(0.001)
        count += each
        shared[:8] = count.to_bytes(8, "little")
"""


class Counter:
    """A racer: `each` records a millisecond, until it has moved `most` and ends by itself.

    It begins `pause_s` after its start.
    """

    def __init__(self, file: Path, each: int, most: int = 10**9, pause_s: float = 0.0) -> None:
        self.file, self.arguments = file, [str(each), str(most), str(pause_s)]
        self.child: Child | None = None
        self.left_at: list[float] = []
        file.write_bytes(bytes(8))
        with file.open("r+b") as opened:
            self.shared = mmap.mmap(opened.fileno(), 8)

    @property
    def pid(self) -> int:
        assert self.child is not None
        return self.child.pid

    @property
    def log(self) -> str:
        return "its last words"

    def start(self) -> None:
        command = [sys.executable, "-c", COUNT, str(self.file), *self.arguments]
        self.child = start_child(self.file.name, command, log=self.file.with_suffix(".log"))

    def kill(self) -> None:
        assert self.child is not None
        self.child.kill()

    @property
    def moved(self) -> int:
        return int.from_bytes(self.shared[:8], "little")


def entrant(racer: Counter, look: Callable[[], Awaitable[None]] | None = None) -> Entrant:
    async def moved() -> int:
        if look is not None:
            await look()
        return racer.moved

    async def leave() -> None:
        racer.left_at.append(monotonic())

    return Entrant(system=racer.file.name, racer=racer, records=RECORDS, moved=moved, leave=leave)


async def test_one_works_while_the_others_stand_still(tmp_path: Path) -> None:
    racers = [Counter(tmp_path / name, each) for name, each in (("slow", 20), ("fast", 60))]
    entrants = [entrant(racer) for racer in racers]
    await take_turns(entrants)
    for each in entrants:
        assert each.fault is None
        assert each.turns[0][0].records >= RECORDS * START_SHARE
        assert each.turns[-1][-1].records >= RECORDS
        assert each.turns[-1][0].records < RECORDS, "nobody has a turn with nothing to do"
        assert each.peak_resident_bytes > 0
    slow, fast = entrants
    [slow_left_at], [fast_left_at] = (racer.left_at for racer in racers)
    assert fast_left_at < slow.turns[-1][-1].at_s < slow_left_at, "who is done makes room"
    assert len(slow.turns) <= 1 / TURN_SHARE
    for mine, theirs in ((slow, fast), (fast, slow)):
        spans = [(turn[0].at_s, turn[-1].at_s) for turn in mine.turns]
        others = [(turn[0].at_s, turn[-1].at_s) for turn in theirs.turns]
        assert not any(a < d and c < b for a, b in spans for c, d in others)
        for before, after in zip(mine.turns, mine.turns[1:], strict=False):
            idle = after[0].records - before[-1].records
            assert idle < RECORDS * TURN_SHARE / 2
    assert slow.turns[0][0].at_s < fast.turns[0][0].at_s
    assert slow.turns[1][0].at_s > fast.turns[1][0].at_s, "whoever is the first changes"


async def test_who_has_started_hardly_moves_until_the_last_one_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "AWAY_S", 0.2)
    first = Counter(tmp_path / "first", 20)
    last = Counter(tmp_path / "last", 200, pause_s=1.5)
    entrants = [entrant(first), entrant(last)]
    await take_turns(entrants, shift=2)
    moved = entrants[0].turns[0][0].records
    assert RECORDS * START_SHARE < moved < RECORDS * START_SHARE * 10, "else twenty times"


async def test_who_ends_by_itself_leaves_and_the_rest_goes_on(tmp_path: Path) -> None:
    soon = Counter(tmp_path / "soon", 20, most=RECORDS // 100)
    late = Counter(tmp_path / "late", 20, most=RECORDS // 3)
    stays = Counter(tmp_path / "stays", 20)
    entrants = [entrant(racer) for racer in (soon, late, stays)]
    await take_turns(entrants)
    assert [type(each.fault) for each in entrants] == [RunFailed, RunFailed, type(None)]
    assert "its last words" in str(entrants[0].fault)
    assert [each.log for each in entrants] == ["its last words", "its last words", ""]
    assert [len(racer.left_at) for racer in (soon, late, stays)] == [1, 1, 1]
    assert entrants[2].turns[-1][-1].records >= RECORDS


async def test_who_does_not_get_on_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "LIMIT_S", 1.0)
    monkeypatch.setattr(turns, "TURN_S", 0.3)
    stuck, stays = Counter(tmp_path / "stuck", 3), Counter(tmp_path / "stays", 200)
    entrants = [entrant(stuck), entrant(stays)]
    await take_turns(entrants)
    assert "records in turns of 1.0 s together" in str(entrants[0].fault)
    assert entrants[1].fault is None


async def test_who_is_not_done_when_the_time_is_over_has_that_as_its_fault(
    tmp_path: Path,
) -> None:
    done, slow = Counter(tmp_path / "done", 1000), Counter(tmp_path / "slow", 2)
    last = Counter(tmp_path / "last", 1000, pause_s=60.0)
    entrants = [entrant(racer) for racer in (done, slow)]
    await take_turns(entrants, limit_s=5.0)
    assert entrants[0].fault is None
    assert f"of {RECORDS} records when the time of this part was over" in str(entrants[1].fault)
    entrants = [entrant(last)]
    await take_turns(entrants, limit_s=1.0)
    assert str(entrants[0].fault).startswith(f"0 of {RECORDS} records when")
    for racer in (done, slow, last):
        with pytest.raises(ProcessLookupError):
            os.kill(racer.pid, 0)


async def test_nobody_is_left_behind_a_bug(tmp_path: Path) -> None:
    async def bug() -> None:
        raise ZeroDivisionError

    racers = [Counter(tmp_path / name, 20) for name in ("good", "bad")]
    with pytest.RaisesGroup(ZeroDivisionError):
        await take_turns([entrant(racers[0]), entrant(racers[1], bug)])
    for racer in racers:
        with pytest.raises(ProcessLookupError):
            os.kill(racer.pid, 0)

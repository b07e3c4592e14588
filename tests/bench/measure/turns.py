"""Systems that mirror the same topic by turns until all is moved: what each costs, start to end.

A machine is slower at one time than at another. Two systems that are measured one after the other
meet different times; by turns of a second both meet the same. A system that waits for its turn is
stopped (SIGSTOP): for less than half of the 6 s after which ours would be taken for dead, and
MirrorMaker's worker of the 10 s.

All of it counts, from the first instruction to the last record. Java compiles for a long time:
MirrorMaker at its defaults took 7.6 6.9 5.6 4.5 4.8 4.6 CPU-s/GiB in turns of a second behind the
first 0.5 GiB, and whoever looks at some of them sees where the looks fell. Whole runs of 2 GiB took
13.1 12.4 12.2 (lz4) and 13.5 12.4 12.7 (100 KiB), a start each.
"""

import math
import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Final

import trio

from tests.bench.measure.figures import Sample
from tests.bench.measure.ledger import RunFailed, expected_faults
from tests.bench.measure.processes import ProcessGone, cpu_and_memory
from tests.bench.measure.racers import Racer
from tests.bench.measure.rounds import rotated

LOOK_S: Final = 0.02
START_SHARE: Final = 0.02
"""Of the records: who has moved them has started, and waits for its turns."""
TURN_S: Final = 1.0
"""With 2 s ours was away for 5 s between two turns, and its witness took it for dead."""
TURN_SHARE: Final = 0.1
"""Of the records, at most, in a turn."""
AWAY_S: Final = 1.0
AWAKE_S: Final = 0.05
"""Who has started before the others is stopped for so long and runs for so long, in between."""
LIMIT_S: Final = 300
"""For starting, and for all turns of one system together."""


@dataclass(slots=True, kw_only=True)
class Entrant:
    """One system of those that take turns, and what became of it."""

    system: str
    racer: Racer
    records: int
    """How many there are to be moved."""
    moved: Callable[[], Awaitable[int]]
    leave: Callable[[], Awaitable[None]]
    """Frees what it took, behind its last turn."""
    turns: list[list[Sample]] = field(default_factory=list)
    come_to: int = 0
    """How many it had moved when it was looked at last."""
    peak_resident_bytes: int = 0
    fault: Exception | None = None
    """Why it left: one of `ledger.FAULTS`."""
    log: str = ""
    """What it had said by then."""

    @property
    def is_going_on(self) -> bool:
        """Whether it has a turn to take."""
        is_done = bool(self.turns) and self.turns[-1][-1].records >= self.records
        return self.fault is None and not is_done

    async def look(self) -> Sample:
        """Return where it is. Raises RunFailed when it is gone."""
        self.come_to = await self.moved()
        try:
            cpu_s, resident = cpu_and_memory(self.racer.pid)
        except ProcessGone as gone:
            words = self.racer.log.splitlines() or ["nothing"]
            raise RunFailed(f"the mirror ended by itself; it last said: {words[-1]}") from gone
        self.peak_resident_bytes = max(self.peak_resident_bytes, resident)
        return Sample(at_s=monotonic(), records=self.come_to, cpu_s=cpu_s, resident_bytes=resident)

    async def come_up(self) -> None:
        """Start, move the first records, and stop. Raises one of `ledger.FAULTS`."""
        await trio.to_thread.run_sync(self.racer.start)
        with trio.move_on_after(LIMIT_S):
            while self.come_to < self.records * START_SHARE:
                await trio.sleep(LOOK_S)
                await self.look()
            self.halt()
            return
        raise self.failure(f"within {LIMIT_S} s")

    async def take_turn(self) -> None:
        """Work for a moment, looked at all the while. Raises one of `ledger.FAULTS`."""
        if sum(turn[-1].at_s - turn[0].at_s for turn in self.turns) > LIMIT_S:
            raise self.failure(f"in turns of {LIMIT_S} s together")
        self.go_on()
        try:
            looks = [await self.look()]
            self.turns.append(looks)
            enough = min(self.records, looks[0].records + self.records * TURN_SHARE)
            while looks[-1].records < enough and looks[-1].at_s - looks[0].at_s < TURN_S:
                await trio.sleep(LOOK_S)
                looks.append(await self.look())
        finally:
            self.halt()

    def fail(self, fault: Exception) -> None:
        """Leave, for one of `ledger.FAULTS`."""
        self.fault, self.log = fault, self.racer.log

    def failure(self, when: str) -> RunFailed:
        """Return that it had not moved everything by then."""
        return RunFailed(f"{self.come_to} of {self.records} records {when}")

    def go_on(self) -> None:
        self._signal(signal.SIGCONT)

    def halt(self) -> None:
        self._signal(signal.SIGSTOP)

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):  # it is gone, which the next look finds
            os.kill(self.racer.pid, number)


async def take_turns(
    entrants: Sequence[Entrant], shift: int = 0, limit_s: float = math.inf
) -> None:
    """Start all and let them take turns; who is done leaves, and who fails, with its fault.

    `shift` says who is the first. Who is not done after `limit_s` has that as its fault. All are
    gone afterwards.
    """
    try:
        with trio.move_on_after(max(0.0, limit_s)):
            await _start(rotated(entrants, shift))
            await _until_all_are_done(entrants, shift)
        for entrant in entrants:
            if entrant.is_going_on:
                entrant.fail(entrant.failure("when the time of this part was over"))
    finally:
        for entrant in entrants:
            entrant.racer.kill()


async def _until_all_are_done(entrants: Sequence[Entrant], shift: int) -> None:
    turn = shift
    while going_on := [entrant for entrant in entrants if entrant.is_going_on]:
        for entrant in rotated(going_on, turn):
            await _unless_it_fails(entrant, entrant.take_turn)
            if not entrant.is_going_on:
                await _leave(entrant, [each for each in entrants if each.is_going_on])
        turn += 1


async def _start(entrants: Sequence[Entrant]) -> None:
    """Return when each has started and was stopped, one after the other, or has left."""
    async with trio.open_nursery() as waiting:
        for entrant in entrants:
            await _unless_it_fails(entrant, entrant.come_up)
            if entrant.is_going_on:
                waiting.start_soon(_keep_alive, entrant)
            else:
                await _leave(entrant, [])
        waiting.cancel_scope.cancel()


async def _keep_alive(entrant: Entrant) -> None:
    """Let it answer its brokers now and then."""
    while True:
        await trio.sleep(AWAY_S)
        entrant.go_on()
        with trio.CancelScope(shield=True):
            await trio.sleep(AWAKE_S)
        entrant.halt()


async def _unless_it_fails(entrant: Entrant, do: Callable[[], Awaitable[None]]) -> None:
    with expected_faults(entrant.fail):
        await do()


async def _leave(entrant: Entrant, waiting: Sequence[Entrant]) -> None:
    """End it, and free what it took, which takes seconds, before anybody else has a turn."""
    entrant.racer.kill()
    async with trio.open_nursery() as nursery:
        for other in waiting:
            nursery.start_soon(_keep_alive, other)
        await entrant.leave()
        nursery.cancel_scope.cancel()

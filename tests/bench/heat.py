"""Systems that mirror the same topic by turns, a second each: what each costs while it works.

On a rented machine neighbours come and go within seconds or within hours, and slow everybody down.
Of two systems measured one after the other each meets its own neighbours; by turns they meet the
same, and a ratio of theirs moves far less than what either takes (processor time to tuned
MirrorMaker: 7.5 to 8.1 in six heats, 6.6 to 8.5 in the noisiest hour). Who has not its turn is
stopped (SIGSTOP): for less than half of the 10 s after which MirrorMaker's worker would be taken
for dead.
"""

import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Final

import trio

from tests.bench.figures import Sample
from tests.bench.ledger import FAULTS, RunFailed
from tests.bench.processes import ProcessGone, cpu_and_memory
from tests.bench.racers import Racer
from tests.bench.workloads import rotated

LOOK_S: Final = 0.02
WARM_FROM: Final = 0.25
"""The share of the records that each moves before anybody is measured: what comes before is
connections, topic creation, and Java compiling what it sees often."""
TURNS: Final = 6
TURN_S: Final = 1.0
TURN_SHARE: Final = 0.1
"""Of the records, at most, in a turn: the fastest must have some left for its last one."""
AWAY_S: Final = 2.0
AWAKE_S: Final = 0.03
"""Who is warm before the others is stopped for so long and runs for so long, in between."""
LIMIT_S: Final = 300


@dataclass(slots=True, kw_only=True)
class Entrant:
    """One system in a heat, and what became of it."""

    system: str
    racer: Racer
    records: int
    """How many there are to be moved."""
    moved: Callable[[], Awaitable[int]]
    turns: list[list[Sample]] = field(default_factory=list)
    peak_resident_bytes: int = 0
    fault: Exception | None = None
    """Why it left: one of `ledger.FAULTS`."""

    async def look(self) -> Sample:
        """Return where it is. Raises RunFailed when it is gone."""
        moved = await self.moved()
        try:
            cpu_s, resident = cpu_and_memory(self.racer.pid)
        except ProcessGone as gone:
            words = self.racer.log.splitlines() or ["nothing"]
            raise RunFailed(f"the mirror ended by itself; it last said: {words[-1]}") from gone
        self.peak_resident_bytes = max(self.peak_resident_bytes, resident)
        return Sample(at_s=monotonic(), records=moved, cpu_s=cpu_s, resident_bytes=resident)

    async def come_up(self) -> None:
        """Start, move the first records, and stop. Raises one of `ledger.FAULTS`."""
        await trio.to_thread.run_sync(self.racer.start)
        moved = 0
        with trio.move_on_after(LIMIT_S):
            while moved < self.records * WARM_FROM:
                await trio.sleep(LOOK_S)
                moved = (await self.look()).records
            self.halt()
            return
        raise RunFailed(f"{moved} of {self.records} records within {LIMIT_S} s")

    async def take_turn(self) -> None:
        """Work for a moment, looked at all the while. Raises one of `ledger.FAULTS`."""
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

    def go_on(self) -> None:
        self._signal(signal.SIGCONT)

    def halt(self) -> None:
        self._signal(signal.SIGSTOP)

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):  # it is gone, which the next look finds
            os.kill(self.racer.pid, number)


async def run_heat(entrants: Sequence[Entrant], shift: int = 0) -> None:
    """Start all, let them take turns, and end them; who fails leaves, with its fault.

    `shift` says who is the first. All are gone afterwards.
    """
    try:
        await _warm_up(entrants)
        for turn in range(TURNS):
            for entrant in rotated(entrants, turn + shift):
                await _unless_it_fails(entrant, entrant.take_turn)
    finally:
        for entrant in entrants:
            entrant.racer.kill()


async def _warm_up(entrants: Sequence[Entrant]) -> None:
    """Return when each is warm and stopped, or has left."""
    async with trio.open_nursery() as waiting:

        async def come_up(entrant: Entrant) -> None:
            await _unless_it_fails(entrant, entrant.come_up)
            warm.add(entrant.system)
            if len(warm) == len(entrants):
                waiting.cancel_scope.cancel()
                return
            while entrant.fault is None:
                await trio.sleep(AWAY_S)
                entrant.go_on()
                with trio.CancelScope(shield=True):
                    await trio.sleep(AWAKE_S)
                entrant.halt()

        warm: set[str] = set()
        for entrant in entrants:
            waiting.start_soon(come_up, entrant)


async def _unless_it_fails(entrant: Entrant, do: Callable[[], Awaitable[None]]) -> None:
    if entrant.fault is not None:
        return
    try:
        await do()
    except FAULTS as fault:
        entrant.fault = fault
        entrant.racer.kill()

"""Whose work shares our processors: which part of a measurement had them to itself.

On a rented machine a processor runs at about half its speed, for some seconds at a time, while
somebody else's work is on the other half of its core; no accounting says so, and CPU-seconds grow
as seconds do. A small fixed computation on each processor, many times a second, shows it: it takes
its usual time or about twice that, hardly anything between, however busy we keep the processor.

`python -m tests.bench.neighbours PROCESSOR` is that computation; a line for each pulse says when it
began on the monotonic clock and what CPU-time it took, in nanoseconds.
"""

import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.bench.calm import TOGETHER, Pulse, Span, outside, share_of, slow_spans
from tests.bench.figures import percentile
from tests.interop.peers.child import pause, start_child

PERIOD_S: Final = 0.04
ADDITIONS: Final = 5_000
USUAL: Final = 0.1
"""The share of all pulses that were as fast as the processor is when it is nobody else's."""
MARGIN_S: Final = PERIOD_S * TOGETHER


@dataclass(slots=True)
class Neighbours:
    """What the pulses of each processor have shown so far; without pulses nobody is there."""

    pulses: Mapping[Path, list[Pulse]] = field(default_factory=dict)
    """By the file that they are written to."""
    _read: dict[Path, int] = field(default_factory=dict)
    _shares: list[float] = field(default_factory=list)

    def calm(self, began: float, ended: float) -> list[Span]:
        """Return the parts of this time, on the monotonic clock, in which nothing was slow."""
        slow: list[Span] = []
        self._read_on()
        all_took = [each.took_s for pulses in self.pulses.values() for each in pulses]
        for pulses in self.pulses.values():
            near = [each for each in pulses if began - MARGIN_S <= each.at_s <= ended + MARGIN_S]
            slow += slow_spans(near, percentile(all_took, USUAL)) if near else []
        found = outside(slow, began, ended)
        self._shares.append(share_of(found, began, ended))
        return found

    @property
    def share(self) -> float | None:
        """Return the calm share of all the time that was asked for; None: nobody looked."""
        return sum(self._shares) / len(self._shares) if self.pulses and self._shares else None

    @property
    def last(self) -> float | None:
        """Return the calm share of the time that was asked for last; None: nobody looks."""
        return self._shares[-1] if self.pulses and self._shares else None

    def _read_on(self) -> None:
        for file, pulses in self.pulses.items():
            with file.open("rb") as log:
                log.seek(self._read.get(file, 0))
                fresh = log.read()
            whole = fresh[: fresh.rfind(b"\n") + 1]  # the last line may still be written
            self._read[file] = self._read.get(file, 0) + len(whole)
            for line in whole.splitlines():
                at_ns, took_ns = map(int, line.split())
                pulses.append(Pulse(at_s=at_ns / 1e9, took_s=took_ns / 1e9))


@contextmanager
def watched(neighbours: Neighbours, folder: Path) -> Iterator[None]:
    """Keep a pulse on each processor that we may use until the block ends."""
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        for processor in sorted(os.sched_getaffinity(0)):
            file = folder / f"pulse-{processor}.log"
            command = [sys.executable, "-m", "tests.bench.neighbours", str(processor)]
            stack.callback(start_child(f"pulse {processor}", command, log=file).kill)
            neighbours.pulses = {**neighbours.pulses, file: []}
        yield


def pulse(processor: int) -> None:
    """Print pulses until killed."""
    os.sched_setaffinity(0, {processor})
    while True:
        at_ns, began_ns, total = time.monotonic_ns(), time.thread_time_ns(), 0
        for number in range(ADDITIONS):
            total += number
        print(at_ns, time.thread_time_ns() - began_ns, flush=True)
        pause(PERIOD_S)


if __name__ == "__main__":
    pulse(int(sys.argv[1]))

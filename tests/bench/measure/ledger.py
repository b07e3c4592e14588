"""Everything measured so far, and everything that could not be, said aloud as it comes in."""

import re
import traceback
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from subprocess import TimeoutExpired
from time import monotonic, process_time
from typing import Final, TypeAlias, TypeVar

import trio
from confluent_kafka import KafkaException

from tests.bench.measure.figures import TooFewSamples, spread
from tests.bench.measure.machine import ROOT
from tests.bench.measure.processes import ProcessGone
from tests.bench.measure.results import NO_FIGURE, UNITS, Measured, Missed, RowId
from tests.clusters import ClusterFailed
from tests.interop.peers import PeerFailed, PeerUnavailable
from wire.net import NetworkFault


class RunFailed(RuntimeError):
    """A run did not come to its end; the message says how far it came."""


FAULTS: Final = (
    ClusterFailed,
    KafkaException,
    NetworkFault,
    OSError,
    PeerFailed,
    PeerUnavailable,
    ProcessGone,
    RunFailed,
    TimeoutExpired,
    TooFewSamples,
    trio.TooSlowError,
)
"""What leaves a row without a figure; anything else is a bug of the harness and ends its part."""


T = TypeVar("T")

_BEGAN: Final = monotonic()
REASON_LENGTH: Final = 160
_ADDRESS: Final = re.compile(r"\w+://\S+")
GRACE_S: Final = 60.0
"""What a run that began in time may take beyond it."""
COMPLETE: Final = 0
INCOMPLETE: Final = 2
"""Some round has no figure."""

Cell: TypeAlias = tuple[str, str]
"""Workload and bench: a row, as far as the system does not say."""


@dataclass(slots=True)
class Ledger:
    """The figures and reasons of one `make bench`."""

    measured: list[Measured] = field(default_factory=list)
    missed: list[Missed] = field(default_factory=list)
    harness: dict[str, float] = field(default_factory=dict)
    """The harness's own cost, by what was looked at."""
    ends_at: float = inf
    """On the monotonic clock: no run of this part begins later."""
    logs: Path | None = None
    """Where to keep what systems said that failed; None: nowhere."""
    _own_shares: list[float] = field(default_factory=list)

    @property
    def left_s(self) -> float:
        """Return the seconds that this part has left."""
        return self.ends_at - monotonic()

    @property
    def status(self) -> int:
        """Return COMPLETE, or INCOMPLETE when some round has no figure."""
        return INCOMPLETE if self.missed else COMPLETE

    def add(self, system: str, run: int, values: Mapping[Cell, float]) -> None:
        """Take the figures of one run."""
        for cell, value in values.items():
            self.measured.append(Measured(row=_row_id(system, cell), run=run, value=value))
        words = ", ".join(f"{value:.4g} {UNITS[bench]}" for (_, bench), value in values.items())
        say(f"  {system:<12} {words}")

    def miss(self, system: str, cells: Iterable[Cell], why: BaseException) -> None:
        """Take the reason why a run gave nothing for these cells."""
        reason = reason_of(why)
        for cell in cells:
            self.missed.append(Missed(row=_row_id(system, cell), reason=reason))
        say(f"  {system:<12} {NO_FIGURE}{reason}")

    def keep_log(self, system: str, log: str) -> None:
        """Keep what a system said before it failed, if there is a place for it."""
        if self.logs is None or not log:
            return
        self.logs.mkdir(parents=True, exist_ok=True)
        path = self.logs / f"{len(list(self.logs.iterdir())) + 1}-{system}.log"
        path.write_text(log)
        say(f"  {system:<12} what it said: {path}")

    def try_run(
        self,
        system: str,
        run: int,
        cells: Iterable[Cell],
        measure: Callable[[], Mapping[Cell, float]],
    ) -> bool:
        """Take the figures of a run, or why there are none; return whether it may go on.

        False means that this system cannot be had on this machine: no use in trying it again.
        """
        faults: list[Exception] = []
        with expected_faults(faults.append):
            self.require_time()
            self.add(system, run, measure())
        for fault in faults:
            self.miss(system, cells, fault)
        return not any(map(is_unavailable, faults))

    def require_time(self) -> None:
        """Raise RunFailed when no run may begin any more."""
        if self.left_s < 0:
            raise RunFailed("the time of this part was over before its turn")

    @contextmanager
    def guard(self, systems: Iterable[str], cells: Sequence[Cell]) -> Iterator[None]:
        """Let the rest go on when what several systems need fails: none of them has a figure."""

        def miss_all(fault: Exception) -> None:
            for system in systems:
                self.miss(system, cells, fault)

        with expected_faults(miss_all):
            yield

    @contextmanager
    def part(self, name: str, rows: Mapping[str, Sequence[Cell]], limit_s: float) -> Iterator[None]:
        """Run a part for so long; rows that a fault of all of it left unsaid get it as reason.

        So do those that a bug of the harness left; its traceback lies with what others said.
        """
        self.ends_at = monotonic() + limit_s
        missed_before = len(self.missed)

        def miss_the_rest(fault: Exception) -> None:
            said = {each.row for each in self.measured} | {each.row for each in self.missed}
            for system, of_system in rows.items():
                unsaid = [cell for cell in of_system if _row_id(system, cell) not in said]
                self.miss(system, unsaid, fault)

        with self.timed(f"part {name}"):
            try:
                yield
            except Exception as fault:  # noqa: BLE001 - the reason of each row that it has left
                reason = fault
                if not is_expected(fault):
                    self.keep_log("harness", "".join(traceback.format_exception(fault)))
                    reason = RunFailed(f"a bug of the harness: {type(fault).__name__}: {fault}")
                miss_the_rest(reason)
        missed = len(self.missed) - missed_before
        status = INCOMPLETE if missed else COMPLETE
        say(f"part {name}: status {status}, figures missing: {missed}")

    def run(self, task: Callable[..., Awaitable[T]], *arguments: object) -> T:
        """Run an async task to its end and return its result; RunFailed when the time is over.

        What the harness itself takes of a processor meanwhile is noted.
        """

        async def limited() -> T:
            with trio.move_on_after(max(0.0, self.left_s + GRACE_S)):
                return await task(*arguments)
            raise RunFailed("the time of this part was over in mid-run")

        began, used = monotonic(), process_time()
        result = trio.run(limited)
        self._own_shares.append((process_time() - used) / max(monotonic() - began, 1e-9))
        return result

    @contextmanager
    def started(
        self, running: AbstractContextManager[T], tell: Callable[[BaseException], None]
    ) -> Iterator[T | None]:
        """Give what runs until the block ends, or None after telling why it did not start.

        It does not start either when the time of the part is over.
        """
        with ExitStack() as stack:
            value: T | None = None
            with expected_faults(tell):
                self.require_time()
                value = stack.enter_context(running)
            yield value

    @contextmanager
    def timed(self, what: str) -> Iterator[None]:
        """Note how long a section took, and say so."""
        began = monotonic()
        yield
        took_s = monotonic() - began
        self.harness[f"took, s: {what}"] = round(took_s)
        say(f"{what}: {took_s:.0f} s")

    def close(self) -> None:
        """Sum the harness's own cost up."""
        if self._own_shares:
            shares = spread(self._own_shares)
            self.harness["own share of one processor, median"] = round(shares.median, 3)
            self.harness["own share of one processor, max"] = round(shares.maximum, 3)
        for what, value in self.harness.items():
            say(f"harness: {what}: {value:g}")


def cells(workload: str, benches: Iterable[str]) -> list[Cell]:
    """Return the rows of one workload."""
    return [(workload, bench) for bench in benches]


def is_expected(fault: BaseException) -> bool:
    """Return whether a fault, or each of those in a group, is one that a run may end by."""
    if isinstance(fault, BaseExceptionGroup):
        return all(is_expected(each) for each in fault.exceptions)
    return isinstance(fault, FAULTS)


@contextmanager
def expected_faults(tell: Callable[[Exception], None]) -> Iterator[None]:
    """End the block at a fault that a run may end by, and tell it; a bug of the harness passes."""
    try:
        yield
    except Exception as fault:
        if not is_expected(fault):
            raise
        tell(fault)


def run_reported(what: str, measure: Callable[[], int]) -> int:
    """Return the status that a measurement comes to, or INCOMPLETE after saying why to none."""
    statuses: list[int] = []
    with expected_faults(lambda fault: say(f"{what}: {NO_FIGURE}{reason_of(fault)}")):
        statuses.append(measure())
    return statuses[0] if statuses else INCOMPLETE


def is_unavailable(fault: BaseException) -> bool:
    """Return whether a system cannot be had on this machine now: no use in trying it again."""
    return isinstance(fault, PeerUnavailable)


def reason_of(fault: BaseException) -> str:
    """Return one short line that says what happened, without addresses and this machine's paths."""
    while isinstance(fault, BaseExceptionGroup):
        fault = fault.exceptions[0]
    lines = str(fault).splitlines() or [""]
    words = f"{lines[0]} {lines[-1]}" if lines[0].endswith(":") and len(lines) > 1 else lines[0]
    first = _ADDRESS.sub("its address", words.replace(f"{ROOT}/", ""))
    if len(first) > REASON_LENGTH:
        first = first[:REASON_LENGTH].rpartition(" ")[0] + " ..."
    return first.rstrip(":;") or type(fault).__name__


def say(line: str) -> None:
    """Tell whoever waits for the run, with the time since the start."""
    minutes, seconds = divmod(int(monotonic() - _BEGAN), 60)
    print(f"{minutes:02}:{seconds:02} {line}", flush=True)


def _row_id(system: str, cell: Cell) -> RowId:
    workload, bench = cell
    return RowId(bench=bench, workload=workload, system=system)

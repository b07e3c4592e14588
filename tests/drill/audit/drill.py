"""Random faults on the disks of two clusters, one audit of them all, and what it found of each.

Then a pair without any fault is audited behind all that may befall it (`clean`).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from time import monotonic

from runtime.process.clock import wall_ms
from tests.drill.audit.clean import Audited, audit_clean_pairs, clean_table
from tests.drill.audit.judging import Judged, blind_spots, complaints, judge, table
from tests.drill.audit.memory import allowed_of, expected_of
from tests.drill.audit.planning import plan, plan_large
from tests.drill.audit.stage import staged


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What is drilled."""

    seed: int
    folder: Path
    faults: int = 700
    is_secured: bool = False
    """Whether the audit comes over TLS and SASL, to sites, witness and pages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drilled:
    """What came out."""

    judged: Judged
    blind: Sequence[str]
    """What the judge itself did not see."""
    clean: Sequence[Audited]

    @property
    def is_kept(self) -> bool:
        return self.judged.is_right and not self.blind and all(one.is_right for one in self.clean)


def drill(options: Options, tell: Callable[[str], None]) -> Drilled:
    """Plant, audit and judge; `tell` is given what came of the faults before the clean pairs begin.

    Raises DrillFailed where a clean pair does not come to its end.
    """
    began, now_ms = monotonic(), wall_ms()
    planted = plan(options.seed, faults=options.faults, now_ms=now_ms)
    planted += plan_large(options.seed, now_ms=now_ms)
    expected, allowed = expected_of(planted), allowed_of(planted)
    offsets = sum(laid.log.stop for one in planted for laid in one.sides)
    tell(f"  {len(expected)} faults in {len(planted)} partitions of {offsets:,} offsets")
    options.folder.mkdir(parents=True, exist_ok=True)
    with staged(options.folder, planted, now_ms, is_secured=options.is_secured) as stage:
        tell(f"  laid down on both sites, {monotonic() - began:.0f} s")
        told = stage.audit()
    tell(f"  audited, {monotonic() - began:.0f} s")
    judged = judge(expected, told, allowed)
    blind = blind_spots(expected, told, allowed, Random(options.seed))
    for line in (*table(judged), "", *complaints(judged), *_seen(blind), ""):
        tell(line)
    clean = audit_clean_pairs(
        options.folder / "clean", options.seed, tell, is_secured=options.is_secured
    )
    tell(f"  clean pairs audited, {monotonic() - began:.0f} s")
    return Drilled(judged=judged, blind=blind, clean=clean)


def _seen(blind: Sequence[str]) -> Iterator[str]:
    """Yield whether the judge itself saw what was planted for it."""
    yield from (f"BLIND {one}" for one in blind)
    if not blind:
        yield "faults withheld from the judge came out as invented, and made-up ones as missed"


def report(drilled: Drilled) -> Iterator[str]:
    """Yield what came of the clean pairs, and the verdict on the whole."""
    yield from clean_table(drilled.clean)
    yield "PASSED" if drilled.is_kept else "FAILED"

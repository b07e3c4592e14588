"""A rehearsal as people are told of it: its report, its line in the history. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Final

from failover.rehearsal.judgement import WORDS
from failover.rehearsal.outcome import Rehearsal, RehearsedLeg, SetOutlook
from failover.view.promotion_report import seconds_of
from runtime.pages.markup import moment


def rehearsal_lines(rehearsal: Rehearsal) -> Iterator[str]:
    """Yield the report of a rehearsal."""
    yield (
        f"rehearsal {rehearsal.number} of {rehearsal.site} from {rehearsal.home}: {rehearsal.state}"
    )
    yield f"  began    {moment(rehearsal.started_ms)}"
    if rehearsal.reason is not None:
        yield f"  reason   {rehearsal.reason}"
    for leg in rehearsal.legs:
        yield from _leg(leg)
    load = rehearsal.load
    if load is not None:
        yield f"  load     {load.acknowledged} records acknowledged"
        counts = asdict(load)
        yield f"           {', '.join(f'{counts[name]} {text}' for name, text in WORDS.items())}"
    for one in rehearsal.applications:
        yield f"  today    {_outlook(one)}"
    yield f"  command  {rehearsal.given}"


def _leg(leg: RehearsedLeg) -> Iterator[str]:
    yield (
        f"  {leg.site:<8} RTO {_seconds(leg.rto_ms)} (epoch {leg.epoch}): nobody could write for"
        f" {_seconds(leg.closed_ms)}; writers stood {_seconds(leg.writers_ms)}, readers"
        f" {_seconds(leg.readers_ms)}"
    )
    slow = sorted(leg.steps.items(), key=lambda one: -one[1])
    yield f"           {', '.join(f'{step} {seconds_of(took)}' for step, took in slow)}"


def _outlook(one: SetOutlook) -> str:
    where = f"set {one.set} to {one.site}"
    if one.ready:
        return f"{where}: could be promoted"
    return f"{where}: {'not known' if one.ready is None else 'refused'}: {one.reason}"


def _seconds(duration_ms: int | None) -> str:
    return "?" if duration_ms is None else seconds_of(duration_ms)


def rehearsal_row(rehearsal: Rehearsal) -> Mapping[str, object]:
    """Return a rehearsal's line of the history."""
    there = rehearsal.legs[0] if rehearsal.legs else None
    back = rehearsal.legs[1] if len(rehearsal.legs) > 1 else None
    load = rehearsal.load
    return {
        "number": rehearsal.number,
        "began": moment(rehearsal.started_ms),
        "to": rehearsal.site,
        "state": rehearsal.state.value,
        "rto_ms": None if there is None else there.rto_ms,
        "back_ms": None if back is None else back.rto_ms,
        "lost": None if load is None else load.lost,
        "reread": None if load is None else load.reread,
        "by": rehearsal.given.user,
        "reason": rehearsal.reason,
    }


REHEARSAL_TITLES: Final[Mapping[str, str]] = {
    "number": "REHEARSAL",
    "began": "BEGAN",
    "to": "TO",
    "state": "STATE",
    "rto_ms": "RTO-MS",
    "back_ms": "BACK-MS",
    "lost": "LOST",
    "reread": "REREAD",
    "by": "BY",
    "reason": "REASON",
}

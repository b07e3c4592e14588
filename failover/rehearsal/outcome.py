"""One rehearsal as the witness keeps it: what was asked for, each way, the verdict. Pure.

    {"number": 3, "site": "dc2", "home": "dc1", "state": "passed", "reason": null,
     "started_ms": 0, "ended_ms": 0,
     "given": {"what": "failover rehearse dc2", "user": "jo", "host": "ops1", "at_ms": 0},
     "legs": [{"site": "dc2", "epoch": 7, "rto_ms": 900, "closed_ms": 500,
               "writers_ms": 700, "readers_ms": 800, "steps": {"fence": 40}}],
     "load": {"acknowledged": 1500, "lost": 0, ...},        null where it was not judged
     "applications": [{"set": "default", "site": "dc2", "ready": true, "reason": null}]}

`null` is what is not known, and never zero.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from enum import StrEnum
from typing import Any, Self

from failover.journal.commands_given import GivenCommand
from failover.journal.journal import Journal
from failover.rehearsal.judgement import WORDS, LoadVerdict, standstill_ms
from failover.rehearsal.seen import LoadSeen
from failover.view.promotion_report import closed_ms, phases
from runtime.untrusted_json import read_json, text, whole_number
from wire.values import frozen


class RehearsalUnreadable(ValueError):
    """The document is no rehearsal that this program understands; the message says why."""


class RehearsalState(StrEnum):
    """How a rehearsal ended, or that it has not."""

    RUNNING = "running"
    PASSED = "passed"
    FAILED = "failed"
    REFUSED = "refused"
    INTERRUPTED = "interrupted"
    """Whoever did it died; the next one takes the set back first."""


@frozen
class RehearsedLeg:
    """The promotion to a site; `writers_ms` and `readers_ms` say how long applications stood."""

    site: str
    epoch: int
    rto_ms: int | None
    closed_ms: int | None
    writers_ms: int | None
    readers_ms: int | None
    steps: Mapping[str, int]

    @classmethod
    def of_document(cls, found: Mapping[str, Any]) -> Self:
        """Return what a JSON form says; raises ValueError, KeyError and TypeError."""
        times = ("rto_ms", "closed_ms", "writers_ms", "readers_ms")
        return cls(
            site=text(found["site"]),
            epoch=whole_number(found["epoch"]),
            steps={text(step): whole_number(took) for step, took in found["steps"].items()},
            **{name: _known(found[name]) for name in times},
        )


def leg_of(journal: Journal, seen: LoadSeen, began_ms: int) -> RehearsedLeg:
    """Return a promotion that is done, and what the load has seen of it.

    `began_ms` is of the clock of the load.
    """
    return RehearsedLeg(
        site=journal.site,
        epoch=journal.epoch,
        rto_ms=journal.rto_ms,
        closed_ms=closed_ms(journal),
        writers_ms=standstill_ms(seen.acknowledged, journal.site, began_ms),
        readers_ms=standstill_ms(seen.delivered, journal.site, began_ms),
        steps={one.step: one.took_ms for one in phases(journal) if one.took_ms is not None},
    )


@frozen
class SetOutlook:
    """Whether a set of applications could be promoted to a site now; None where nobody knows."""

    set: str
    site: str
    ready: bool | None
    reason: str | None

    @classmethod
    def of_document(cls, found: Mapping[str, Any]) -> Self:
        """Return what a JSON form says; raises ValueError, KeyError and TypeError."""
        ready, reason = found["ready"], found["reason"]
        if ready is not None and not isinstance(ready, bool):
            raise TypeError(f"{ready!r:.80} is neither true nor false")
        return cls(
            set=text(found["set"]),
            site=text(found["site"]),
            ready=ready,
            reason=None if reason is None else text(reason),
        )


@frozen
class Rehearsal:
    """One rehearsal; numbers grow by one."""

    number: int
    site: str
    home: str
    started_ms: int
    given: GivenCommand
    state: RehearsalState = RehearsalState.RUNNING
    reason: str | None = None
    ended_ms: int | None = None
    legs: tuple[RehearsedLeg, ...] = ()
    load: LoadVerdict | None = None
    applications: tuple[SetOutlook, ...] = ()

    def document(self) -> Mapping[str, Any]:
        """Return the JSON form."""
        return {**asdict(self), "state": self.state.value}

    def encode(self) -> bytes:
        """Return the JSON of the node."""
        return json.dumps(self.document()).encode()

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Return what a node says; raises RehearsalUnreadable."""
        try:
            found = read_json(data)
            load, reason = found["load"], found["reason"]
            return cls(
                number=whole_number(found["number"]),
                site=text(found["site"]),
                home=text(found["home"]),
                started_ms=whole_number(found["started_ms"]),
                given=GivenCommand.of_document(found["given"]),
                state=RehearsalState(found["state"]),
                reason=None if reason is None else text(reason),
                ended_ms=_known(found["ended_ms"]),
                legs=tuple(map(RehearsedLeg.of_document, found["legs"])),
                load=None if load is None else LoadVerdict.of_document(load),
                applications=tuple(map(SetOutlook.of_document, found["applications"])),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise RehearsalUnreadable(f"{type(error).__name__}: {error}") from error


def why_not_passed(legs: tuple[RehearsedLeg, ...], load: LoadVerdict) -> str | None:
    """Return what went wrong with a rehearsal that went there and back; None where nothing did."""
    wrong = [f"{count} records {WORDS[name]}" for name, count in load.faults().items()]
    for leg in legs:
        if leg.writers_ms is None:
            wrong.append(f"nothing was written on {leg.site} behind the switch")
        if leg.readers_ms is None:
            wrong.append(f"nothing was read on {leg.site} behind the switch")
    return "; ".join(wrong) or None


def _known(value: object) -> int | None:
    return None if value is None else whole_number(value)

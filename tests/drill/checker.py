"""Whether a history keeps the promises. Pure: it knows nothing of brokers, mirrors or clients.

The final reads are the truth about what is in the logs; everything that anybody was told or shown
before is held against them.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final

from tests.drill.history import (
    GARBLED,
    UNTOLD,
    Aborted,
    Acked,
    Committed,
    Event,
    Fault,
    Position,
    Read,
    Refused,
    Took,
)

GROUP: Final = "the group"


class Kind(Enum):
    """What can be wrong."""

    LOST = "an acknowledged record is gone"
    ALTERED = "a record is not what was produced"
    DUPLICATE = "a record is there more than once"
    CHANGED = "an offset has had two contents"
    ABORTED = "a record of an aborted transaction was read"
    REORDERED = "a producer's records are not in its order"
    NO_PROGRESS = "nothing went on after the last fault"
    REREAD = "a group was given again what it had committed"
    MISSED = "a group was never given a record"
    WENT_BACK = "a group's committed position went back"


@dataclass(frozen=True, slots=True, order=True)
class Offence:
    """One promise that was not kept, and where."""

    kind: str
    log: str
    offset: int
    says: str

    def __str__(self) -> str:
        place = f"{self.log} offset {self.offset}" if self.offset >= 0 else self.log
        return f"{self.kind}: {place}: {self.says}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Promises:
    """What is checked beyond what always holds."""

    logs: frozenset[str]
    progress_within_s: float = 15.0
    group_within_s: float = 30.0
    """The same for a group: who died is given up after a session, and then all join anew, once more
    where its coordinator moves to the preferred leader meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """The events by kind."""

    acked: list[Acked]
    refused: list[Refused]
    aborted: list[Aborted]
    reads: list[Read]
    faults: list[Fault]
    took: list[Took]
    committed: list[Committed]
    positions: list[Position]
    final: Mapping[str, Mapping[int, str]]
    """What is in each log in the end, by offset."""


def story_of(events: Iterable[Event]) -> Story:
    """Sort the events."""
    sorted_out: dict[type[Event], list[Any]] = defaultdict(list)
    final: dict[str, dict[int, str]] = defaultdict(dict)
    for event in events:
        sorted_out[type(event)].append(event)
        if isinstance(event, Read) and event.is_final:
            final[event.log].setdefault(event.offset, event.content)
    return Story(
        acked=sorted_out[Acked],
        refused=sorted_out[Refused],
        aborted=sorted_out[Aborted],
        reads=sorted_out[Read],
        faults=sorted_out[Fault],
        took=sorted_out[Took],
        committed=sorted_out[Committed],
        positions=sorted_out[Position],
        final=final,
    )


def check(story: Story, promises: Promises) -> list[Offence]:
    """Return everything that is wrong, in the order of kind, log and offset."""
    story = replace(story, acked=_placed(story))
    found = {
        *_lost_or_altered(story),
        *_garbled(story),
        *_duplicates(story),
        *_changed(story),
        *_read_though_aborted(story),
        *_reordered(story),
        *_without_progress(story, promises),
    }
    return sorted(found)


def _placed(story: Story) -> list[Acked]:
    """Return the acknowledgements; those that told no offset have the one their record is at."""
    places = _places(story)
    return [
        replace(ack, offset=places.get(ack.log, {}).get(ack.content, UNTOLD))
        if ack.offset == UNTOLD
        else ack
        for ack in story.acked
    ]


def _places(story: Story) -> dict[str, dict[str, int]]:
    """Return the offset of each content in each log."""
    return {
        log: {content: offset for offset, content in contents.items()}
        for log, contents in story.final.items()
    }


def _offence(kind: Kind, log: str, offset: int, says: str) -> Offence:
    return Offence(kind.name, log, offset, says)


def _lost_or_altered(story: Story) -> Iterator[Offence]:
    places = _places(story)
    for ack in story.acked:
        there = story.final.get(ack.log, {}).get(ack.offset)
        if there == ack.content:
            continue
        elsewhere = places.get(ack.log, {}).get(ack.content)
        name = f"{ack.who} {ack.number} ({ack.content})"
        if there is not None and there.startswith(GARBLED):
            yield _offence(Kind.ALTERED, ack.log, ack.offset, f"{name} is now {there}")
        elif elsewhere is not None:
            yield _offence(Kind.CHANGED, ack.log, ack.offset, f"{name} is now at {elsewhere}")
        else:
            instead = f"{there} is there" if there else "nothing is there"
            yield _offence(Kind.LOST, ack.log, ack.offset, f"{name} was acknowledged; {instead}")


def _garbled(story: Story) -> Iterator[Offence]:
    for read in story.reads:
        if read.content.startswith(GARBLED):
            yield _offence(Kind.ALTERED, read.log, read.offset, f"{read.who} read {read.content}")


def _duplicates(story: Story) -> Iterator[Offence]:
    for log, contents in story.final.items():
        first: dict[str, int] = {}
        for offset, content in sorted(contents.items()):
            if content in first:
                says = f"{content} is at {first[content]} already"
                yield _offence(Kind.DUPLICATE, log, offset, says)
            first.setdefault(content, offset)


def _changed(story: Story) -> Iterator[Offence]:
    """Hold what consumers were given against what is there, and acknowledgements likewise."""
    told: dict[tuple[str, int], str] = {}
    events: list[Acked | Read] = [*story.acked, *story.reads]
    for event in events:
        if event.offset == UNTOLD:
            continue
        place = (event.log, event.offset)
        known = told.setdefault(place, event.content)
        if known != event.content:
            says = f"{event.who} was told {event.content}, somebody else {known}"
            yield _offence(Kind.CHANGED, *place, says)
    for read in story.reads:
        if read.offset not in story.final.get(read.log, {}):
            says = f"{read.who} read {read.content}; nothing is there"
            yield _offence(Kind.CHANGED, read.log, read.offset, says)


def _read_though_aborted(story: Story) -> Iterator[Offence]:
    """Hold what consumers were given against what was given up; all of them read committed."""
    aborted = {(one.log, one.content): one for one in story.aborted}
    for read in story.reads:
        one = aborted.get((read.log, read.content))
        if one is not None:
            says = f"{read.who} read {one.who} {one.number}, which was aborted"
            yield _offence(Kind.ABORTED, read.log, read.offset, says)


def _reordered(story: Story) -> Iterator[Offence]:
    last: dict[tuple[str, str], Acked] = {}
    for ack in sorted(story.acked, key=lambda one: one.number):
        if ack.offset == UNTOLD:
            continue
        before = last.get((ack.who, ack.log))
        if before is not None and before.offset > ack.offset:
            says = f"{ack.who} {ack.number} lies before its {before.number} at {before.offset}"
            yield _offence(Kind.REORDERED, ack.log, ack.offset, says)
        last[ack.who, ack.log] = ack


def _without_progress(story: Story, promises: Promises) -> Iterator[Offence]:
    """Each log takes a record, and each consumer gets one, in time after the last fault."""
    quiet_s = max((fault.ended_s for fault in story.faults), default=0.0)
    limit_s = quiet_s + promises.progress_within_s
    taken = {ack.log for ack in story.acked if quiet_s < ack.at_s <= limit_s}
    for log in sorted(promises.logs - taken):
        says = f"no acknowledgement within {promises.progress_within_s:g} s of the last fault"
        yield _offence(Kind.NO_PROGRESS, log, -1, says)
    first_s: dict[str, float] = {}
    for read in story.reads:
        if not read.is_final:
            known_s = first_s.setdefault(_reader(read), math.inf)
            if quiet_s < read.at_s < known_s:
                first_s[_reader(read)] = read.at_s
    for who, at_s in sorted(first_s.items()):
        is_group = who.startswith(GROUP)
        within_s = promises.group_within_s if is_group else promises.progress_within_s
        if at_s > quiet_s + within_s:
            says = f"{who} was given nothing within {within_s:g} s of the last fault"
            yield _offence(Kind.NO_PROGRESS, "all logs", -1, says)
    for log in sorted(promises.logs - story.final.keys()):
        yield _offence(Kind.NO_PROGRESS, log, -1, "could not be read in the end")


def _reader(read: Read) -> str:
    """Return who must be served again: members of a group come and go, the group stays."""
    return f"{GROUP} {read.group}".rstrip() if read.in_group else read.who

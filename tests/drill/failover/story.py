"""What happened in a drill of the failover, as values. Times are wall-clock milliseconds."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from typing import Final, TypeAlias

from wire.topic_partition import TopicPartition

FOLLOWER: Final = "the producer that follows"
Logs: TypeAlias = Mapping[str, Mapping[TopicPartition, Mapping[int, str]]]
"""By site and partition: the value at each offset."""
SiteOffset: TypeAlias = tuple[str, TopicPartition, int]
"""A site, a partition and an offset."""
Saved: TypeAlias = Mapping[SiteOffset, str]
"""What one site's `.diverged` topics hold: by the place of origin, the value."""
KeyEnds: TypeAlias = Mapping[tuple[TopicPartition, str], str]
"""By partition of a compacted topic and key: the last value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acked:
    """A producer was told with acks=all that its record lies there."""

    sent_ms: int
    at_ms: int
    who: str
    site: str
    partition: TopicPartition
    offset: int
    value: str

    @property
    def place(self) -> SiteOffset:
        """Return where it lies."""
        return self.site, self.partition, self.offset

    def __str__(self) -> str:
        return f"{self.value} of {self.who} at {self.site} {self.partition} offset {self.offset}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Forwarded:
    """A producer behind an endpoint was told the same; at which site, it does not know."""

    sent_ms: int
    partition: TopicPartition
    offset: int
    value: str

    def __str__(self) -> str:
        return f"{self.value}, forwarded, {self.partition} offset {self.offset}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A member of a group was given this record, and has committed it if it went on."""

    group: str
    at_ms: int
    site: str
    partition: TopicPartition
    offset: int
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A command was run, and ended with this; a status below 0 is a signal's."""

    began_ms: int
    ended_ms: int
    command: tuple[str, ...]
    status: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """A promotion that has switched, as its journal says."""

    started_ms: int
    switched_ms: int
    old: str
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """What `mirror status` said of one partition while nobody wrote."""

    source: str
    target: str
    partition: TopicPartition
    records: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A time in which an idle site may have taken writes, and why; they have to be listed."""

    site: str
    from_ms: int
    until_ms: int
    why: str


class Listing(Enum):
    """As what a command has listed an offset."""

    ONLY_THERE = "only there"
    FOREIGN = "foreign"
    SET_ASIDE = "set aside"
    APPENDED = "appended"
    """Behind the switch on the old site, or on the new one by others than the mirror."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Offsets of one log that a command has listed, `stop` not among them."""

    what: Listing
    site: str
    partition: TopicPartition
    start: int
    stop: int
    told_ms: int

    def places(self) -> Iterator[SiteOffset]:
        """Yield each offset."""
        for offset in range(self.start, self.stop):
            yield self.site, self.partition, offset


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    """A promotion has said that a partition of its source was mirrored up to an offset."""

    source: str
    site: str
    partition: TopicPartition
    end: int
    began_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """What the plan of a promotion says that a partition loses, None for unknown."""

    partition: TopicPartition
    seconds: float | None
    known_end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A drill up to the end of a round, when nobody wrote and everything had been mirrored.

    `deleted` are topics that the drill has deleted. From `once_from_ms` on no fault
    excuses a record that is read again, or was written twice by a forwarded producer.
    Between the times `left_alone` nothing was done but to move other topics.
    `positions` are those of each group, `saved` what each site has of what was set aside,
    `ends` its last value of each key. `openings` are promotions that had opened their site
    and were taken back.
    """

    active: str
    acked: Sequence[Acked]
    reads: Sequence[Read]
    said: Sequence[Said]
    switches: Sequence[Switch]
    logs: Logs
    positions: Mapping[str, Mapping[TopicPartition, int]]
    saved: Mapping[str, Saved] = field(default_factory=dict)
    ends: Mapping[str, KeyEnds] = field(default_factory=dict)
    windows: Sequence[Window] = ()
    openings: Sequence[Switch] = ()
    lags: Sequence[Lag] = ()
    deleted: frozenset[str] = frozenset()
    once_from_ms: int | None = None
    left_alone: tuple[int, int] | None = None
    forwarded: Sequence[Forwarded] = ()


_APPENDED: Final = re.compile(r"(\S+) (\S+)-(\d+) holds records at offsets (\d+) to (\d+) that")
_MIRRORED: Final = re.compile(r"^  (\S+)-(\d+): mirrored up to (\S+) offset (\d+) ", re.MULTILINE)
_LISTED: Final = re.compile(
    r"^(only there|foreign|set aside) +(\S+)  (\S+)-(\d+)  (\d+)  ", re.MULTILINE
)
_STATED: Final = re.compile(
    r"^ +(\S+)-(\d+): at least \d+ records(?:, up to ([\d.]+) s)?"
    r" \(mirrored up to \d+, last known end (\d+)\)",
    re.MULTILINE,
)
_RESTART: Final = re.compile(r"`mirror restart (\S+) (\S+) --quarantine(?: --set \S+)?`")


@cache
def listed_by(said: Said) -> tuple[Part, ...]:
    """Return the offsets that a command has listed as being on one site alone."""
    return (*_one_by_one(said), *_appended(said))


def _one_by_one(said: Said) -> Iterator[Part]:
    for what, site, topic, index, offset in _LISTED.findall(said.text):
        yield Part(
            what=Listing(what),
            site=site,
            partition=TopicPartition(topic, int(index)),
            start=int(offset),
            stop=int(offset) + 1,
            told_ms=said.ended_ms,
        )


def _appended(said: Said) -> Iterator[Part]:
    for site, topic, index, start, last in _APPENDED.findall(said.text):
        yield Part(
            what=Listing.APPENDED,
            site=site,
            partition=TopicPartition(topic, int(index)),
            start=int(start),
            stop=int(last) + 1,
            told_ms=said.ended_ms,
        )


def sealed_by(said: Said) -> Iterator[Sealed]:
    """Yield what a promotion of a lost site's other one has called mirrored."""
    if said.command[0] != "promote":
        return
    for topic, index, source, end in _MIRRORED.findall(said.text):
        yield Sealed(
            source=source,
            site=said.command[1],
            partition=TopicPartition(topic, int(index)),
            end=int(end),
            began_ms=said.began_ms,
        )


def stated_by(said: Said) -> Iterator[Stated]:
    """Yield the losses that a promotion of a lost site's other one has stated."""
    if said.command[0] == "promote":
        for topic, index, seconds, end in _STATED.findall(said.text):
            yield Stated(
                partition=TopicPartition(topic, int(index)),
                seconds=float(seconds) if seconds else None,
                known_end=int(end),
            )


def advised(said: Said) -> list[tuple[str, str]]:
    """Return the flow and the partition of each restart that a text advises."""
    return list(dict.fromkeys(_RESTART.findall(said.text)))

"""What happened in a drill of the failover, as values. Times are wall-clock milliseconds."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from wire.topic_partition import TopicPartition

Logs: TypeAlias = Mapping[str, Mapping[TopicPartition, Mapping[int, str]]]
"""By site and partition: the value at each offset."""


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

    def __str__(self) -> str:
        return f"{self.value} of {self.who} at {self.site} {self.partition} offset {self.offset}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A member of the group was given this record, and has committed it if it went on."""

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
class Part:
    """Offsets of one log, `stop` not among them; None for all that was there when it was listed."""

    site: str
    partition: TopicPartition
    start: int
    stop: int | None
    told_ms: int

    def has(self, site: str, partition: TopicPartition, offset: int) -> bool:
        """Tell whether it is one of these."""
        is_before_stop = self.stop is None or offset < self.stop
        return (site, partition) == (self.site, self.partition) and (
            self.start <= offset and is_before_stop
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A drill up to the end of a round, when nobody wrote and everything had been mirrored.

    `deleted` are topics that the drill has deleted. From `once_from_ms` on no fault
    excuses a record that is read again.
    """

    active: str
    acked: Sequence[Acked]
    reads: Sequence[Read]
    said: Sequence[Said]
    switches: Sequence[Switch]
    logs: Logs
    positions: Mapping[TopicPartition, int]
    lags: Sequence[Lag] = ()
    deleted: frozenset[str] = frozenset()
    once_from_ms: int | None = None


_APPENDED: Final = re.compile(r"(\S+) (\S+)-(\d+) holds records at offsets (\d+) to (\d+) that")
_MIRRORED: Final = re.compile(r"^  (\S+)-(\d+): mirrored up to (\S+) offset (\d+) ", re.MULTILINE)
_LISTED: Final = re.compile(
    r"^(?:only there|foreign|set aside) +(\S+)  (\S+)-(\d+)  (\d+)  ", re.MULTILINE
)


def parts_given_up(said: Said) -> Iterator[Part]:
    """Yield the offsets that a command has listed as being on one site alone."""
    at_ms = said.ended_ms
    for site, topic, index, start, last in _APPENDED.findall(said.text):
        partition = TopicPartition(topic, int(index))
        yield Part(
            site=site, partition=partition, start=int(start), stop=int(last) + 1, told_ms=at_ms
        )
    for topic, index, site, end in _MIRRORED.findall(said.text):
        partition = TopicPartition(topic, int(index))
        yield Part(site=site, partition=partition, start=int(end), stop=None, told_ms=at_ms)
    for site, topic, index, offset in _LISTED.findall(said.text):
        partition = TopicPartition(topic, int(index))
        yield Part(
            site=site, partition=partition, start=int(offset), stop=int(offset) + 1, told_ms=at_ms
        )

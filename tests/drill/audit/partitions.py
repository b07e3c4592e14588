"""Kinds of topics, and a partition that is laid down on both sites with what is wrong in it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Final

from spark_audit.snapshot.bounds import GroupPlace
from tests.drill.audit.items import SIDES, Fault, Writing
from tests.drill.audit.laying import Laid, Laying
from tests.drill.audit.planting import (
    OF_BOTH_KEYED,
    OF_KEYED,
    OF_PLAIN_LOGS,
    OF_RECORDS,
    OF_TRANSACTIONS,
    Plant,
)
from wire.compression import Compression


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicKind:
    """A kind of topic."""

    name: str
    compression: Compression = Compression.NONE
    is_transactional: bool = False
    is_compacted: bool = False
    both_ways: bool = False
    is_prefixed: bool = False

    def topic_at(self, site: int) -> str:
        """Return the topic's name at a site."""
        return f"dc1.{self.name}" if self.is_prefixed and site == 1 else self.name

    @property
    def plants(self) -> Mapping[str, Plant]:
        """Return the faults that such a topic can have."""
        found = dict(OF_RECORDS)
        if not self.is_compacted:
            found |= OF_PLAIN_LOGS
        if self.is_transactional:
            found |= OF_TRANSACTIONS
        if self.is_compacted:
            found |= OF_BOTH_KEYED if self.both_ways else OF_KEYED
        return found


KINDS: Final = (
    TopicKind(name="plain"),
    TopicKind(name="lz4", compression=Compression.LZ4),
    TopicKind(name="zstd", compression=Compression.ZSTD),
    TopicKind(name="gzip", compression=Compression.GZIP),
    TopicKind(name="snappy", compression=Compression.SNAPPY),
    TopicKind(name="transactional", is_transactional=True),
    TopicKind(name="compacted", is_compacted=True),
    TopicKind(name="prefixed", is_prefixed=True),
    TopicKind(name="prefixed-transactional", is_prefixed=True, is_transactional=True),
    TopicKind(name="prefixed-compacted", is_prefixed=True, is_compacted=True),
    TopicKind(name="both", both_ways=True),
    TopicKind(name="both-compacted", both_ways=True, is_compacted=True),
)


@dataclass(slots=True, kw_only=True)
class Planted:
    """One partition, laid down on both sites, with what an audit must say of it."""

    kind: TopicKind
    partition: int
    sides: tuple[Laid, Laid]
    faults: list[Fault] = field(default_factory=list)
    promised: int | None = None
    """The source's end as the mirror had brought it all, and told the witness."""
    places: tuple[GroupPlace, ...] = ()
    pieces: list[tuple[int, int]] | None = None
    allowed: set[tuple[str, int | None, int | None]] = field(default_factory=set)
    """What else may be told of the map: the other offsets that it translates wrongly."""

    @property
    def topic(self) -> str:
        return self.kind.name


def laid_down(luck: Random, kind: TopicKind, number: int, writing: Writing) -> Planted:
    first, second = (
        Laying(
            side=side,
            luck=Random(luck.random()),
            compression=kind.compression,
            is_compacted=kind.is_compacted,
            is_transactional=kind.is_transactional and side == 0,
        ).lay(writing.sides[side])
        for side in SIDES
    )
    return Planted(kind=kind, partition=number, sides=(first, second), faults=writing.faults)

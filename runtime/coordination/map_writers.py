"""Who may write an offset map: producer ids, registered in the witness before their first record.

Anybody with the right to write to a map topic can append records that look like the mirror's. Each
of our programs that writes a map therefore asks the cluster for a producer id, which no other
client gets, and registers it in the witness first. A reader believes only batches of registered
producers. It counts the others, and shows them.

A client that deliberately uses a registered producer's id is not told apart: id, epoch and next
sequence stand in the log for everybody who may read it. Rights of the topic prevent that, not this.
A topic of another id may be on a cluster that was set up anew and gives the same ids again, so only
producers that may be at work now stay registered for it.

A map of before there were registrations is adopted once: what it held at that time is believed,
whoever has written it. The checkpoints of groups are believed in the same way.

A registry has an id, and its registrations have numbers. Each writer begins with a map record that
has both. Where a map holds a later number of this registry than the witness knows, of a producer
that the witness does not know, the witness is an old copy: what it does not know may be the
mirror's. Nobody acts on that map then. A client that writes such a record stops its readers, and
moves nothing, as with forged evidence. Another pair on the cluster has a registry of its own.
"""

import json
import struct
from collections.abc import Callable, Collection, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, Protocol
from uuid import UUID

from runtime.coordination.witness import WitnessGarbled
from runtime.untrusted_json import read_json, text, whole_number
from wire.net.errors import NetworkFault
from wire.record_batch import Record
from wire.topic_partition import TopicPartition
from wire.values import frozen

CONFIRM_AGAIN_MS: Final = 3_600_000
"""A writer registers again after so long, before it writes: it is never forgotten."""
CLOCKS_APART_MS: Final = 600_000
UNSEEN_KEPT_MS: Final = 24 * 3_600_000
"""A producer without a record in the log is forgotten after so long."""
MOST_UNSEEN: Final = 5_000
"""Of producers without a record in the log the newest are kept."""
MOST_ABOUT: Final = 100_000
"""Anybody who may write to a map can name partitions; so many are remembered."""
MOST_NAMED: Final = 100
"""Unknown producers are named up to so many; the records of all are counted."""
MOST_TOLD_APART: Final = 10_000
"""The records of so many unknown producers are counted by producer."""
LARGEST_NUMBER: Final = 1 << 62
"""Numbers grow, and a map record has room for an int64."""
LOST_AT_MOST: Final = 1_000_000
"""More writers than may have registered since a copy of the witness was made."""
WITHOUT_ID: Final = -1
"""The producer id of every plain producer."""


_NUMBER_KIND: Final = struct.pack(">h", 9)
"""A kind of record of its own in a map."""
_NUMBER: Final = struct.Struct(">hq")
_VALUE_VERSION: Final = 0
_ID_BYTES: Final = 16
NO_ID: Final = UUID(int=0)
NO_TOPIC_ID: Final = NO_ID.hex


class WritersUnknown(NetworkFault):
    """The witness does not say who may write a map; nothing of it can be believed meanwhile."""


class WitnessOutdated(WritersUnknown):
    """The witness is an old copy: it does not know who has registered since."""


class MapMadeAgain(WritersUnknown):
    """The topic is another one than our programs have written, and what it holds may be a part."""


class MapCut(WritersUnknown):
    """The topic ends before what our programs have written."""


class MapGone(WritersUnknown):
    """Nothing of the topic is there, and our programs have written it."""


class Registration(NamedTuple):
    """One registration: the id of its registry, in hex, and its number there."""

    registry: str
    number: int


NOBODY: Final = Registration("", 0)


def number_record(registration: Registration) -> tuple[bytes, bytes]:
    """Return key and value of the record by which the writer of this registration begins."""
    key = _NUMBER_KIND + bytes.fromhex(registration.registry)
    return key, _NUMBER.pack(_VALUE_VERSION, registration.number)


def number_in(key: bytes | None, value: bytes | None) -> Registration | None:
    """Return the registration that a map record names, None for all other records."""
    if key is None or len(key) != len(_NUMBER_KIND) + _ID_BYTES or key[:2] != _NUMBER_KIND:
        return None
    if value is None or len(value) != _NUMBER.size:
        return None
    version, number = _NUMBER.unpack(value)
    return Registration(key[2:].hex(), number) if version == _VALUE_VERSION else None


@frozen
class MapWriters:
    """The producers whose batches in one map topic are believed.

    `registered` has the time of registration in ms by producer id. Batches before `adopted_before`
    in the topic of this id were adopted. `adopts` tells the next writer to adopt what is there.
    `end` is where that topic ended at some time: it holds no less, but where it was restored.
    `registry` is its id, and `number` grows with each producer that registers; registries of
    earlier versions have neither.
    """

    registered: Mapping[int, int] = field(default_factory=dict)
    adopted_before: int = 0
    topic_id: str = ""
    adopts: bool = False
    number: int = 0
    registry: str = ""
    end: int = 0

    def believes(self, producer_id: int, offset: int) -> bool:
        """Tell whether the batch of this producer at this offset is a registered writer's."""
        return self.adopts or offset < self.adopted_before or producer_id in self.registered

    def with_producer(
        self, producer_id: int, at_ms: int, in_log: Collection[int] | None = None
    ) -> "MapWriters":
        """Return the same with a producer; of those that are not `in_log` only what is recent."""
        known = dict(self.registered)
        if in_log is not None:
            unseen = sorted((one for one in known if one not in in_log), key=known.__getitem__)
            recent = {one for one in unseen if at_ms - known[one] < UNSEEN_KEPT_MS}
            for one in unseen:
                if one not in recent or one not in unseen[-MOST_UNSEEN:]:
                    del known[one]
        number = self.number + (producer_id not in self.registered)
        return replace(self, registered={**known, producer_id: at_ms}, number=number)

    @property
    def newest(self) -> Registration:
        """Return the newest registration."""
        return Registration(self.registry, self.number)

    def is_before(self, one: Registration) -> bool:
        """Tell whether this knows the registry, and not that registration, nor adopts it."""
        return not self.adopts and one.registry == self.registry and one.number > self.number

    def is_of_another_topic(self, topic_id: UUID) -> bool:
        """Tell whether our programs have written another topic than that of this id.

        Brokers without ids give zero for all.
        """
        if self.adopts or not self.topic_id:
            return False
        return NO_TOPIC_ID not in {self.topic_id, topic_id.hex} and self.topic_id != topic_id.hex

    def is_cut(self, end: int | None) -> bool:
        """Tell whether a topic that ends here has lost its end; of None nothing is known."""
        return end is not None and not self.adopts and end < self.end

    def is_gone(self, *, is_there: bool) -> bool:
        """Tell whether a topic of which nothing can be read was written by our programs.

        A writer registers once the topic `is_there`, and its first record is noted as the `end`.
        One that is there, and was never noted, waits for it: the writer may lack the right.
        """
        return not self.adopts and bool(self.end or (self.registered and not is_there))

    def unwritten(self) -> "MapWriters":
        """Return the same of a topic that was deleted on purpose: no log of it is expected."""
        return replace(self, registered={}, adopted_before=0, topic_id="", end=0)

    def is_of_another(self, one: Registration) -> bool:
        """Tell whether it is surely another registry's: those of earlier versions have no id."""
        return bool(self.registry) and one.registry != self.registry

    def adopting(self) -> "MapWriters":
        """Return the same with its topic to be adopted as it is, by the next writer.

        What was registered since this copy was made had numbers, too: none is given again.
        """
        if self.adopts:
            return self
        return replace(self, adopts=True, number=self.number + LOST_AT_MOST, end=0)

    def encode(self) -> bytes:
        """Return the JSON of the node."""
        return json.dumps(
            {
                "registered": {str(one): at_ms for one, at_ms in sorted(self.registered.items())},
                "adopted_before": self.adopted_before,
                "topic_id": self.topic_id,
                "adopts": self.adopts,
                "number": self.number,
                "registry": self.registry,
                "end": self.end,
            },
            separators=(",", ":"),
        ).encode()

    @classmethod
    def decode(cls, data: bytes) -> "MapWriters":
        """Return what a node says; raises WitnessGarbled."""
        try:
            found: Any = read_json(data)
            return cls(
                registered={
                    whole_number(int(one)): whole_number(at_ms)
                    for one, at_ms in found["registered"].items()
                },
                adopted_before=whole_number(found["adopted_before"]),
                topic_id=_hex_id(found["topic_id"]),
                adopts=found["adopts"] is True,
                number=whole_number(found.get("number", 0), LARGEST_NUMBER),
                registry=_hex_id(found.get("registry", "")),
                end=whole_number(found.get("end", 0)),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise WitnessGarbled(
                f"witness: no valid map writers: {data[:80]!r}: {error}"
            ) from error


def _hex_id(value: object) -> str:
    known = text(value)
    if known and len(bytes.fromhex(known)) != _ID_BYTES:
        raise ValueError(f"{known!r:.80} is no id")
    return known


TO_ADOPT: Final = MapWriters(adopts=True)
"""What a restored witness says: it has lost the producers, and the map is adopted as it is."""


def _every_topic(_: str) -> bool:
    return True


@dataclass(slots=True)
class UnbelievedWriter:
    """The records of one producer that is not registered."""

    first: int
    """The lowest offset."""
    count: int = 0
    speaks_of_ours: bool = False
    speaks_of_others: bool = False
    """Of other topics than those that the reader is concerned with."""
    is_elsewhere: bool = False
    """It has begun with a registration in another registry than the reader's."""

    @property
    def is_another_pairs(self) -> bool:
        """Whether it says so, or speaks of partitions, and of none of ours."""
        return (self.speaks_of_others or self.is_elsewhere) and not self.speaks_of_ours


@dataclass(slots=True)
class UnbelievedRecords:
    """The records of a map topic that nobody registered has written.

    Pairs of other topics have their maps in the same topic, where their sites have the same names.
    A producer that speaks only of topics that the reader is not `concerned` with is of such a pair,
    and nothing of it is counted or named. So is one that is registered elsewhere and speaks of no
    topic yet: a mirror that has just begun.
    """

    concerned: Callable[[str], bool] = _every_topic
    writers: dict[int, UnbelievedWriter] = field(default_factory=dict)
    """By producer id, the first MOST_TOLD_APART."""
    about: set[TopicPartition] = field(default_factory=set)
    """The partitions that they speak of, up to MOST_ABOUT; not those of plain producers alone."""
    _count_of_more: int = 0

    @property
    def count(self) -> int:
        """The number of records."""
        return self._count_of_more + sum(one.count for one in self._ours.values())

    @property
    def _ours(self) -> dict[int, UnbelievedWriter]:
        return {key: one for key, one in self.writers.items() if not one.is_another_pairs}

    @property
    def producers(self) -> Collection[int]:
        """The producer ids of those that are told apart."""
        return self._ours.keys()

    @property
    def is_of_any(self) -> bool:
        """Whether they speak of too many partitions to tell of which not."""
        return len(self.about) >= MOST_ABOUT

    def speaks_of(self, partition: TopicPartition) -> bool:
        """Tell whether any may speak of this partition."""
        return self.is_of_any or partition in self.about

    def speaks_of_topics(self, of: Callable[[str], bool]) -> bool:
        """Tell whether any may speak of such a topic."""
        return self.is_of_any or any(of(one.topic) for one in self.about)

    def note(
        self,
        producer_id: int,
        offset: int,
        about: Set[TopicPartition] = frozenset(),
        *,
        is_elsewhere: bool = False,
    ) -> None:
        """Count one that speaks of these partitions; no mirror writes as a plain producer.

        `is_elsewhere`: it says that its writer is registered in another registry.
        """
        if not self.is_of_any and producer_id != WITHOUT_ID:
            self.about |= about
        writer = self.writers.get(producer_id)
        if writer is None:
            if len(self.writers) >= MOST_TOLD_APART:
                self._count_of_more += 1
                return
            writer = self.writers[producer_id] = UnbelievedWriter(offset)
        writer.first = min(writer.first, offset)
        writer.count += 1
        writer.is_elsewhere |= is_elsewhere
        for one in about:
            is_ours = self.concerned(one.topic)
            writer.speaks_of_ours |= is_ours
            writer.speaks_of_others |= not is_ours

    def describe(self) -> list[str]:
        """Return a line about each producer, of the first MOST_NAMED."""
        return [
            f"{one.count} of producer id {producer_id}"
            f"{' (a plain producer)' if producer_id == WITHOUT_ID else ''}, from offset {one.first}"
            " on"
            for producer_id, one in sorted(self._ours.items())[:MOST_NAMED]
        ]


async def note_unbelieved(
    writers: "Writers",
    unbelieved: UnbelievedRecords,
    producer_id: int,
    record: Record,
    about: Set[TopicPartition] = frozenset(),
) -> None:
    """Count a record that is not believed, unless the witness should know its writer.

    Raises WritersUnknown, of which WitnessOutdated is one.
    """
    one = number_in(record.key, record.value)
    is_elsewhere = one is not None and await writers.is_elsewhere(one)
    unbelieved.note(producer_id, record.offset, about, is_elsewhere=is_elsewhere)


@dataclass(slots=True)
class MapReading:
    """One reading of a map up to the end that the log had when it began."""

    topic_id: UUID = NO_ID
    """The topic's that is read; of a zero one nothing is compared."""
    end: int | None = None
    """Where the topic ends; where it is not told, nothing is compared."""
    is_told: bool = False
    """Whether the witness has been asked since: it knows everybody who has written before."""

    def begin(self, topic_id: UUID, end: int) -> None:
        """Learn which topic is read, and where it ends, once that is known."""
        self.topic_id, self.end = topic_id, end


class Writers(Protocol):
    """The registry of one topic. All methods raise WritersUnknown."""

    async def begin(self, *, end: int, topic_id: UUID) -> int:
        """Have a registry; return before which offset its map was adopted just now, 0 if not.

        Raises MapMadeAgain for another topic than was written, unless it is empty, and MapCut for
        one that has lost its end.
        """

    async def note_end(self, end: int, /) -> None:
        """Remember that the topic has come so far."""

    async def require_unwritten(self, *, is_there: bool) -> None:
        """Return where nothing was ever written: asked by who finds no topic, or an empty one.

        `is_there` tells which of the two.

        Raises MapGone. A topic may be gone, or be one that a broker has not heard of yet; to take
        it for one that never was would be to take what a mirror has brought for the site's own.
        """

    async def forget_log(self) -> None:
        """Take note that the topic was deleted on purpose."""

    async def register(
        self, producer_id: int, in_log: Collection[int] | None = None, /
    ) -> Registration:
        """Return the newest one once everybody who reads the map may believe this producer."""

    async def believes(self, producer_id: int, offset: int, reading: MapReading, /) -> bool:
        """Tell whether a batch is to be believed; raises MapMadeAgain and MapCut."""

    async def is_elsewhere(self, one: Registration, /) -> bool:
        """Tell whether a registration is of another registry.

        Raises WitnessOutdated where the witness is older than one of its own.
        """


def begun_writers(known: MapWriters, end: int, topic_id: str, now_ms: int) -> MapWriters:
    """Return the registry of a topic with this id that ends here, at the start of a writer."""
    if known.adopts:
        return replace(known, adopts=False, adopted_before=end, topic_id=topic_id, end=end)
    if known.topic_id != topic_id:
        since_ms = now_ms - CONFIRM_AGAIN_MS - CLOCKS_APART_MS
        at_work = {one: at_ms for one, at_ms in known.registered.items() if at_ms >= since_ms}
        return replace(known, registered=at_work, adopted_before=0, topic_id=topic_id, end=0)
    # Brokers without ids: that it is empty tells that it was made again.
    return known if end else replace(known, end=0)

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
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol
from uuid import UUID

from runtime.coordination.witness import WitnessGarbled
from runtime.foreign_json import read_json, text, whole_number
from wire.net.errors import NetworkFault

CONFIRM_AGAIN_MS: Final = 3_600_000
"""A writer registers again after so long, before it writes: it is never forgotten."""
CLOCKS_APART_MS: Final = 600_000
UNSEEN_KEPT_MS: Final = 24 * 3_600_000
"""A producer without a record in the log is forgotten after so long."""
MOST_UNSEEN: Final = 5_000
"""Of producers without a record in the log the newest are kept."""
MOST_NAMED: Final = 100
"""Foreign producers are named up to so many; the records of all are counted."""
WITHOUT_ID: Final = -1
"""The producer id of every plain producer."""


class WritersUnknown(NetworkFault):
    """The witness does not say who may write a map; nothing of it can be believed meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MapWriters:
    """The producers whose batches in one map topic are believed.

    `registered` has the time of registration in ms by producer id. Batches before `adopted_before`
    in the topic of this id were adopted. `adopts` tells the next writer to adopt what is there.
    """

    registered: Mapping[int, int] = field(default_factory=dict)
    adopted_before: int = 0
    topic_id: str = ""
    adopts: bool = False

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
        return replace(self, registered={**known, producer_id: at_ms})

    def encode(self) -> bytes:
        """Return the JSON of the node."""
        return json.dumps(
            {
                "registered": {str(one): at_ms for one, at_ms in sorted(self.registered.items())},
                "adopted_before": self.adopted_before,
                "topic_id": self.topic_id,
                "adopts": self.adopts,
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
                topic_id=text(found["topic_id"]),
                adopts=found["adopts"] is True,
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise WitnessGarbled(
                f"witness: no valid map writers: {data[:80]!r}: {error}"
            ) from error


TO_ADOPT: Final = MapWriters(adopts=True)
"""What a restored witness says: it has lost the producers, and the map is adopted as it is."""


@dataclass(slots=True)
class ForeignRecords:
    """The records of a map topic that nobody registered has written."""

    count: int = 0
    by_producer: dict[int, tuple[int, int]] = field(default_factory=dict)
    """The first offset and the number of records of each, of the first MOST_NAMED."""

    def note(self, producer_id: int, offset: int) -> None:
        """Count one."""
        self.count += 1
        if producer_id in self.by_producer or len(self.by_producer) < MOST_NAMED:
            first, times = self.by_producer.get(producer_id, (offset, 0))
            self.by_producer[producer_id] = (min(first, offset), times + 1)

    def describe(self) -> list[str]:
        """Return a line about each producer."""
        return [
            f"{times} of producer id {producer_id}"
            f"{' (a plain producer)' if producer_id == WITHOUT_ID else ''}, from offset {first} on"
            for producer_id, (first, times) in sorted(self.by_producer.items())
        ]


@dataclass(slots=True)
class Reading:
    """One reading of a map up to the end that the log had when it began."""

    is_told: bool = False
    """Whether the witness has been asked since: it knows everybody who has written before."""


class Writers(Protocol):
    """The registry of one topic. All methods raise WritersUnknown."""

    async def begin(self, *, end: int, topic_id: UUID) -> int:
        """Have a registry; return before which offset its map was adopted just now, 0 if not."""

    async def register(self, producer_id: int, in_log: Collection[int] | None = None, /) -> None:
        """Return when everybody who reads the map may believe this producer."""

    async def believes(self, producer_id: int, offset: int, reading: Reading, /) -> bool:
        """Tell whether a batch is to be believed."""


def begun_writers(known: MapWriters, end: int, topic_id: str, now_ms: int) -> MapWriters:
    """Return the registry of a topic with this id that ends here, at the start of a writer."""
    if known.adopts:
        return replace(known, adopts=False, adopted_before=end, topic_id=topic_id)
    if known.topic_id != topic_id:
        since_ms = now_ms - CONFIRM_AGAIN_MS - CLOCKS_APART_MS
        at_work = {one: at_ms for one, at_ms in known.registered.items() if at_ms >= since_ms}
        return replace(known, registered=at_work, adopted_before=0, topic_id=topic_id)
    return known

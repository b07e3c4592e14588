"""The batches of one target, sorted into the mirror's and others' by their headers. Pure.

    target  |--aaaaaaaa--|xx|--bbb--|xxx|      a, b: the mirror's batches     x: others' ("foreign")
                                    mirrored end

A log's end says nothing of who has written there. The mirror's batches are known by their producer
id, and their sequence is their place. So what is mirrored ends behind the last of them, and what
lies between them begins runs.
"""

from collections.abc import Iterator, Set
from typing import NamedTuple, Protocol

from offset_translation.map_records import Reached
from offset_translation.offset_map import OffsetMap
from offset_translation.runs import Place
from offset_translation.tail import Tail, TailGarbled
from wire.values import frozen


class UnmirroredPart(NamedTuple):
    """Offsets [start, stop) of a target that no mirror has written."""

    start: int
    stop: int


class WrittenBatch(Protocol):
    """A batch as its header tells of it: its writer and its offsets."""

    @property
    def base_offset(self) -> int:
        """The offset of the first record."""

    @property
    def last_offset_delta(self) -> int:
        """The distance to the last record, as it was written."""

    @property
    def next_offset(self) -> int:
        """The offset behind the last record."""

    @property
    def producer_id(self) -> int:
        """The writer; -1 of a plain producer."""

    @property
    def base_sequence(self) -> int:
        """The writer's number of the first record."""

    @property
    def is_control(self) -> bool:
        """Whether it is a marker."""


@frozen
class MirroredEnd:
    """Where one partition's mirrored part ends on both sides, and what else its target holds."""

    source_end: int
    target_end: int
    runs: tuple[tuple[Place, int], ...] = ()
    """(place, target offset) of the runs that foreign records begin and the map does not have."""
    foreign: tuple[tuple[int, int], ...] = ()
    """Target offsets [start, stop) that no mirror has written, in order."""
    untold: str = ""
    """Why the log does not tell its mirrored end, which is taken for all of it then."""


@frozen
class Mixed:
    """The end of a target that is the mirror's alone by its settings, and holds foreign records."""

    reached: Reached
    """Where the mirror's own writing ends."""
    runs: tuple[tuple[Place, int], ...]
    """(place, target offset) of the runs that the map does not have, or has elsewhere."""
    foreign: tuple[UnmirroredPart, ...]
    """The foreign parts behind the last place of which the map is sure, in order."""

    def applied_to(self, offset_map: OffsetMap, log_end: int) -> OffsetMap:
        """Return a copy of a map, with these runs and this end, of a target that ends there."""
        twin = offset_map.copy()
        for place, target in self.runs:
            twin.begin_run(place, target)
        twin.advance(log_end)
        twin.reach(self.reached.place)
        return twin


class TargetScan:
    """The batches of one target from a sure place on, sorted into the mirror's and others'."""

    def __init__(self, offset_map: OffsetMap, mirror: int | None, mirrors: Set[int]) -> None:
        """Know the mirror by its producer id, and all mirrors that ever wrote here by theirs."""
        self.offset_map = offset_map.copy()
        self.has_seen_mirror = False
        self._mirror = mirror
        self._mirrors = mirrors
        self._foreign: list[UnmirroredPart] = []
        self._since: list[UnmirroredPart] = []
        """Parts by others behind the mirror's last batch."""

    @property
    def foreign(self) -> tuple[UnmirroredPart, ...]:
        """The parts that others have written, in order."""
        return (*self._foreign, *self._since)

    def take(self, tail: Tail, batch: WrittenBatch) -> None:
        """Take the next batch; raises TailGarbled."""
        if is_written_by(self._mirror, batch):
            runs = len(tail.runs)
            tail.take(batch.base_offset, batch.base_sequence, batch.last_offset_delta + 1)
            # Without a new run what lies before was foretold: MirrorMaker has written it.
            self._end_part(is_foreign=len(tail.runs) > runs)
        elif batch.producer_id in self._mirrors and not batch.is_control:
            if self._since and self.has_seen_mirror:
                raise TailGarbled(
                    f"the batch at offset {batch.base_offset} is an earlier mirror's, and lies"
                    " behind others'"
                )
            shift = tail.reached.target_end - tail.place
            tail.place = max(tail.place, Place(batch.next_offset - shift))
            self._end_part(is_foreign=False)
        else:
            _extend(self._since, batch.base_offset, batch.next_offset)

    def mirrored_end(self, tail: Tail) -> MirroredEnd:
        """Return the end behind the mirror's last batch."""
        runs = self.new_runs(tail)
        for place, target in runs:
            self.offset_map.begin_run(place, target)
        self.offset_map.advance(tail.reached.target_end)
        self.offset_map.reach(tail.place)
        return MirroredEnd(
            source_end=self.offset_map.mirrored_source_end or 0,
            target_end=tail.reached.target_end,
            runs=runs,
            foreign=self.foreign,
        )

    def new_runs(self, tail: Tail) -> tuple[tuple[Place, int], ...]:
        """Return the runs of a tail that the map does not have as they are."""
        known = set(self.offset_map.runs)
        return tuple(run for run in tail.runs if run not in known)

    def _end_part(self, *, is_foreign: bool) -> None:
        if is_foreign:
            self._foreign += self._since
        self._since.clear()
        self.has_seen_mirror = True


def is_written_by(producer_id: int | None, batch: WrittenBatch) -> bool:
    """Whether a batch is this producer's, and no marker."""
    return batch.producer_id == producer_id and not batch.is_control


def offsets_to_try(sure: int, end: int) -> Iterator[int]:
    """Yield offsets behind a sure one at which a batch of the mirror may lie as foretold.

    What others have written most likely lies near the end. So they are tried from there, at
    distances that double.
    """
    distance = 2
    while end - distance > sure:
        yield end - distance
        distance *= 2


def _extend(parts: list[UnmirroredPart], start: int, stop: int) -> None:
    """Add a part, which makes the last one longer where it follows it."""
    if parts and parts[-1].stop == start:
        parts[-1] = UnmirroredPart(parts[-1].start, stop)
    else:
        parts.append(UnmirroredPart(start, stop))

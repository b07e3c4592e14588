"""The exact map of one mirrored partition: which target offset holds which source record.

    source  |--aaaa--..--bbbbb--|      .. a hole: a marker, an aborted batch, or compacted away
    place   |--aaaabbbbb--|            pieces: (2, 2) (10, 6): where they begin on both sides
    target  |--aaaabxbbbb--|           x: a record of the target's own; runs: (7, 8)

A *place* is a record's number in the mirrored stream: its target offset, less the records that
others have written before it. Pieces join the source's offsets to places and are durable before
their first record is produced; runs join places to the target's offsets and can be read off the
target's log. Where nobody else writes, place and target offset are the same and there is no run.

Where the last piece ends follows from the target's log end, so nothing has to be written while an
ordinary topic is mirrored, and the position after a crash is read off the target's log.

A *seal* says where the mirrored part ends: from there on the target's log grows by its own
writers, until a run begins behind it.

Invariant, for consecutive pieces (s, p) and (s', p') with p < p': s' - s >= p' - p.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from offset_translation.runs import InconsistentPiece, Place, Runs
from wire.values import frozen

__all__ = ["Beyond", "InconsistentPiece", "Obsolete", "OffsetMap", "Piece"]


@frozen
class Piece:
    """``count`` records that lie one behind the other on both sides."""

    source_start: int
    target_start: int
    count: int

    @property
    def source_end(self) -> int:
        """The source offset behind the last record."""
        return self.source_start + self.count

    @property
    def target_end(self) -> int:
        """The target offset behind the last record."""
        return self.target_start + self.count


class MapHole(NamedTuple):
    """Source offsets of which the map says that they hold nothing to be mirrored."""

    place: Place
    """The place of the first record behind it."""
    begin: int
    end: int


class Beyond(NamedTuple):
    """Announcements of records that are not on the target (any more)."""

    pieces: tuple[Place, ...]
    runs: tuple[Place, ...]
    seals: tuple[int, ...]
    """Target offsets."""


class Obsolete(NamedTuple):
    """Pieces and runs that are not needed any more, as their records are gone on both sides."""

    place: Place
    """Before it nothing need be known."""
    pieces: tuple[Place, ...]
    runs: tuple[Place, ...]


class OffsetMap:
    """Pieces, runs and seals of one partition in order, and how far the target's log reaches.

    16 bytes a hole; a lookup is one binary search. Pieces beyond the target's end may be held:
    they were announced, but the records behind them have not arrived.
    """

    __slots__ = ("_place", "_place_end", "_runs", "_seal", "_seals", "_source", "_target_end")

    def __init__(self) -> None:
        self._source = array("q")
        self._place = array("q")
        self._runs = Runs()
        self._seals: dict[int, int] = {}
        self._seal: int | None = None
        """The seal, by its target offset, that the target's end is at or behind."""
        self._place_end = Place(0)
        self._target_end = 0

    @classmethod
    def from_starts(cls, starts: Iterable[tuple[int, int]], target_end: int) -> "OffsetMap":
        """Build from ``(source_start, place)`` pairs in the order of their announcement."""
        offset_map = cls()
        for source_start, place in starts:
            offset_map.announce(source_start, Place(place))
        offset_map.advance(target_end)
        return offset_map

    def copy(self) -> "OffsetMap":
        """Return a map that changes apart from this one."""
        twin = OffsetMap()
        twin._source = self._source[:]
        twin._place = self._place[:]
        twin._runs = self._runs.copy()
        twin._seals = dict(self._seals)
        twin._seal = self._seal
        twin._place_end = self._place_end
        twin._target_end = self._target_end
        return twin

    # --- changes -----------------------------------------------------------------------------

    def announce(self, source_start: int, place: Place) -> None:
        """Begin a piece; in the stead of the one that began at this place, if one did.

        The order of announcements does not matter, so that a compacted topic may hold them and a
        worker that wakes up late may repeat them. A start that only continues its predecessor is
        not kept. Raises InconsistentPiece.
        """
        index = bisect_left(self._place, place)
        following = index + (index < len(self._place) and self._place[index] == place)
        self._check(index, following, source_start, place)
        del self._source[index:following]
        del self._place[index:following]
        if index == 0 or self._source[index - 1] - self._place[index - 1] != source_start - place:
            self._source.insert(index, source_start)
            self._place.insert(index, place)

    def withdraw(self, place: Place) -> None:
        """Take back the piece that begins at this place, if one does."""
        index = bisect_left(self._place, place)
        if index < len(self._place) and self._place[index] == place:
            del self._source[index]
            del self._place[index]

    def begin_run(self, place: Place, target_start: int) -> None:
        """Begin a run: records from this place on lie from this target offset on.

        Raises InconsistentPiece.
        """
        self._runs.put(place, target_start)

    def withdraw_run(self, place: Place) -> None:
        """Take back the run that begins at this place, if one does."""
        self._runs.withdraw(place)

    def seal(self, source_end: int, target_end: int) -> None:
        """Bound the mirrored part: from ``target_end`` on the target's records are its own."""
        self._seals[target_end] = source_end
        self.advance(self._target_end)

    def unseal(self, target_end: int) -> None:
        """Take back the seal at this target offset, if there is one."""
        self._seals.pop(target_end, None)
        self.advance(self._target_end)

    def advance(self, target_end: int) -> None:
        """Take note of the target's log end; it may go back (a lost tail).

        What lies behind the last run, and behind no seal, is taken for mirrored. An empty run at a
        seal belongs to what comes behind the target's own records: a seal is written where the next
        record was to lie, not where the last one ended. Where others write beside the mirror,
        ``reach`` afterwards.
        """
        self._target_end = target_end
        place, start = self._runs.last_before(target_end)
        seals = [at for at in self._seals if start <= at <= target_end]
        self._seal = max(seals, default=None)
        self._place_end = Place(place - start + (target_end if self._seal is None else self._seal))

    def reach(self, place_end: Place) -> None:
        """Say that exactly the places before this one are on the target; the rest is foreign."""
        self._place_end = place_end

    def obsolete(self, source_log_start: int, target_log_start: int) -> Obsolete:
        """Return the pieces that lie wholly below both log starts, and the runs before them.

        The last piece at or below the target's end always stays: it is the position.
        """
        last = self._stop() - 1
        keep = 0
        while keep < last:
            end = Place(self._place[keep + 1])
            source_end = self._source[keep] + end - self._place[keep]
            if self._runs.end_of(end) > target_log_start or source_end > source_log_start:
                break
            keep += 1
        place = Place(self._place[keep]) if keep else self.first_place
        runs = self._runs.before(place) if keep else ()
        return Obsolete(place=place, pieces=tuple(map(Place, self._place[:keep])), runs=runs)

    def forget_before(self, place: Place) -> None:
        """Drop the pieces that begin before this place, and the runs that end before it."""
        index = bisect_left(self._place, place)
        del self._source[:index]
        del self._place[:index]
        self._runs.forget_before(place)

    def trim(self, source_log_start: int, target_log_start: int) -> tuple[Place, ...]:
        """Drop what is obsolete; return the places of the pieces that were dropped."""
        found = self.obsolete(source_log_start, target_log_start)
        if found.pieces:
            self.forget_before(found.place)
        return found.pieces

    # --- what it says ------------------------------------------------------------------------

    @property
    def target_end(self) -> int:
        """The target's log end as far as is known, foreign records included."""
        return max(self._target_end, self._runs.end_of(self._place_end))

    @property
    def place_end(self) -> Place:
        """The place of the next record to be mirrored."""
        return self._place_end

    @property
    def first_place(self) -> Place:
        """The place before which nothing is known."""
        return Place(self._place[0]) if self._stop() else self._place_end

    def source_start_at(self, place: Place) -> int | None:
        """Return the source offset of the piece that begins at exactly this place, None if none."""
        index = bisect_left(self._place, place)
        is_there = index < len(self._place) and self._place[index] == place
        return self._source[index] if is_there else None

    def source_end_at_seal(self, target_end: int) -> int | None:
        """Return the source end of the seal at this target offset, None if there is none."""
        return self._seals.get(target_end)

    @property
    def runs(self) -> Runs:
        """Where the places lie; to be read."""
        return self._runs

    @property
    def is_sealed(self) -> bool:
        """Whether the target's end belongs to the target's own writers."""
        return self._seal is not None

    @property
    def sealed_at(self) -> int | None:
        """The target offset from which on the log is the target's own; None if it is not."""
        return self._seal

    @property
    def mirrored_source_start(self) -> int | None:
        """The first source offset that translates; None if nothing was announced."""
        if self._stop():
            return self._source[0]
        return None if self._seal is None else self._seals[self._seal]

    @property
    def mirrored_source_end(self) -> int | None:
        """The source offset before which everything is on the target; None if nothing is."""
        sealed = None if self._seal is None else self._seals[self._seal]
        last = self._stop() - 1
        if last < 0:
            return sealed
        end = self._source[last] + self._place_end - self._place[last]
        return end if sealed is None else max(end, sealed)

    @property
    def mirrored_target_end(self) -> int | None:
        """The target offset behind the last mirrored record; None if nothing was announced."""
        if self._stop() == 0 and self._seal is None:
            return None
        return self._runs.end_of(self._place_end)

    @property
    def writing_end(self) -> int:
        """The target offset at which the next mirrored record was to lie, as far as is known."""
        return self._runs.start_of(self._place_end)

    @property
    def last_hole(self) -> MapHole | None:
        """The hole behind the last mirrored record, if one was announced there; else None."""
        last = self._stop() - 1
        if last < 1 or self._seal is not None or self._place[last] != self._place_end:
            return None
        place, before = self._place[last], last - 1
        begin = self._source[before] + place - self._place[before]
        return MapHole(place=Place(place), begin=begin, end=self._source[last])

    def beyond(self) -> Beyond:
        """Return the announcements of records beyond the ends that are known now."""
        return Beyond(
            pieces=tuple(map(Place, self._place[bisect_right(self._place, self._place_end) :])),
            runs=self._runs.beyond(self._place_end, self._target_end),
            seals=tuple(sorted(at for at in self._seals if at > self._target_end)),
        )

    def pieces(self) -> Iterator[Piece]:
        """Yield the mirrored pieces up to the target's end; the last may be empty (a hole)."""
        stop = self._stop()
        for index in range(stop):
            source, place = self._source[index], Place(self._place[index])
            end = self._end(index, stop)
            if end == place:
                yield Piece(source_start=source, target_start=self._runs.end_of(place), count=0)
            for first, target, count in self._runs.within(place, end):
                yield Piece(source_start=source + first - place, target_start=target, count=count)

    def __len__(self) -> int:
        """Return the number of boundaries held."""
        return len(self._place) + len(self._runs) + len(self._seals)

    # --- lookups, for offset_translation.translation and .both_ways ----------------------------

    def place_of_source(self, source_offset: int) -> Place | None:
        """Return the place of the first record at or behind this source offset.

        The answer is ``place_end`` at the mirrored end, and None beyond it. Before the oldest piece
        it is that piece's place: a caller that has to know compares with ``mirrored_source_start``.
        """
        stop = self._stop()
        index = bisect_right(self._source, source_offset, 0, stop) - 1
        if 0 <= index < stop - 1:
            # Not in the last piece: before the mirrored end for certain, and most lookups are.
            place = self._place[index] + source_offset - self._source[index]
            return Place(min(place, self._place[index + 1]))
        if index >= 0 and self._seal is None:
            place = self._place[index] + source_offset - self._source[index]
            return Place(place) if place <= self._place_end else None
        end = self.mirrored_source_end
        if end is None or source_offset > end:
            return None
        if index < 0:
            return self.first_place
        place = self._place[index] + source_offset - self._source[index]
        return Place(min(place, self._end(index, stop)))

    def source_of_place(self, place: Place) -> int | None:
        """Return the source offset of the record of this place; None if nothing is known of it.

        For ``place_end`` that is the source offset to be mirrored next.
        """
        if place == self._place_end and self._seal is not None:
            return self.mirrored_source_end
        index = bisect_right(self._place, place, 0, self._stop()) - 1
        if index < 0 or place > self._place_end:
            return None
        return self._source[index] + place - self._place[index]

    def place_of_target(self, target_offset: int) -> Place:
        """Return the place of the first mirrored record at or behind this target offset."""
        place = self._runs.place_of(target_offset)
        return min(max(place, self.first_place), self._place_end)

    def mirrored_until(self, target_offset: int) -> int:
        """Return the first target offset from this one on that no mirrored record lies at.

        Forgotten records of the oldest run count as lying one behind the other from its begin.
        """
        place, first = self._runs.place_of(target_offset), self._runs.begin_of(self.first_place)
        while first <= place < self._place_end:
            if self._runs.start_of(place) != target_offset:
                break
            _, _, count = next(self._runs.within(place, self._place_end))
            target_offset, place = target_offset + count, Place(place + count)
        return target_offset

    def _stop(self) -> int:
        """Return how many pieces begin at or before the mirrored end."""
        if self._place and self._place[-1] <= self._place_end:
            return len(self._place)
        return bisect_right(self._place, self._place_end)

    def _end(self, index: int, stop: int) -> Place:
        """Return the place at which a piece ends."""
        return Place(self._place[index + 1]) if index + 1 < stop else self._place_end

    def _check(self, index: int, following: int, source: int, place: Place) -> None:
        """Refuse a piece that contradicts its neighbours: holes are on the source only."""
        for other in (index - 1, following):
            if 0 <= other < len(self._place):
                there = (self._source[other], self._place[other])
                first, second = sorted(((source, place), there), key=lambda one: one[1])
                if second[0] - first[0] < second[1] - first[1]:
                    raise InconsistentPiece(f"piece ({source}, {place}) contradicts {there}")

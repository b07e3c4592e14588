"""Runs: the target offsets of mirrored records, where others write to the target as well.

    place   0         4    5      9          the number of a record in the mirrored stream
    target  |--aaaa--|xx|--b--|x|--cccc--|   x: records of the target's own ("foreign")
            0        4  6     7 8            runs: (4, 6) (5, 8); before the first, place = offset

A place says nothing of the source and never changes, so it is what sequences are made of; where
it lies is read off the target's log. Without foreign records there is no run at all.

Invariant: from run to run the shift (target - place) grows by the foreign records in between.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NewType

Place = NewType("Place", int)
"""The ordinal of a record in the mirrored stream: its target offset, less the records that others
have written before it."""


class InconsistentPiece(ValueError):
    """A boundary that cannot be true together with those before it."""


class Runs:
    """Runs of one partition in order; 16 bytes for each, a lookup is one binary search."""

    __slots__ = ("_place", "_target")

    def __init__(self) -> None:
        self._place = array("q")
        self._target = array("q")

    def copy(self) -> "Runs":
        """Return runs that change apart from these."""
        twin = Runs()
        twin._place = self._place[:]
        twin._target = self._target[:]
        return twin

    def put(self, place: Place, target: int) -> None:
        """Begin a run: records from this place on lie from this offset on; replaces a run there.

        Raises InconsistentPiece.
        """
        index = bisect_left(self._place, place)
        following = index + (index < len(self._place) and self._place[index] == place)
        before = self._shift(index - 1)
        if target - place < before:
            raise InconsistentPiece(f"run ({place}, {target}) begins before the one before it")
        if following < len(self._place) and target - place > self._shift(following):
            raise InconsistentPiece(f"run ({place}, {target}) reaches into the one behind it")
        del self._place[index:following]
        del self._target[index:following]
        if target - place > before:
            self._place.insert(index, place)
            self._target.insert(index, target)

    def withdraw(self, place: Place) -> None:
        """Take back the run that begins at this place, if one does."""
        index = bisect_left(self._place, place)
        if index < len(self._place) and self._place[index] == place:
            del self._place[index]
            del self._target[index]

    def start_at(self, place: Place) -> int | None:
        """Return the offset of the run that begins at exactly this place, None if none does."""
        index = bisect_left(self._place, place)
        is_there = index < len(self._place) and self._place[index] == place
        return self._target[index] if is_there else None

    def start_of(self, place: Place) -> int:
        """Return the offset at which the record of this place lies, foreign ones before it."""
        return place + self._shift(bisect_right(self._place, place) - 1)

    def end_of(self, place: Place) -> int:
        """Return the offset behind the record before this place: foreign ones may follow."""
        return place + self._shift(bisect_left(self._place, place) - 1)

    def begin_of(self, place: Place) -> Place:
        """Return the place at which the run of this one begins; itself before all runs."""
        index = bisect_right(self._place, place) - 1
        return place if index < 0 else Place(self._place[index])

    def place_of(self, target: int) -> Place:
        """Return how many places begin before this offset, in a stream without end."""
        index = bisect_right(self._target, target) - 1
        place = target - self._shift(index)
        return Place(place if index + 1 == len(self._place) else min(place, self._place[index + 1]))

    def last_before(self, target: int) -> tuple[Place, int]:
        """Return the last run that begins at or before this offset; (0, 0) before all."""
        index = bisect_right(self._target, target) - 1
        return (Place(0), 0) if index < 0 else (Place(self._place[index]), self._target[index])

    def beyond(self, place_end: Place, target_end: int) -> tuple[Place, ...]:
        """Return the places of runs that begin behind these ends."""
        first = min(bisect_right(self._place, place_end), bisect_right(self._target, target_end))
        return tuple(map(Place, self._place[first:]))

    def before(self, place: Place) -> tuple[Place, ...]:
        """Return the places of the runs that no place from this one on is in."""
        return tuple(map(Place, self._place[: max(0, bisect_right(self._place, place) - 1)]))

    def forget_before(self, place: Place) -> None:
        """Drop the runs that no place from this one on is in."""
        count = len(self.before(place))
        del self._place[:count]
        del self._target[:count]

    def gaps(self) -> Iterator[tuple[int, int]]:
        """Yield the target offsets [start, stop) of the foreign records before each run."""
        for place, target in self:
            if self.end_of(place) < target:
                yield self.end_of(place), target

    def within(self, first: Place, end: Place) -> Iterator[tuple[Place, int, int]]:
        """Yield (place, target offset, count) of each run's part of the places [first, end)."""
        while first < end:
            index = bisect_right(self._place, first)
            stop = end if index == len(self._place) else min(end, Place(self._place[index]))
            yield first, first + self._shift(index - 1), stop - first
            first = stop

    def __iter__(self) -> Iterator[tuple[Place, int]]:
        """Yield (place, target offset) of each run."""
        return zip(map(Place, self._place), self._target, strict=True)

    def __len__(self) -> int:
        """Return the number of runs."""
        return len(self._place)

    def _shift(self, index: int) -> int:
        return 0 if index < 0 else self._target[index] - self._place[index]

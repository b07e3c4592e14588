"""The exact map of one mirrored partition: which target offset holds which source record.

    source  |--aaaa--..--bbbbb--|      .. a hole: a marker, an aborted batch, or compacted away
    target  |--aaaabbbbb--|            pieces: (2, 2, 4) (10, 6, 5)

Durable are only the places where a piece begins; a piece ends where the next boundary lies on the
target, and the last one ends at the target's own log end. So nothing has to be written while an
ordinary topic is mirrored, and the position after a crash is read off the target log.

A *seal* is a boundary too: from there on the target's log grows by writes of its own ("foreign"
records), which belong to no piece.

Invariants, for consecutive boundaries (s, t) and (s', t') with t < t':
 - s' - s >= t' - t behind a mirrored piece (holes are on the source only), s' >= s behind a seal;
 - no two boundaries share a target offset.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass


class InconsistentPiece(ValueError):
    """A boundary that cannot be true together with those before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
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


class OffsetMap:
    """Boundaries of one partition in order, and how far the target's log reaches.

    17 bytes a hole; a lookup is one binary search. Boundaries beyond the target's end may be held:
    they were announced, but the records behind them have not arrived.
    """

    __slots__ = ("_is_foreign", "_source", "_target", "_target_end")

    def __init__(self) -> None:
        """Begin with nothing announced and an empty target."""
        self._source = array("q")
        self._target = array("q")
        self._is_foreign = bytearray()
        self._target_end = 0

    @classmethod
    def from_starts(cls, starts: Iterable[tuple[int, int]], target_end: int) -> "OffsetMap":
        """Build from ``(source_start, target_start)`` pairs in the order of their announcement."""
        offset_map = cls()
        for source_start, target_start in starts:
            offset_map.announce(source_start, target_start)
        offset_map.advance(target_end)
        return offset_map

    def copy(self) -> "OffsetMap":
        """Return a map that changes apart from this one."""
        twin = OffsetMap()
        twin._source = self._source[:]
        twin._target = self._target[:]
        twin._is_foreign = self._is_foreign[:]
        twin._target_end = self._target_end
        return twin

    # --- changes -----------------------------------------------------------------------------

    def announce(self, source_start: int, target_start: int) -> None:
        """Begin a piece; in the place of the one that began at this target offset, if one did.

        The order of announcements does not matter, so that a compacted topic may hold them and a
        worker that wakes up late may repeat them. A start that only continues its predecessor is
        not kept. Where a seal stands, it wins. Raises InconsistentPiece.
        """
        index = bisect_left(self._target, target_start)
        is_taken = index < len(self._target) and self._target[index] == target_start
        if is_taken and self._is_foreign[index]:
            return
        self._check(index, index + is_taken, source_start, target_start, is_foreign=False)
        if is_taken:
            self._remove(index)
        if not self._continues(index - 1, source_start, target_start):
            self._insert(index, source_start, target_start, is_foreign=False)

    def seal(self, source_end: int, target_end: int) -> None:
        """Bound the mirrored part: the target's records from ``target_end`` on are its own.

        Raises InconsistentPiece.
        """
        index = bisect_left(self._target, target_end)
        is_taken = index < len(self._target) and self._target[index] == target_end
        self._check(index, index + is_taken, source_end, target_end, is_foreign=True)
        if is_taken:
            self._remove(index)
        self._insert(index, source_end, target_end, is_foreign=True)

    def withdraw(self, target_start: int) -> None:
        """Take back the piece that begins at this target offset, if one does."""
        self._withdraw(target_start, is_foreign=False)

    def unseal(self, target_end: int) -> None:
        """Take back the seal at this target offset, if there is one."""
        self._withdraw(target_end, is_foreign=True)

    def _withdraw(self, target_offset: int, *, is_foreign: bool) -> None:
        index = bisect_left(self._target, target_offset)
        if (
            index < len(self._target)
            and self._target[index] == target_offset
            and bool(self._is_foreign[index]) == is_foreign
        ):
            self._remove(index)

    def advance(self, target_end: int) -> None:
        """Take note of the target's log end; it may go back (a lost tail)."""
        self._target_end = target_end

    def trim(self, source_log_start: int, target_log_start: int) -> tuple[int, ...]:
        """Drop the pieces that lie wholly below both log starts; return their target starts.

        The last boundary at or below the target's end always stays: it is the position. The
        returned starts may be withdrawn from the durable map, oldest first.
        """
        last = self._last_index(self._target_end)
        keep_from = 0
        while keep_from < last:
            source_end = self._source[keep_from] + self._extent(keep_from, last + 1)
            if self._target[keep_from + 1] > target_log_start or source_end > source_log_start:
                break
            keep_from += 1
        trimmed = tuple(self._target[:keep_from])
        del self._source[:keep_from]
        del self._target[:keep_from]
        del self._is_foreign[:keep_from]
        return trimmed

    # --- what it says ------------------------------------------------------------------------

    @property
    def target_end(self) -> int:
        """The target's log end as last told, foreign records included."""
        return self._target_end

    @property
    def is_sealed(self) -> bool:
        """Whether the target's end belongs to the target's own writers."""
        return self.is_sealed_at(self._target_end)

    def is_sealed_at(self, target_end: int) -> bool:
        """Whether a log that ends there would be at or behind a seal, nothing mirrored since."""
        last = self._last_index(target_end)
        return last >= 0 and bool(self._is_foreign[last])

    @property
    def mirrored_source_start(self) -> int | None:
        """The first source offset that translates; None if nothing was announced."""
        return self._source[0] if self._last_index(self._target_end) >= 0 else None

    @property
    def mirrored_source_end(self) -> int | None:
        """The source offset before which everything is on the target; None if nothing is."""
        last = self._last_index(self._target_end)
        return None if last < 0 else self._source[last] + self._extent(last, last + 1)

    @property
    def mirrored_target_end(self) -> int | None:
        """The target offset behind the last mirrored record; None if nothing was announced."""
        last = self._last_index(self._target_end)
        return None if last < 0 else self._target[last] + self._extent(last, last + 1)

    def source_position(self, target_end: int) -> int | None:
        """Return the next source offset to fetch when the target's log ends at ``target_end``.

        None if nothing was announced at or below it, or if foreign records lie before it.
        """
        last = self._last_index(target_end)
        if last < 0 or (self._is_foreign[last] and target_end != self._target[last]):
            return None
        return self._source[last] + target_end - self._target[last]

    def announced_beyond(self, target_end: int) -> tuple[int, ...]:
        """Return the target starts of boundaries whose records have not arrived."""
        return tuple(self._target[bisect_right(self._target, target_end) :])

    def pieces(self) -> Iterator[Piece]:
        """Yield the mirrored pieces up to the target's end; the last may be empty (a hole)."""
        stop = self._last_index(self._target_end) + 1
        for index in range(stop):
            if not self._is_foreign[index]:
                yield Piece(
                    source_start=self._source[index],
                    target_start=self._target[index],
                    count=self._extent(index, stop),
                )

    def __len__(self) -> int:
        """Return the number of boundaries held."""
        return len(self._target)

    # --- lookups, for offset_translation.translation -------------------------------------------

    def locate_source(self, source_offset: int) -> "Found | None":
        """Return the last boundary at or before this source offset; None if it lies before all."""
        stop = self._last_index(self._target_end) + 1
        index = bisect_right(self._source, source_offset, 0, stop) - 1
        return None if index < 0 else self._found(index, stop)

    def locate_target(self, target_offset: int) -> "Found | None":
        """Return the last boundary at or before this target offset; None if it lies before all."""
        stop = self._last_index(self._target_end) + 1
        index = bisect_right(self._target, target_offset, 0, stop) - 1
        return None if index < 0 else self._found(index, stop)

    def _found(self, index: int, stop: int) -> "Found":
        follows_seal_at = None
        if index > 0 and self._is_foreign[index - 1]:
            follows_seal_at = (self._source[index - 1], self._target[index - 1])
        return Found(
            piece=Piece(
                source_start=self._source[index],
                target_start=self._target[index],
                count=self._extent(index, stop),
            ),
            is_last=index == stop - 1,
            follows_seal_at=follows_seal_at,
        )

    def _extent(self, index: int, stop: int) -> int:
        """Return how many mirrored records lie behind this boundary."""
        if self._is_foreign[index]:
            return 0
        end = self._target[index + 1] if index + 1 < stop else self._target_end
        return end - self._target[index]

    def _last_index(self, target_end: int) -> int:
        """Return the last boundary that holds when the target ends there; -1 for none."""
        if self._target and self._target[-1] <= target_end:
            return len(self._target) - 1
        return bisect_right(self._target, target_end) - 1

    def _check(
        self, index: int, following: int, source: int, target: int, *, is_foreign: bool
    ) -> None:
        """Refuse a boundary that contradicts its neighbours."""
        if index > 0 and not _may_follow(
            source - self._source[index - 1],
            target - self._target[index - 1],
            is_foreign=bool(self._is_foreign[index - 1]),
        ):
            raise InconsistentPiece(
                f"boundary ({source}, {target}) contradicts the one before it, "
                f"({self._source[index - 1]}, {self._target[index - 1]})"
            )
        if following < len(self._target) and not _may_follow(
            self._source[following] - source,
            self._target[following] - target,
            is_foreign=is_foreign,
        ):
            raise InconsistentPiece(
                f"boundary ({source}, {target}) contradicts the one behind it, "
                f"({self._source[following]}, {self._target[following]})"
            )

    def _continues(self, previous: int, source: int, target: int) -> bool:
        return (
            previous >= 0
            and not self._is_foreign[previous]
            and source - self._source[previous] == target - self._target[previous]
        )

    def _insert(self, index: int, source: int, target: int, *, is_foreign: bool) -> None:
        self._source.insert(index, source)
        self._target.insert(index, target)
        self._is_foreign.insert(index, is_foreign)

    def _remove(self, index: int) -> None:
        del self._source[index]
        del self._target[index]
        del self._is_foreign[index]


def _may_follow(source_gain: int, target_gain: int, *, is_foreign: bool) -> bool:
    """Holes are on the source only; behind a seal the target grows by itself."""
    return source_gain >= (0 if is_foreign else target_gain)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A boundary, the mirrored records behind it (none behind a seal), and its neighbours."""

    piece: Piece
    is_last: bool
    follows_seal_at: tuple[int, int] | None

"""The map of a partition, found again from both logs when its topic is lost. Pure.

A target's mirrored records are the source's committed records, in their order and without gaps
between its first and its last. So the two lists of digests overlap in one of two ways:

    source     |--------xxxxxxxx---|         the whole target lies in the source
    target             |xxxxxxxx|

    source              |xxxxx------|        the source has lost records that the target still has
    target       |------xxxxx|

Source records behind the target's last one are not mirrored yet. If the records fit in more than
one place, there is no answer: in one of the places records would be lost, or be there twice.
"""

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from offset_translation.runs import Place


class CannotAlign(ValueError):
    """The logs do not say which record is which; the message says why."""


@dataclass(slots=True)
class LogDigest:
    """The records of one log in order: 16 bytes for each."""

    offsets: "array[int]" = field(default_factory=lambda: array("q"))
    digests: "array[int]" = field(default_factory=lambda: array("q"))

    def add(self, offset: int, digest: int) -> None:
        """Take the next record; the digest covers everything that a mirror leaves as it is."""
        self.offsets.append(offset)
        self.digests.append(digest)

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self.offsets)


def rebuild_starts(
    source: LogDigest, target: LogDigest, *, source_has_its_first: bool
) -> list[tuple[int, Place]]:
    """Return the (source start, place) of each piece, to be announced in this order.

    ``source`` holds the committed records that a mirror takes, ``target`` those that one has
    written; neither log may be compacted. ``source_has_its_first`` rules the second picture out:
    nothing was ever deleted from the source. Raises CannotAlign.
    """
    first = align(source.digests, target.digests, source_has_its_first=source_has_its_first)
    starts: list[tuple[int, Place]] = []
    shift: int | None = None
    skipped = max(0, -first)
    for index in range(skipped, len(target)):
        source_offset, place = source.offsets[first + index], Place(target.offsets[index])
        if source_offset - place != shift:
            shift = source_offset - place
            starts.append((source_offset, place))
    return starts


def run_starts(places: Sequence[int], targets: Sequence[int]) -> list[tuple[Place, int]]:
    """Return the (place, target offset) of each run: where more of the target's own lie before."""
    runs: list[tuple[Place, int]] = []
    shift = 0
    for place, target in zip(places, targets, strict=True):
        if target - place != shift:
            shift = target - place
            runs.append((Place(place), target))
    return runs


def align(source: Sequence[int], target: Sequence[int], *, source_has_its_first: bool) -> int:
    """Return the index in ``source`` of the target's first record, negative if it is lost there.

    Raises CannotAlign if there is no such index, or more than one.
    """
    if not target:
        raise CannotAlign("the target holds no mirrored record")
    found = list(matches(source, target, may_overhang=not source_has_its_first))
    if not found:
        raise CannotAlign("the target's records are not in the source's log in their order")
    if len(found) > 1:
        raise CannotAlign(
            f"the target's {len(target)} records fit in more than one place: from record "
            f"{found[0]} and from record {found[1]} of the source's log"
        )
    return found[0]


def matches(source: Sequence[int], target: Sequence[int], *, may_overhang: bool) -> Iterator[int]:
    """Yield where ``target`` stands in ``source``, latest first.

    As Knuth, Morris and Pratt, from the logs' ends.
    """
    length = len(target)
    borders = _borders(target)
    matched = 0
    for index in range(len(source) - 1, -1, -1):
        while matched and (matched == length or target[length - 1 - matched] != source[index]):
            matched = borders[matched]
        if target[length - 1 - matched] == source[index]:
            matched += 1
        if matched == length:
            yield index
    if may_overhang:
        matched = borders[matched] if matched == length else matched
        while matched:
            yield matched - length
            matched = borders[matched]


def _borders(target: Sequence[int]) -> "array[int]":
    """Return for each count of records, from the end, the longest shorter one that begins alike."""
    length = len(target)
    borders = array("q", bytes(8 * (length + 1)))
    matched = 0
    for count in range(1, length):
        digest = target[length - 1 - count]
        while matched and target[length - 1 - matched] != digest:
            matched = borders[matched]
        if target[length - 1 - matched] == digest:
            matched += 1
        borders[count + 1] = matched
    return borders

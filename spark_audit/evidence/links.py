"""A log as a chain of links: each a range of records, with the holes before and in it. Pure.

    log    |--aaaa--..--bbb|--cc..--|--dddd~~          |  a range ends     ..  a hole
    links  [----------------)[-------)                 ~~ the log goes on: no link yet

A link accounts for each of its offsets, by a record or by a hole of known reason. So a chain from
which a row is missing shows it, and a chain that is whole needs no word of who made it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from zlib import crc32

from spark_audit.scan.committed import HoleReason
from spark_audit.scan.digests import DIGEST_BYTES
from spark_audit.scan.scan_rows import RowKind, ScanRow
from wire.topic_partition import TopicPartition

_RANGE: Final[str] = RowKind.RANGE.value
_HOLE: Final[str] = RowKind.HOLE.value
_RETENTION: Final = HoleReason.RETENTION.name
_CORRUPT: Final = HoleReason.CORRUPT.name
"""Kinds of rows by what they are called in them: to ask an enum takes longer than to compare."""
REREAD_OFFSETS: Final = 65_536
"""Offsets of a log that are read again in the same night."""


@dataclass(frozen=True, slots=True)
class Link:
    """Offsets [start, stop) of a log; `rows` are the holes there and, last, one range."""

    start: int
    stop: int
    rows: tuple[ScanRow, ...]

    @property
    def leader_epoch(self) -> int | None:
        """Return the epoch in which its last record was taken, -1 if brokers do not say.

        None if the range ends because reading did.
        """
        return self.rows[-1].leader_epoch

    def says_the_same_as(self, other: "Link") -> bool:
        """Return whether both say the same of the same offsets, in whichever way reading ended."""
        return self._without_epoch() == other._without_epoch()  # noqa: SLF001 - of its own kind

    def _without_epoch(self) -> tuple[int, int, list[ScanRow]]:
        return self.start, self.stop, [row._replace(leader_epoch=None) for row in self.rows]


def chained(start: int, rows: Iterable[ScanRow]) -> list[Link]:
    """Return the links of ranges and holes that were read from `start` on, as far as none lacks.

    Of a log whose beginning was gone when it was read, the chain begins where the log did. Holes
    behind the last range are in no link.
    """
    links: list[Link] = []
    holes: list[ScanRow] = []
    for row in sorted(rows, key=_place):
        if row.kind == _RANGE:
            link = Link(start, row.stop_offset, (*holes, row) if holes else (row,))
            if not _accounts_for_all(link):
                break
            links.append(link)
            start, holes = link.stop, []
        elif row.reason == _RETENTION:
            start = row.stop_offset
        elif row.kind == _HOLE:
            holes.append(row)
    return links


def _place(row: ScanRow) -> tuple[int, bool]:
    """Sort a range behind the holes in it: by its last record, they by their first offset."""
    if row.kind == _RANGE:
        return row.stop_offset - 1, True
    return row.start_offset, False


def _accounts_for_all(link: Link) -> bool:
    """Return whether each offset has its row; most links are one range, and nothing else."""
    accounted = 0
    for row in link.rows:
        if not (link.start <= row.start_offset <= row.stop_offset <= link.stop and row.records > 0):
            return False
        accounted += row.records
    digest = link.rows[-1].digest
    has_digest = digest is not None and len(digest) == DIGEST_BYTES
    return has_digest and accounted == link.stop - link.start


def whole(links: Iterable[Link]) -> list[Link]:
    """Return the links up to the first whose range ends because reading did, or that has a corrupt
    batch: another replica may have it whole, and nobody would know what to hold against it.
    """
    found: list[Link] = []
    for link in links:
        if link.leader_epoch is None or any(map(is_corrupt, link.rows)):
            break
        found.append(link)
    return found


def is_corrupt(row: ScanRow) -> bool:
    """Return whether a row tells of a corrupt batch."""
    return row.reason == _CORRUPT


def span(links: Sequence[Link]) -> tuple[int, int]:
    """Return the offsets [start, stop) of some links one behind the other."""
    return links[0].start, links[-1].stop


@dataclass(frozen=True, slots=True, kw_only=True)
class NightNumbers:
    """The days since the last night was kept, and tonight's, each a number since the epoch.

    Each link has its turn on one day in `days`. A link whose turn came on a day without a night is
    read again in the next one: a digest that runs every other day passes over none.
    """

    since: int
    tonight: int
    days: int

    def have_come(self, turn: int) -> bool:
        """Return whether a day with this turn has come since the last night."""
        return (self.tonight - turn) % self.days < self.tonight - self.since


def shift_of(place: TopicPartition) -> int:
    """Return by how many days the turns of a log are put off: not all have theirs on one day."""
    return crc32(place.topic.encode()) + place.partition


def contradiction(expected: Sequence[Link], rows: Sequence[ScanRow]) -> str | None:
    """Return what a log says now otherwise than a run of links; None if it says the same.

    Nothing is said of a run whose beginning retention took meanwhile.
    """
    if any(row.reason == HoleReason.RETENTION.name for row in rows):
        return None
    found = chained(expected[0].start, rows)
    for before, now in _side_by_side(expected, found):
        if now is None or not before.says_the_same_as(now):
            return f"offsets {before.start} to {before.stop - 1} are not as they were"
    return None


def _side_by_side(
    expected: Sequence[Link], found: Sequence[Link]
) -> Iterator[tuple[Link, Link | None]]:
    for number, link in enumerate(expected):
        yield link, found[number] if number < len(found) else None

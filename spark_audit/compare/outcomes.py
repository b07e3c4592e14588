"""The outcome of each record that is not simply in its place on both sides. Pure.

`gaps_of` leaves of a window what is not in its place; `outcomes` names all that is left of one
partition. Questions that these records cannot settle (promotions, holes) are left to `explain`. For
them an outcome carries its bracket: the offsets of the nearest neighbours that are in their place.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from spark_audit.compare.alterations import ALL, SAFE, counterparts
from spark_audit.compare.cut_logs import pairs_if_only_cut
from spark_audit.scan.alignment import (
    Match,
    brought_together_late,
    common_subsequence,
    taken_late,
)
from spark_audit.scan.entries import Entry


class Kind(Enum):
    """The audit's names for what it sees: findings, what it could not tell, and what is none."""

    LOST = "lost"
    DUPLICATED = "duplicated"
    REORDERED = "reordered"
    ALTERED = "altered"
    PHANTOM = "phantom"
    CORRUPT = "corrupt"
    HOLE = "hole"
    OVERDUE = "overdue"
    MISMAPPED = "mapped wrongly"
    TOO_FAR = "position too far"
    ENDS_DIFFERENTLY = "ends differently"

    NOT_COMPARED = "not compared"
    KEYS_NOT_COMPARED = "keys not compared"

    IN_FLIGHT = "in flight"
    WRITTEN_AGAIN = "written again"
    EXPLAINED = "explained"

    KEYS_ALIKE = "keys alike"
    KEYS_IN_FLIGHT = "keys in flight"

    @property
    def column(self) -> str:
        """Return the name under which this kind is counted."""
        return self.value.replace(" ", "_")


FINDINGS: Final = (
    Kind.LOST,
    Kind.DUPLICATED,
    Kind.REORDERED,
    Kind.ALTERED,
    Kind.PHANTOM,
    Kind.CORRUPT,
    Kind.HOLE,
    Kind.OVERDUE,
    Kind.MISMAPPED,
    Kind.TOO_FAR,
    Kind.ENDS_DIFFERENTLY,
)
CERTAIN: Final = tuple(kind for kind in FINDINGS if kind is not Kind.CORRUPT)
"""Findings that say how the logs differ. Nobody knows what lies in a corrupt batch."""
OF_KEYS: Final = (Kind.KEYS_ALIKE, Kind.KEYS_IN_FLIGHT, Kind.KEYS_NOT_COMPARED)
"""Kinds that count keys of compacted topics and are no findings."""


class Bracket(NamedTuple):
    """Between these offsets, exclusive, an unmatched record lies or ought to lie."""

    source_after: int
    source_before: int
    target_after: int
    target_before: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One record that is not in its place. Of a pair, `source` and `target` are both there."""

    kind: Kind
    source: Entry | None
    target: Entry | None
    bracket: Bracket

    @property
    def record(self) -> Entry:
        """Return the record as the source has it, else as the target has."""
        record = self.source or self.target
        assert record is not None, "an outcome is about a record"
        return record


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """The records of one side of a window, by offset: their offsets and digests."""

    offsets: Sequence[int]
    digests: Sequence[bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowRecords:
    """The records of one window."""

    bracket: Bracket
    is_last: bool
    is_cut: bool = False
    """The logs begin in it, and of one of them the beginning is gone."""
    source_begin: int = 0
    """So many offsets at the beginning of the source's log are gone, if the logs begin in it."""
    target_begin: int = 0
    """The same of the target's log."""
    source: Records
    target: Records


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """The unmatched records between two neighbours that are in their place on both sides."""

    bracket: Bracket
    is_last: bool
    source_begin: int
    """As of its window if it is the first gap of it, else 0."""
    source: Sequence[int]
    """Offsets."""
    target: Sequence[int]
    skipped: int = 0
    """So many records of a gap of one side lie before these, and are settled apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowGaps:
    """What one window leaves unmatched."""

    gaps: tuple[Gap, ...]
    is_settled: bool
    """It differs by a log's beginning and end only: nothing in it moved or was altered."""
    known: Mapping[int, int]
    """By the target offset of an unmatched record, the source offset of the first one like it."""


@dataclass(slots=True, kw_only=True)
class _Open:
    """A gap with its records, of which those are taken out that are told."""

    bracket: Bracket
    is_last: bool
    source_begin: int
    source: list[Entry]
    target: list[Entry]


def gaps_of(window: WindowRecords) -> WindowGaps:
    """Return what is left when all records of a window are paired that are in their place.

    The longest common subsequence is what is in its place. Of copies the first are, but the last
    where the beginning of a log is gone, and the first of them may be with it.
    """
    pairs = _only_cut(window) if window.is_cut else None
    is_settled = pairs is not None
    gaps = tuple(_gaps(window, _pairs(window) if pairs is None else pairs))
    return WindowGaps(
        gaps=gaps, is_settled=is_settled, known={} if is_settled else _known(window, gaps)
    )


def _known(window: WindowRecords, gaps: Sequence[Gap]) -> Mapping[int, int]:
    left = {offset for gap in gaps for offset in gap.target}
    if not left:
        return {}
    digests = {
        offset: digest
        for offset, digest in zip(window.target.offsets, window.target.digests, strict=True)
        if offset in left
    }
    wanted = set(digests.values())
    first: dict[bytes, int] = {}
    for offset, digest in zip(window.source.offsets, window.source.digests, strict=True):
        if digest in wanted:
            first.setdefault(digest, offset)
    return {offset: first[digest] for offset, digest in digests.items() if digest in first}


def outcomes(
    windows: Sequence[WindowGaps],
    source: Mapping[int, Entry],
    target: Mapping[int, Entry],
    originals: Mapping[bytes, Entry],
    *,
    is_compacted: bool = False,
    is_set_aside: Callable[[int], bool] = lambda _: False,
) -> list[Outcome]:
    """Return the outcome of every unmatched record of one partition; entries are by offset.

    1. A record left over on both sides moved: reordered. Copies pair off by rank.
    2. One left over on the target that the source knows, in its window or outside the windows (the
       `originals`, by digest), is there once too often.
    3. What is left on both sides of the same gap was altered: first those of the same time and
       key, then of the same content, then of the same time and value, in order, then by position.
       Where the source is compacted only the first: of two neighbours its cleaner may have taken
       the first, and the second is with the target's cleaner or not mirrored yet. Nor those of the
       target that are older than all of the source where its log's beginning is gone.
    4. The rest of the target is phantoms; the rest of the source is lost, or in flight if it is
       the end of the log and nothing of it, nor behind it, has arrived.

    A window that is settled is left out of 1 to 3. What `is_set_aside`, by its source offset, has
    no counterpart: the value that sets a key back has all of the record that it repeats but a mark.
    """
    gaps: list[_Open] = []
    cut: list[Outcome] = []
    known = dict(originals)
    for window in windows:
        opened = [_opened(gap, source, target) for gap in window.gaps]
        if window.is_settled:
            cut += _settled(opened)
        else:
            gaps += opened
            known |= {target[at].digest: source[first] for at, first in window.known.items()}
    matched = [*_take_moved(gaps), *_take_duplicated(gaps, known)]
    for gap in gaps:
        aside = [entry for entry in gap.source if is_set_aside(entry.offset)]
        gap.source = [entry for entry in gap.source if not is_set_aside(entry.offset)]
        matched += _take_altered(gap, is_compacted=is_compacted)
        gap.source = sorted([*gap.source, *aside])
    return [*cut, *matched, *_left_over(gaps, matched)]


def _left_over(gaps: Sequence[_Open], matched: Sequence[Outcome]) -> Iterator[Outcome]:
    """Yield what has no counterpart: lost or in flight of the source, phantoms of the target."""
    arrived = [gap.bracket.source_after for gap in gaps if gap.is_last]
    arrived += [
        one.source.offset for one in matched if one.source and one.kind is not Kind.DUPLICATED
    ]
    last_arrived = max(arrived, default=0)
    for gap in gaps:
        for entry in gap.source:
            waits = gap.is_last and entry.offset > last_arrived
            kind = Kind.IN_FLIGHT if waits else Kind.LOST
            yield Outcome(kind=kind, source=entry, target=None, bracket=gap.bracket)
        for entry in gap.target:
            yield Outcome(kind=Kind.PHANTOM, source=None, target=entry, bracket=gap.bracket)


def _opened(gap: Gap, source: Mapping[int, Entry], target: Mapping[int, Entry]) -> _Open:
    return _Open(
        bracket=gap.bracket,
        is_last=gap.is_last,
        source_begin=gap.source_begin,
        source=[source[offset] for offset in gap.source],
        target=[target[offset] for offset in gap.target],
    )


def _only_cut(window: WindowRecords) -> list[Match] | None:
    return pairs_if_only_cut(
        window.source.digests,
        window.target.digests,
        is_last=window.is_last,
        gone=window.source_begin,
        taken=window.target_begin,
    )


def _settled(gaps: Iterable[_Open]) -> Iterator[Outcome]:
    """Yield what is to be said of gaps before and behind records that are all in their place."""
    for gap in gaps:
        kind = Kind.IN_FLIGHT if gap.is_last else Kind.LOST
        for entry in gap.source:
            yield Outcome(kind=kind, source=entry, target=None, bracket=gap.bracket)
        for entry in gap.target:
            yield Outcome(kind=Kind.PHANTOM, source=None, target=entry, bracket=gap.bracket)


def _gaps(window: WindowRecords, pairs: Sequence[Match]) -> Iterator[Gap]:
    source, target = window.source.offsets, window.target.offsets
    source_index = target_index = 0
    source_after, target_after = window.bracket.source_after, window.bracket.target_after
    for pair in pairs:
        if pair.source > source_index or pair.target > target_index:
            yield Gap(
                bracket=Bracket(
                    source_after, source[pair.source], target_after, target[pair.target]
                ),
                is_last=False,
                source_begin=0 if source_index or target_index else window.source_begin,
                source=source[source_index : pair.source],
                target=target[target_index : pair.target],
            )
        source_index, target_index = pair.source + 1, pair.target + 1
        source_after, target_after = source[pair.source], target[pair.target]
    if source_index < len(source) or target_index < len(target):
        bracket = window.bracket._replace(source_after=source_after, target_after=target_after)
        yield Gap(
            bracket=bracket,
            is_last=window.is_last,
            source_begin=0 if source_index or target_index else window.source_begin,
            source=source[source_index:],
            target=target[target_index:],
        )


def _pairs(window: WindowRecords) -> list[Match]:
    source, target = window.source.digests, window.target.digests
    pairs = common_subsequence(source, target)
    if not window.is_cut:
        return pairs
    # What the source's end has behind the last pair is in flight: its first copy arrived there.
    source_end = pairs[-1].source + 1 if window.is_last and pairs else len(source)
    late = taken_late(source, target, pairs, Match(source_end, len(target)))
    return brought_together_late(source, target, late)


def _take_moved(gaps: Sequence[_Open]) -> list[Outcome]:
    """Take the pairs of equal records out of the gaps, which may lie far apart."""
    arrivals: defaultdict[bytes, deque[Entry]] = defaultdict(deque)
    for gap in gaps:
        for entry in gap.target:
            arrivals[entry.digest].append(entry)
    moved: list[Outcome] = []
    for gap in gaps:
        stayed: list[Entry] = []
        for entry in gap.source:
            if arrivals[entry.digest]:
                arrived = arrivals[entry.digest].popleft()
                moved.append(
                    Outcome(kind=Kind.REORDERED, source=entry, target=arrived, bracket=gap.bracket)
                )
            else:
                stayed.append(entry)
        gap.source = stayed
    left = {entry.offset for queue in arrivals.values() for entry in queue}
    for gap in gaps:
        gap.target = [entry for entry in gap.target if entry.offset in left]
    return moved


def _take_duplicated(gaps: Sequence[_Open], known: Mapping[bytes, Entry]) -> list[Outcome]:
    duplicated: list[Outcome] = []
    for gap in gaps:
        duplicated += [
            Outcome(
                kind=Kind.DUPLICATED,
                source=known[entry.digest],
                target=entry,
                bracket=gap.bracket,
            )
            for entry in gap.target
            if entry.digest in known
        ]
        gap.target = [entry for entry in gap.target if entry.digest not in known]
    return duplicated


def _take_altered(gap: _Open, *, is_compacted: bool) -> list[Outcome]:
    """Pair what is left on both sides of a gap, and leave in it only what has no counterpart."""
    aged = _aged(gap)
    taken, gap.target = gap.target[:aged], gap.target[aged:]
    pairs = counterparts(gap.source, gap.target, SAFE if is_compacted else ALL)
    if not is_compacted:
        pairs = _with_neighbours(pairs, Match(len(gap.source), len(gap.target)))
    altered = [
        Outcome(
            kind=Kind.ALTERED,
            source=gap.source[pair.source],
            target=gap.target[pair.target],
            bracket=gap.bracket,
        )
        for pair in pairs
    ]
    paired_sources = {pair.source for pair in pairs}
    paired_targets = {pair.target for pair in pairs}
    gap.source = [entry for index, entry in enumerate(gap.source) if index not in paired_sources]
    left = [entry for index, entry in enumerate(gap.target) if index not in paired_targets]
    gap.target = taken + left
    return altered


def _with_neighbours(anchors: Sequence[Match], end: Match) -> list[Match]:
    """Return the pairs with those that lie between them at the same distance."""
    pairs: list[Match] = []
    source_index = target_index = 0
    for anchor in [*anchors, end]:
        between = min(anchor.source - source_index, anchor.target - target_index)
        pairs += [Match(source_index + step, target_index + step) for step in range(between)]
        if anchor != end:
            pairs.append(anchor)
        source_index, target_index = anchor.source + 1, anchor.target + 1
    return pairs


def _aged(gap: _Open) -> int:
    """Return how many of the target's first records the source had where its log is gone.

    These are older than all that it still has here, which may be in flight: no alterations.
    """
    oldest_ms = min((entry.timestamp_ms for entry in gap.source), default=0)
    for index, entry in enumerate(gap.target):
        if index >= gap.source_begin or not 0 <= entry.timestamp_ms < oldest_ms:
            return index
    return len(gap.target)

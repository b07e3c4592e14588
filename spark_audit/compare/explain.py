"""Judge cases: promotions and holes explain some of them, the rest are findings. Pure.

cases ─► (superseded) ─► explained_by ─► judged ─► altered_later ─► condensed
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

from spark_audit.compare.alterations import all_but_one, altered_fields
from spark_audit.compare.cases import Case
from spark_audit.compare.judgements import Judgement
from spark_audit.compare.outcomes import Bracket, Kind
from spark_audit.scan.committed import HoleReason
from spark_audit.scan.entries import Entry
from spark_audit.scan.scan_rows import ScanRow
from spark_audit.snapshot.side import Side


class Told(Enum):
    """What a hole of the other side, or the lack of one, says of a record."""

    RETENTION = "retention"
    COMPACTION = "compaction"
    CORRUPT = "corrupt"
    ABORTED = "aborted"
    NOT_SUPERSEDED = "not superseded"
    """There is a gap, but no cleaner can have taken this record."""
    SET_ASIDE = "set aside"
    """No hole: somebody has decided so, and the record lies in another topic of the target."""


TAKEN_ON_TARGET: Final = "the target's retention took it"
COMPACTED_ON_TARGET: Final = "compacted away on the target"
TAKEN_ON_SOURCE: Final = "the source's retention took it"
COMPACTED_ON_SOURCE: Final = "compacted away on the source"
CORRUPT_ON_SOURCE: Final = "the source's batch here is corrupt"
CORRUPT_ON_TARGET: Final = "the target's batch here is corrupt"
SET_ASIDE: Final = "set aside: it lies in the topic's `.diverged` topic on both sites"
NOT_YET: Final = "not mirrored yet"
WRITTEN_AGAIN: Final = "not mirrored, written again after the promotion"


@dataclass(frozen=True, slots=True)
class Holes:
    """The holes of one side: what retention took, and the others in order."""

    aged: Sequence[ScanRow]
    others: Sequence[ScanRow]

    def between(self, after: int, before: int) -> list[ScanRow]:
        """Return the holes that lie, at least in part, between two offsets, both exclusive."""
        overlapping = [
            row for row in self.aged if row.start_offset < before and row.stop_offset > after + 1
        ]
        first = bisect_right(self.others, after + 1, key=lambda row: row.stop_offset)
        for row in islice(self.others, first, None):
            if row.start_offset >= before:
                break
            overlapping.append(row)
        return overlapping

    def first_gap(self, after: int, before: int) -> int | None:
        """Return where the first gap that a cleaner may have made begins between two offsets."""
        return next(
            (
                row.start_offset
                for row in self.between(after, before)
                if row.reason == HoleReason.GAP.name
            ),
            None,
        )


def holes_in_order(rows: Iterable[ScanRow], *, is_compacted: bool) -> Holes:
    """Return the holes that can say something; a gap only where compaction may have made it."""
    named = {HoleReason.CORRUPT.name, HoleReason.ABORTED.name}
    if is_compacted:
        named.add(HoleReason.GAP.name)
    aged = [row for row in rows if row.reason == HoleReason.RETENTION.name]
    others = [row for row in rows if row.reason in named]
    return Holes(aged, sorted(others, key=lambda row: row.stop_offset))


class _Room(NamedTuple):
    """How many records the holes of one bracket may explain, by reason."""

    aged: int
    gap: int | None
    other: Told | None
    other_offsets: int

    def less(self, used: "Used") -> "_Room":
        """Return what other parts of the gap leave of it."""
        return self._replace(
            aged=max(0, self.aged - used.skipped),
            gap=None if self.gap is None else max(0, self.gap - used.taken),
        )


def _room(holes: Sequence[ScanRow], after: int, before: int) -> _Room:
    """Return the room of a bracket.

    What retention takes is the beginning of a log, and several holes may tell of it: all offsets
    of the bracket below the last of their ends are gone.
    """
    sizes: defaultdict[str, int] = defaultdict(int)
    aged = 0
    for hole in holes:
        assert hole.reason is not None, "a hole has a reason"
        if hole.reason == HoleReason.RETENTION.name:
            aged = max(aged, min(hole.stop_offset, before) - after - 1)
        else:
            sizes[hole.reason] += hole.stop_offset - hole.start_offset
    other = next((told for told in (Told.CORRUPT, Told.ABORTED) if told.name in sizes), None)
    return _Room(
        aged,
        sizes.get(HoleReason.GAP.name),
        other,
        0 if other is None else sizes[other.name],
    )


@dataclass(slots=True)
class Used:
    """What other parts of the same gap have used of the room of its holes."""

    skipped: int = 0
    """So many records of the gap lie before these: retention explains those first."""
    taken: int = 0
    """So many records behind these are explained by cleaners."""


Lacking: TypeAlias = tuple[Side, int, int]
"""A side that lacks records, and the offsets there between which they ought to lie."""


def explained_by(
    cases: Sequence[Case],
    superseded: Mapping[int, bool],
    holes: Mapping[Side, Holes],
    used: Mapping[Lacking, Used] = MappingProxyType({}),
) -> list[Told | None]:
    """Return for each case what a hole says where the other side should have the record.

    The hole must lie between the record's neighbours on the other side. No hole explains more
    records than it has offsets. Retention explains the oldest ones. Compaction explains all that
    are `superseded` (by the number of the case) or none. A corrupt batch explains all that are left
    or none. An aborted transaction explains nothing, but is named. Of gaps that are settled in
    parts `used` says what is left; it learns of these cases.
    """
    told: list[Told | None] = [None] * len(cases)
    brackets: defaultdict[Lacking, list[int]] = defaultdict(list)
    for number, case in enumerate(cases):
        if case.lacking is not None:
            key = (case.lacking, case.after(case.lacking), case.before(case.lacking))
            brackets[key].append(number)
    for (side, after, before), numbers in brackets.items():
        room = _room(holes[side].between(after, before), after, before)
        other = used.get((side, after, before))
        if other is not None:
            room = room.less(other)
        numbers.sort(key=lambda number: cases[number].holder.offset)
        for number in numbers[: room.aged]:
            told[number] = Told.RETENTION
        rest = numbers[max(0, room.aged) :]
        taken = sorted(number for number in rest if superseded.get(number))
        for number in rest:
            told[number] = _told(number, room, taken, rest)
        if other is not None:
            other.taken += sum(told[number] is Told.COMPACTION for number in rest)
    return told


def told_aside(
    cases: Sequence[Case], told: Sequence[Told | None], is_set_aside: Callable[[int], bool]
) -> list[Told | None]:
    """Return what is told of each case, with those of records that were set aside.

    A record that the target lacks on purpose needs no hole; `is_set_aside` takes its offset.
    """
    missing = (Kind.LOST, Kind.IN_FLIGHT)
    return [
        Told.SET_ASIDE
        if case.kind in missing
        and case.outcome.source is not None
        and is_set_aside(case.outcome.source.offset)
        else why
        for case, why in zip(cases, told, strict=True)
    ]


def told_at_end(
    cases: Sequence[Case], told: Sequence[Told | None], target: Holes
) -> list[Told | None]:
    """Return what is told of each case, with those that may lie in corrupt batches at the target's
    end: of the records at the source's end the first, as many as those batches have offsets.
    """
    whole = list(told)
    waiting = [number for number, case in enumerate(cases) if case.kind is Kind.IN_FLIGHT]
    if waiting:
        last = cases[waiting[0]]
        corrupt = {
            row.start_offset: row.stop_offset - row.start_offset
            for row in target.between(last.after(Side.TARGET), last.before(Side.TARGET))
            if row.reason == HoleReason.CORRUPT.name
        }
        waiting.sort(key=lambda number: cases[number].holder.offset)
        for number in waiting[: sum(corrupt.values())]:
            whole[number] = whole[number] or Told.CORRUPT
    return whole


def _told(number: int, room: _Room, taken: Sequence[int], rest: Sequence[int]) -> Told | None:
    """Return what is said of one case; `taken` are those that cleaners may have taken, in order."""
    position = bisect_left(taken, number)
    is_superseded = position < len(taken) and taken[position] == number
    if is_superseded and room.gap is not None and room.gap >= len(taken):
        return Told.COMPACTION
    if room.other is Told.ABORTED or (room.other and room.other_offsets >= len(rest)):
        return room.other
    return Told.NOT_SUPERSEDED if room.gap is not None and not is_superseded else None


def judged(cases: Sequence[Case], told: Sequence[Told | None]) -> list[Judgement]:
    """Return the judgement of each case.

    Records where the other side is corrupt cannot be compared: the corrupt batch is the finding,
    and another replica may have it whole. What is lost and what is a phantom of one gap, and alike
    in all but one field, is one altered record.
    """
    altered = _altered_later(cases, told)
    judgements: list[Judgement] = []
    for number, (case, why) in enumerate(zip(cases, told, strict=True)):
        if number in altered:
            source, target = altered[number]
            if case.outcome.source is source:
                judgements.append(_altered(source, target))
        else:
            judgements.append(_judged(case, why))
    return judgements


def _altered_later(
    cases: Sequence[Case], told: Sequence[Told | None]
) -> Mapping[int, tuple[Entry, Entry]]:
    """Return by its number each case that is one half of an altered record.

    Asked only when holes have explained what they can: where a cleaner has taken a record, its
    key's next one is beside it, and is no other form of it.
    """
    left: defaultdict[Bracket, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for number, (case, why) in enumerate(zip(cases, told, strict=True)):
        if why in {None, Told.NOT_SUPERSEDED} and case.unmirrored_by is None:
            if case.kind is Kind.LOST:
                left[case.outcome.bracket][0].append(number)
            elif case.kind is Kind.PHANTOM:
                left[case.outcome.bracket][1].append(number)
    halves: dict[int, tuple[Entry, Entry]] = {}
    for lost, phantoms in left.values():
        for number, other in _halves(cases, lost, phantoms):
            halves[number] = halves[other] = (cases[number].holder, cases[other].holder)
    return halves


def _halves(
    cases: Sequence[Case], lost: Sequence[int], phantoms: Sequence[int]
) -> Iterator[tuple[int, int]]:
    """Yield the pairs of which all but one field are alike, each record at most once."""
    free = set(phantoms)
    alike: defaultdict[Hashable, list[int]] = defaultdict(list)
    for other in reversed(phantoms):
        for likeness in all_but_one(cases[other].holder):
            alike[likeness].append(other)
    for number in lost:
        for likeness in all_but_one(cases[number].holder):
            candidates = alike.get(likeness, [])
            while candidates and candidates[-1] not in free:
                candidates.pop()
            if candidates:
                other = candidates.pop()
                free.discard(other)
                yield number, other
                break


def _altered(source: Entry, target: Entry) -> Judgement:
    return Judgement(
        Kind.ALTERED,
        source.offset,
        target.offset,
        1,
        source.timestamp_ms,
        preview(source.key),
        f"in its place with another {' and '.join(altered_fields(source, target)) or 'encoding'}",
    )


def _judged(case: Case, why: Told | None) -> Judgement:
    source, target = case.outcome.source, case.outcome.target
    record = case.outcome.record
    if case.kind is Kind.ALTERED:
        assert source is not None, "an altered record is on both sides"
        assert target is not None, "an altered record is on both sides"
        return _altered(source, target)
    is_surplus = case.lacking is Side.SOURCE
    explaining = {Told.RETENTION, Told.COMPACTION, Told.SET_ASIDE}
    may_be_there = why is Told.CORRUPT and (is_surplus or case.unmirrored_by is None)
    is_explained = why in explaining or may_be_there
    return Judgement(
        Kind.EXPLAINED if is_explained else case.kind,
        None if source is None else source.offset,
        None if target is None else target.offset,
        1,
        record.timestamp_ms,
        preview(record.key),
        _surplus_reason(case, why) if is_surplus else _missing_reason(case, why),
        None if case.unmirrored_by is None or is_explained else record.digest,
    )


def _missing_reason(case: Case, why: Told | None) -> str:
    if why is Told.SET_ASIDE:
        return SET_ASIDE
    if case.kind is Kind.IN_FLIGHT:
        return CORRUPT_ON_TARGET if why is Told.CORRUPT else NOT_YET
    if case.kind is Kind.REORDERED:
        return "on both sides, in another order"
    if case.unmirrored_by is not None:
        return f"not mirrored before promotion {case.unmirrored_by}"
    reasons = {
        Told.RETENTION: TAKEN_ON_TARGET,
        Told.COMPACTION: COMPACTED_ON_TARGET,
        Told.CORRUPT: CORRUPT_ON_TARGET,
        Told.NOT_SUPERSEDED: "missing on the target, which has no later record of its key: no "
        "cleaner took it",
    }
    missing = "missing on the target, though later records have arrived"
    return missing if why is None else reasons.get(why, missing)


def _surplus_reason(case: Case, why: Told | None) -> str:
    producer_id = case.outcome.record.producer_id
    explained = {
        Told.RETENTION: TAKEN_ON_SOURCE,
        Told.COMPACTION: COMPACTED_ON_SOURCE,
        Told.CORRUPT: CORRUPT_ON_SOURCE,
    }
    of_phantoms = {
        Told.ABORTED: "never committed on the source: an aborted transaction lies here",
        Told.NOT_SUPERSEDED: "not on the source, and no later record of its key for certain: "
        f"whether a cleaner took it cannot be told; producer id {producer_id}",
        None: f"never on the source; producer id {producer_id}",
    }
    if why is not None and why in explained:
        return explained[why]
    if case.kind is Kind.PHANTOM:
        return of_phantoms[why]
    return "once more on the target than on the source"


def preview(key: bytes | None) -> str | None:
    """Return a key as text if it is printable UTF-8, else as 0x and hexadecimal digits."""
    if key is None:
        return None
    try:
        text = key.decode()
    except UnicodeDecodeError:
        text = ""
    return text if text.isprintable() and text else "0x" + key.hex()

"""Hold the offset map and groups' positions against where records really lie. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from offset_translation import NotYet, OffsetMap, translate
from spark_audit.compare.correspondence import Correspondence
from spark_audit.compare.judgements import Judgement
from spark_audit.compare.outcomes import Kind
from spark_audit.snapshot.bounds import GroupPlace, PartitionBounds

MOST_MAPPED: Final = 100
"""So many wrong translations of a partition are named; the last row counts the rest."""


def judge_map(offset_map: OffsetMap, truth: Correspondence) -> Iterator[Judgement]:
    """Yield a finding for each place at which the map and the logs disagree.

    Both are straight lines between their breaks, so they are held against each other at the first
    and the last record of each segment of the logs and of each piece of the map: no record between
    them can be translated wrongly alone.
    """
    wrong: dict[int, tuple[int, int]] = {}
    for source_offset in sorted(_breaks(offset_map, truth)):
        expected = truth.of_record(source_offset)
        if expected is None:
            continue
        mapped = translate(offset_map, source_offset)
        if mapped is NotYet.FORGOTTEN:
            continue
        if isinstance(mapped, NotYet):
            mapped = -1
        if mapped != expected:
            wrong[source_offset] = (expected, mapped)
    for number, (source_offset, (expected, mapped)) in enumerate(wrong.items(), start=1):
        says = f"offset {mapped}" if mapped >= 0 else "nothing"
        is_last = number == MOST_MAPPED
        yield Judgement(
            Kind.MISMAPPED,
            source_offset,
            expected,
            len(wrong) - number + 1 if is_last else 1,
            None,
            None,
            f"the map translates it to {says}; the record lies at {expected}",
        )
        if is_last:
            return


def _breaks(offset_map: OffsetMap, truth: Correspondence) -> set[int]:
    breaks: set[int] = set()
    for segment in truth.segments():
        breaks |= {segment.source_start, segment.source_start + segment.records - 1}
    for piece in offset_map.pieces():
        breaks |= {piece.source_start, piece.source_end - 1, piece.source_end}
    return breaks


class Standing(Enum):
    """How a group's position on the target stands to what the group has read."""

    EXACT = "exact"
    BEHIND = "behind"
    """It reads some records again."""
    TOO_FAR = "too far"
    """It never reads some records."""
    UNKNOWN = "unknown"
    """It lies in what differs between both logs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stood:
    """A position's standing; `records` are read again, or never."""

    place: GroupPlace
    standing: Standing
    records: int = 0


def stand(place: GroupPlace, truth: Correspondence, bounds: PartitionBounds) -> Stood:
    """Return how a position stands. The target's was asked for before the source's."""
    end = bounds.mirrored_stop
    expected = truth.next_unread(place.source)
    if expected is None and truth.is_behind_all(place.source) and truth.is_rest_of_source:
        expected = end
    if expected is None and place.target > end:
        return Stood(place=place, standing=Standing.TOO_FAR, records=place.target - end)
    if expected is None:
        is_first = place.target <= bounds.target.start
        return Stood(place=place, standing=Standing.EXACT if is_first else Standing.UNKNOWN)
    between = truth.records_before(place.target) - truth.records_before(expected)
    if place.target > expected:
        return Stood(
            place=place,
            standing=Standing.TOO_FAR,
            records=max(between, place.target - end),
        )
    return Stood(
        place=place, standing=Standing.BEHIND if between else Standing.EXACT, records=-between
    )


def judge_positions(stood: Sequence[Stood]) -> Iterator[Judgement]:
    """Yield a finding for each group that would skip records."""
    for one in stood:
        if one.standing is Standing.TOO_FAR:
            yield Judgement(
                Kind.TOO_FAR,
                one.place.source,
                one.place.target,
                one.records,
                None,
                one.place.group,
                f"group {one.place.group} would never read {one.records:,} records: on the source "
                f"it goes on at {one.place.source}",
            )


def standings(stood: Sequence[Stood]) -> Mapping[str, int]:
    """Return how many positions stand how, and how many records would be read again."""
    numbers = {f"positions_{kind.name.lower()}": 0 for kind in Standing}
    for one in stood:
        numbers[f"positions_{one.standing.name.lower()}"] += 1
    again = sum(one.records for one in stood if one.standing is Standing.BEHIND)
    return {**numbers, "positions_read_again": again}

"""Find records that a log cleaner may have taken: a later one of their key supersedes them. Pure.

    source  |--a--......--K:v2--b--|       ..  a gap in the offsets, as cleaners leave it
    target  |--a--K:v1--........--b|

The gap of the target has room for K:v2, but its cleaner cannot have taken it: it keeps the last
record of each key, and the target has none of K behind that place. A mirror has lost it.

"Later" must be certain: behind the outcome's bracket, or behind all that was mirrored. Inside the
bracket the order is not known; but if cleaners and mirror lose nothing, the record that superseded
another one is never inside the same bracket. Where both sites write it may be, if it is not one of
this direction's: such a one counts from the bracket's first gap on. So does one that was set aside.

    source  |--a--K:1~~K:2~~b--|        ~~  written on the target
    target  |--a--....--K:2--b-|
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from spark_audit.compare.cases import Case
from spark_audit.compare.outcomes import Kind
from spark_audit.scan.sinks import KeyPlaces
from spark_audit.snapshot.bounds import PartitionBounds
from spark_audit.snapshot.side import Side

Places: TypeAlias = Mapping[Side, Mapping[bytes, KeyPlaces]]
"""Where keys' records lie on the source and on the target, by the digest of the key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MirroredEnds:
    """Where on both sides the mirrored records end for certain; offsets."""

    source: int
    target: int


def questioned(cases: Sequence[Case], bounds: PartitionBounds) -> list[Case]:
    """Return the cases of records that a side with a cleaner lacks."""
    has_cleaner = {
        Side.SOURCE: bounds.source.is_compacted,
        Side.TARGET: bounds.target.is_compacted,
    }
    return [case for case in cases if case.lacking is not None and has_cleaner[case.lacking]]


def told_from(asked: Sequence[Case], side: Side) -> int:
    """Return the offset of this side from which on its log may explain these records.

    The record that superseded one lies behind it. The records that a tombstone stood for lie
    anywhere before it.
    """
    return min(
        0 if case.holder.is_tombstone and case.lacking is side else case.after(side) + 1
        for case in asked
    )


def mirrored_ends(
    cases: Sequence[Case], bounds: PartitionBounds, before: int | None = None
) -> MirroredEnds:
    """Return where the mirrored records of a partition end, on the source not behind `before`."""
    unmirrored = [
        case.outcome.source.offset
        for case in cases
        if case.outcome.source is not None
        and (case.kind is Kind.IN_FLIGHT or case.unmirrored_by is not None)
    ]
    return MirroredEnds(
        source=min([bounds.source.stop if before is None else before, *unmirrored]),
        target=bounds.mirrored_stop,
    )


def is_gone(case: Case, places: Places) -> bool:
    """Return whether the cleaner of the side that had the record has taken it since it was read.

    A later record of its key superseded it then, and may be gone as well, if it was a tombstone.
    """
    key = case.holder.key_digest
    if key is None:
        return False
    found = places[case.holding].get(key)
    return found is None or case.holder.offset not in found.held


def is_superseded(
    case: Case, places: Places, ends: MirroredEnds, first_gap: int | None = None
) -> bool:
    """Return whether the lacking side's cleaner may have taken the record.

    It may if that side holds a later record of the same key. Tombstones go after a time without
    one, but not before what they stood for, and a record that the other side's tombstone
    supersedes may be gone with it. Records without a key are dropped by cleaners. `places` are of
    the stretches from `told_from` up to where the logs end by then: a record written since the
    audit began supersedes as well. `first_gap` is where the bracket's first gap begins on the
    lacking side, if it has one and both sites write there, or records of it were set aside.
    """
    lacking, record, holding = case.lacking, case.holder, case.holding
    if lacking is None:
        return False
    if record.key_digest is None:
        return True
    end = ends.target if lacking is Side.TARGET else ends.source
    there = places[lacking].get(record.key_digest)
    if record.is_tombstone and (there is None or there.first > case.after(lacking)):
        return True
    if there is not None and there.last >= min(case.before(lacking), end):
        return True
    other = None if there is None else there.of_other
    if other is not None and first_gap is not None and other > first_gap:
        return True
    beside = places[holding].get(record.key_digest)
    return beside is not None and beside.tombstone is not None and beside.tombstone > record.offset

"""Where keys lie later of which a compacted side lacks a record: both logs are asked. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from spark_audit.compare.cases import Case
from spark_audit.compare.explain import Holes
from spark_audit.compare.superseded import (
    MirroredEnds,
    Places,
    is_gone,
    is_superseded,
    questioned,
    told_from,
)
from spark_audit.scan.scan import Looking, Reading
from spark_audit.scan.scan_plan import Planner
from spark_audit.scan.sinks import KeyPlaces, KeySink
from spark_audit.scan.windows import LOG_STOP
from spark_audit.snapshot.bounds import PartitionBounds
from spark_audit.snapshot.side import Side

_SIDES: Final = (Side.SOURCE, Side.TARGET)


def superseded_cases(
    planner: Planner,
    bounds: PartitionBounds,
    cases: Sequence[Case],
    holes: Mapping[Side, Holes],
    ends: MirroredEnds,
) -> Looking[dict[int, bool]]:
    """Ask where the keys lie later of which a compacted side lacks a record.

    The answer is by the number of the case.
    """
    asked = questioned(cases, bounds)
    if not asked:
        return {}
    known: dict[Side, dict[bytes, KeyPlaces]] = {side: {} for side in _SIDES}
    readings = list(_key_readings(planner, bounds, asked, known, ends))
    # What a cleaner takes until it is read was superseded by what lies behind: that is read last.
    yield [one for one in readings if not one.task.to_end]
    yield [one for one in readings if one.task.to_end]
    places: Places = known
    questions = set(map(id, asked))
    return {
        number: (_is_compacted(bounds, case.holding) and is_gone(case, places))
        or is_superseded(case, places, ends, _first_gap(case, bounds, holes))
        for number, case in enumerate(cases)
        if id(case) in questions
    }


def _is_compacted(bounds: PartitionBounds, side: Side) -> bool:
    log = bounds.source if side is Side.SOURCE else bounds.target
    return log.is_compacted


def _first_gap(case: Case, bounds: PartitionBounds, holes: Mapping[Side, Holes]) -> int | None:
    side = case.lacking
    is_told = bounds.is_both_ways or (bool(bounds.set_aside) and side is Side.SOURCE)
    if side is None or not is_told:
        return None
    return holes[side].first_gap(case.after(side), case.before(side))


def _key_readings(
    planner: Planner,
    bounds: PartitionBounds,
    asked: Sequence[Case],
    known: dict[Side, dict[bytes, KeyPlaces]],
    ends: MirroredEnds,
) -> Iterator[Reading]:
    """Yield what reads both logs from where they may tell, to the ends that they have by then.

    Tombstones that applications wrote to the target behind a promotion supersede nothing on the
    source, unless the other direction takes them there; what came from there was on both. What
    the mirror has brought since the snapshot is native where one direction alone has run.
    """
    keys = {case.holder.key_digest for case in asked if case.holder.key_digest is not None}
    planned = planner.partitions[0]
    both = planned.is_both_ways
    sides = [
        (Side.SOURCE, Side.SOURCE, ends.source, True),
        (Side.TARGET, Side.TARGET, ends.target, both and planned.seal is None),
        (Side.NATIVE, Side.TARGET, LOG_STOP if both else ends.target, True),
    ]
    if both:
        sides.append((Side.RETURNED, Side.SOURCE, LOG_STOP, True))
    holders: dict[Side, set[int]] = {side: set() for side in _SIDES}
    for case in asked:
        holders[case.holding].add(case.holder.offset)
    for read, side, end, to_end in sides:
        task = planner.stretch(planned, read, told_from(asked, side), LOG_STOP, to_end=to_end)
        is_other = read in {Side.NATIVE, Side.RETURNED}
        left_out = bounds.is_set_aside if read is Side.SOURCE else None
        sink = KeySink(
            keys,
            known[side],
            end,
            is_other=(lambda _: True) if is_other else left_out,
            asked=holders[side],
        )
        yield Reading(task=task, sink=sink)

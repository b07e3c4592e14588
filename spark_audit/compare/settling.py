"""Settle one partition's windows: read them, name what differs, explain it. Pure.

Each step asks for stretches of the logs and goes on when their sinks are full, so that a worker
holds no more than one window's digests, and the records that differ:

    windows ─► gaps ─► their records, copies far away ─► outcomes ─► cases
            ─► where keys lie later ─► superseded ─► judgements
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from spark_audit.compare.bulk import judged_in_bulk
from spark_audit.compare.cases import cases_of
from spark_audit.compare.chunks import chunks_of, unmatched
from spark_audit.compare.explain import (
    Lacking,
    Used,
    explained_by,
    holes_in_order,
    judged,
    told_aside,
    told_at_end,
)
from spark_audit.compare.in_flight import held_to_promise
from spark_audit.compare.judgements import Judgement, condensed
from spark_audit.compare.later_keys import superseded_cases
from spark_audit.compare.looks import Look, Rest
from spark_audit.compare.outcomes import (
    Bracket,
    Kind,
    Outcome,
    Records,
    WindowGaps,
    WindowRecords,
    gaps_of,
    outcomes,
)
from spark_audit.compare.superseded import mirrored_ends
from spark_audit.scan.committed import HoleReason
from spark_audit.scan.entries import Entry
from spark_audit.scan.scan import Looking, Reading
from spark_audit.scan.scan_plan import Planner
from spark_audit.scan.scan_rows import RowKind, ScanRow
from spark_audit.scan.sinks import FirstSink, PickSink, WindowSink
from spark_audit.scan.windows import LOG_START, LOG_STOP, Window
from spark_audit.snapshot.bounds import PartitionBounds
from spark_audit.snapshot.side import Side

MOST_WINDOW_RECORDS: Final = 1_000_000
"""Of a window more are not looked at one by one: 100 bytes each, on each side, and 300 while they
are compared. A worker had 635 MB with 0.9 million altered records."""
MOST_UNMATCHED: Final = 100_000
"""So many unmatched records are looked at one by one at a time: 700 bytes each. Of partitions with
more, those of compacted topics are settled in chunks, and others in bulk."""
SIDES: Final = (Side.SOURCE, Side.TARGET)


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """What a worker needs to settle one partition."""

    topic: str
    partition: int
    planner: Planner
    """Of this partition alone."""
    promotion: int | None
    starts: tuple[int, int]
    """Where the source and the target had begun by the time their ranges were read."""
    looks: tuple[Look, ...]


@dataclass(slots=True)
class _Settling:
    """What is known of the partition so far."""

    planner: Planner
    bounds: PartitionBounds
    holes: dict[Side, list[ScanRow]]
    windows: list[WindowGaps]
    judgements: list[Judgement]

    def window_reading(self, side: Side, span: tuple[int, int]) -> Reading:
        """Return what reads a side of a window."""
        task = self.planner.stretch(self.planner.partitions[0], side, *span)
        return Reading(task=task, sink=WindowSink(MOST_WINDOW_RECORDS))

    def note_holes(self, side: Side, rows: Sequence[ScanRow]) -> None:
        """Take the holes of a window; where retention went on, the log begins later."""
        self.holes[side] += rows
        for row in rows:
            if row.reason == HoleReason.RETENTION.name:
                self.bounds = begun_at(self.bounds, side, row.stop_offset)


def begun_at(bounds: PartitionBounds, side: Side, start: int) -> PartitionBounds:
    """Return the bounds with a later start of one log."""
    log = bounds.source if side is Side.SOURCE else bounds.target
    moved = replace(log, start=min(max(log.start, start), log.stop))
    if side is Side.SOURCE:
        return replace(bounds, source=moved)
    return replace(bounds, target=moved)


def settle(differences: Differences) -> Looking[list[Judgement]]:
    """Return the judgements of one partition, condensed."""
    planner = differences.planner
    bounds = planner.partitions[0]
    for side, start in zip(SIDES, differences.starts, strict=True):
        bounds = begun_at(bounds, side, start)
    settling = _Settling(planner, bounds, {side: [] for side in SIDES}, [], [])
    for look in differences.looks:
        yield from _read_window(settling, look)
    settling.judgements = list(held_to_promise(settling.judgements, settling.bounds))
    for side in SIDES:
        settling.holes[side] += holes_before(settling.bounds, side)
    promotion = differences.promotion
    if unmatched(settling.windows) <= MOST_UNMATCHED:
        found, _ = yield from _settle(settling, settling.windows, promotion)
        return condensed([*settling.judgements, *found])
    if not any(_log(settling, side) for side in SIDES):
        return condensed(
            [*settling.judgements, *judged_in_bulk(settling.windows, settling.bounds, promotion)]
        )
    return (yield from _settle_in_chunks(settling, promotion))


def _settle_in_chunks(settling: _Settling, promotion: int | None) -> Looking[list[Judgement]]:
    """Return the judgements where more is unmatched than a worker looks at at once.

    What cleaners took adds up to a few rows. A record that moved from one chunk to another is lost
    in the one and a phantom in the other. Where too many findings come together the rest is not
    compared.
    """
    told = condensed(settling.judgements)
    unmirrored_from: int | None = None
    used: dict[Lacking, Used] = {}
    for chunk in chunks_of(settling.windows, MOST_UNMATCHED):
        if unmatched(chunk) > MOST_UNMATCHED or len(told) > MOST_UNMATCHED:
            found: Iterable[Judgement] = judged_in_bulk(chunk, settling.bounds, promotion)
        else:
            _note_parts(chunk, used)
            found, unmirrored_from = yield from _settle(
                settling, chunk, promotion, unmirrored_from, used
            )
        told = condensed([*told, *found])
    return told


def _note_parts(chunk: Sequence[WindowGaps], used: dict[Lacking, Used]) -> None:
    """Say of gaps of one side how much of them lies before what is settled now."""
    for gap in (gap for window in chunk for gap in window.gaps):
        side = Side.TARGET if gap.source else Side.SOURCE
        between = gap.bracket[2:] if gap.source else gap.bracket[:2]
        if not (gap.source and gap.target):
            used.setdefault((side, *between), Used()).skipped = gap.skipped


def _settle(
    settling: _Settling,
    windows: Sequence[WindowGaps],
    promotion: int | None,
    unmirrored_from: int | None = None,
    used: Mapping[Lacking, Used] = MappingProxyType({}),
) -> Looking[tuple[list[Judgement], int]]:
    """Return the judgements of these windows, and the source offset where what is not mirrored
    begins: `unmirrored_from`, if a window behind these has said so, or what these say."""
    found = yield from _outcomes(settling, windows)
    bounds = settling.bounds
    mirrored_end = None if bounds.seal is None else bounds.seal.mirrored_source_end
    cases = cases_of(found, promotion, mirrored_end)
    ends = mirrored_ends(cases, bounds, unmirrored_from)
    holes = {
        side: holes_in_order(settling.holes[side], is_compacted=_log(settling, side))
        for side in SIDES
    }
    superseded = yield from superseded_cases(settling.planner, settling.bounds, cases, holes, ends)
    told = told_aside(cases, explained_by(cases, superseded, holes, used), bounds.is_set_aside)
    told = told_at_end(cases, told, holes[Side.TARGET])
    return list(held_to_promise(judged(cases, told), bounds)), ends.source


def _log(settling: _Settling, side: Side) -> bool:
    log = settling.bounds.source if side is Side.SOURCE else settling.bounds.target
    return log.is_compacted


def holes_before(bounds: PartitionBounds, side: Side) -> list[ScanRow]:
    """Return the offsets before a log's start, which retention or DeleteRecords took."""
    start = bounds.source.start if side is Side.SOURCE else bounds.target.start
    gone = bounds.source_gone if side is Side.SOURCE else bounds.target.start
    if gone == 0:
        return []
    return [ScanRow(RowKind.HOLE.value, 0, start, start, reason=HoleReason.RETENTION.name)]


# --- windows -----------------------------------------------------------------------------------


def _read_window(settling: _Settling, look: Look) -> Looking[None]:
    """Read a window, or as much of it as tells, and keep what it leaves unmatched."""
    if look.near is not None:
        near = yield from _records(settling, look.window, look.near.source, look.near.target)
        if near is not None and _tells(settling, look.near.rest, near):
            settling.windows.append(gaps_of(near))
            settling.judgements += _judgements_of_rest(look.near.rest)
            return
    window = look.window
    whole = yield from _records(
        settling,
        window,
        (window.source_start, window.source_stop),
        (window.target_start, window.target_stop),
    )
    if whole is None:
        settling.judgements += _too_long(settling, window)
    else:
        settling.windows.append(gaps_of(whole))


def _records(
    settling: _Settling, window: Window, source: tuple[int, int], target: tuple[int, int]
) -> Looking["WindowRecords | None"]:
    """Read both sides of a window; the answer is None if there are too many records."""
    readings = [
        settling.window_reading(side, span)
        for side, span in zip(SIDES, (source, target), strict=True)
    ]
    yield readings
    sinks: list[WindowSink] = []
    for reading, side in zip(readings, SIDES, strict=True):
        assert isinstance(reading.sink, WindowSink), "a window is read into such a sink"
        sinks.append(reading.sink)
        settling.note_holes(side, reading.sink.holes())
    if any(sink.is_over for sink in sinks):
        return None
    bounds = settling.bounds
    begins_logs = window.source_start == window.target_start == LOG_START
    of_source, of_target = sinks
    return WindowRecords(
        bracket=Bracket(
            max(window.source_start, bounds.source_begin) - 1,
            window.source_stop,
            window.target_start - 1,
            window.target_stop,
        ),
        is_last=window.is_last,
        is_cut=begins_logs and (bounds.source_gone > 0 or bounds.target.start > 0),
        source_begin=bounds.source_gone if begins_logs else 0,
        target_begin=bounds.target.start if begins_logs else 0,
        source=Records(offsets=of_source.offsets, digests=of_source.digests),
        target=Records(offsets=of_target.offsets, digests=of_target.digests),
    )


def _tells(settling: _Settling, rest: Rest, near: WindowRecords) -> bool:
    """Return whether what was read of a window shows that the rest differs by that alone."""
    gaps = gaps_of(near)
    if rest.is_end:
        return all(gap.is_last and not gap.target for gap in gaps.gaps)
    if gaps.gaps and not gaps.is_settled:
        return False
    begins = [gap for gap in gaps.gaps if not gap.is_last]
    if rest.side is Side.TARGET:
        head = sum(len(gap.target) for gap in begins)
        is_one_sided = not any(gap.source for gap in begins)
        return is_one_sided and rest.records + head <= settling.bounds.source_gone
    head = sum(len(gap.source) for gap in begins)
    is_one_sided = not any(gap.target for gap in begins)
    return is_one_sided and rest.records + head <= settling.bounds.target.start


def _judgements_of_rest(rest: Rest) -> Iterator[Judgement]:
    kind = Kind.IN_FLIGHT if rest.is_end else Kind.EXPLAINED
    is_source = rest.side is Side.SOURCE
    for first, records in rest.parts:
        yield Judgement(
            kind,
            first if is_source else None,
            None if is_source else first,
            records,
            rest.oldest_ms,
            None,
            rest.reason,
        )


def _too_long(settling: _Settling, window: Window) -> Iterator[Judgement]:
    """Yield the judgement of a window of which too much differs to look at each record."""
    numbers = f"{window.source_records:,} source and {window.target_records:,} target records"
    reason = f"no stretch in common among {numbers}, more than are compared one by one"
    source = max(window.source_start, settling.bounds.source.start)
    target = max(window.target_start, settling.bounds.target.start)
    if any(_log(settling, side) for side in SIDES):
        kind = Kind.NOT_COMPARED
        yield Judgement(kind, source, None, window.source_records, None, None, reason)
        yield Judgement(kind, None, target, window.target_records, None, None, reason)
    else:
        records = max(window.source_records, window.target_records)
        yield Judgement(Kind.ALTERED, source, target, records, None, None, reason)


# --- unmatched records ---------------------------------------------------------------------------


def _outcomes(settling: _Settling, windows: Sequence[WindowGaps]) -> Looking[list[Outcome]]:
    """Read the unmatched records and copies of them far away, and name them."""
    picks: dict[Side, list[PickSink]] = {side: [] for side in SIDES}
    readings: list[Reading] = []
    for window in windows:
        wanted = {
            Side.SOURCE: {
                *window.known.values(),
                *(at for gap in window.gaps for at in gap.source),
            },
            Side.TARGET: {at for gap in window.gaps for at in gap.target},
        }
        for side in SIDES:
            if wanted[side]:
                sink = PickSink(wanted[side])
                picks[side].append(sink)
                span = (min(wanted[side]), max(wanted[side]) + 1)
                task = settling.planner.stretch(settling.planner.partitions[0], side, *span)
                readings.append(Reading(task=task, sink=sink))
    yield readings
    entries = {
        side: {at: entry for sink in picks[side] for at, entry in sink.entries.items()}
        for side in SIDES
    }
    there = [_still_there(window, entries) for window in windows]
    originals = yield from _originals(settling, there, entries)
    return outcomes(
        there,
        entries[Side.SOURCE],
        entries[Side.TARGET],
        originals,
        is_compacted=settling.bounds.source.is_compacted,
        is_set_aside=settling.bounds.is_set_aside,
    )


def _still_there(window: WindowGaps, entries: dict[Side, dict[int, Entry]]) -> WindowGaps:
    """Return a window without records that retention or a cleaner took since it was read."""
    source, target = entries[Side.SOURCE], entries[Side.TARGET]
    return replace(
        window,
        gaps=tuple(
            replace(
                gap,
                source=[at for at in gap.source if at in source],
                target=[at for at in gap.target if at in target],
            )
            for gap in window.gaps
        ),
        known={at: first for at, first in window.known.items() if at in target and first in source},
    )


def _originals(
    settling: _Settling, windows: Sequence[WindowGaps], entries: dict[Side, dict[int, Entry]]
) -> Looking[dict[bytes, Entry]]:
    """Return the first source record of each digest that the target's windows alone have.

    A stranger that is found there is a copy of a record that arrived in its place as well.
    """
    source, target = entries[Side.SOURCE], entries[Side.TARGET]
    left = {source[at].digest for window in windows for gap in window.gaps for at in gap.source}
    strange = {
        target[at].digest
        for window in windows
        if not window.is_settled
        for gap in window.gaps
        for at in gap.target
        if at not in window.known
    } - left
    if not strange:
        return {}
    sink = FirstSink(strange)
    task = settling.planner.stretch(
        settling.planner.partitions[0], Side.SOURCE, LOG_START, LOG_STOP
    )
    yield [Reading(task=task, sink=sink)]
    return {digest: first for digest, (first, *_) in sink.entries.items()}

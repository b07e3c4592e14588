"""One flow's audit, from its snapshot to findings and numbers: the steps in their order.

    both logs' ranges ─► windows in which they differ ─► each such partition is settled
                                                     ─► (compacted topics) last values of keys
                                                     ─► (behind a promotion) who wrote again

Two to four jobs of Spark's. This process holds the ranges, a thousandth of the records, and what
came of each partition.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeAlias

import pyarrow as pa

from spark_audit.compare.correspondence import Correspondence
from spark_audit.compare.explain import NOT_YET, WRITTEN_AGAIN
from spark_audit.compare.holes import judge_cut_log, judge_holes
from spark_audit.compare.in_flight import bounded
from spark_audit.compare.judgements import FAILURE, Judgement, condensed, judgement_of
from spark_audit.compare.key_ends import KeyEnds, keys_not_compared, mirrored_before
from spark_audit.compare.looks import (
    LONG_RECORDS,
    Look,
    TimedRange,
    look_into,
    waiting_parts,
    within,
)
from spark_audit.compare.mapped import Stood, judge_map, judge_positions, stand, standings
from spark_audit.compare.outcomes import Kind
from spark_audit.compare.scanned import Scanned, by_partition
from spark_audit.compare.settling import SIDES, Differences
from spark_audit.compare.summary import findings, partition_summary
from spark_audit.evidence.chain import NO_LINKS, Chain
from spark_audit.evidence.folding import folded
from spark_audit.scan.scan_plan import Planner, ScanTask, reads_sections
from spark_audit.scan.scan_rows import RowKind
from spark_audit.scan.windows import Window
from spark_audit.snapshot.bounds import PartitionBounds, Snapshot
from spark_audit.snapshot.seals import CannotTell
from spark_audit.snapshot.side import Side
from wire.topic_partition import TopicPartition

IN_FLIGHT_LIMIT_MS: Final = 3_600_000
Kept: TypeAlias = Mapping[tuple[Side, TopicPartition], Chain]
"""The links of logs that are proven to be there still; none of them empty."""
NOTHING_KEPT: Final[Kept] = MappingProxyType({})


class LogReader(Protocol):
    """The reader of logs: Spark's workers (`spark_reader`), in tests this process."""

    def scan(self, tasks: Sequence[ScanTask]) -> pa.Table:
        """Return the rows of these tasks: `scan_rows.ARROW_SCAN`."""

    def settle(self, questions: Sequence[Differences | KeyEnds]) -> pa.Table:
        """Return the judgements of these partitions: `judgements.ARROW_JUDGED`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowResult:
    """The findings and the numbers of one flow's audit."""

    findings: Sequence[Mapping[str, Any]]
    summary: Sequence[Mapping[str, Any]]
    untold: Mapping[TopicPartition, str]
    """Why other partitions could not be compared."""
    mirrored: Mapping[TopicPartition, int | None] = field(default_factory=dict)
    """The source offset before which all has arrived; None where not all was compared."""


def audit_flow(
    reader: LogReader,
    snapshot: Snapshot,
    planner: Planner,
    *,
    in_flight_limit_ms: int = IN_FLIGHT_LIMIT_MS,
    way_back: Mapping[TopicPartition, int | None] | None = None,
    kept: Kept = NOTHING_KEPT,
) -> FlowResult:
    """Compare both logs within the snapshot.

    `way_back` is `FlowResult.mirrored` of the other direction, if that was audited before: only
    then it is known which keys' last values have arrived. All snapshots are older than both audits.
    What is `kept` of a log, and proven to be there still, is not read.

    A log that cannot be read to its end is left out, and named. Raises CannotTell if none is left.
    """
    untold: dict[TopicPartition, str] = {}
    scanned = _read_around(reader, planner, kept, untold)
    snapshot = _told(snapshot, untold)
    _read_what_parted(reader, planner, snapshot, scanned, untold)
    snapshot = _told(snapshot, untold)
    _open_what_differs(reader, planner, snapshot, scanned, untold)
    snapshot = _told(snapshot, untold)
    judged: dict[TopicPartition, list[Judgement]] = {}
    truths: dict[TopicPartition, Correspondence] = {}
    differing: list[Differences] = []
    for bounds in snapshot.partitions:
        place = TopicPartition(bounds.topic, bounds.partition)
        of_partition = scanned[place]
        windows, truth = of_partition.compared()
        judged[place] = list(judge_holes(of_partition.holes, bounds))
        truths[place] = truth
        ends_flow = snapshot.promotion is not None or bool(bounds.set_aside)
        looks = list(_looks(windows, of_partition, judged[place], bounds, may_wait=not ends_flow))
        if looks:
            differing.append(_differences(planner, snapshot, place, of_partition, looks))
    if differing:
        came_back = _take(reader.settle(differing), judged, untold)
        snapshot = _told(snapshot, untold)
        _take_equal_ends(differing, came_back, truths)
    questions = list(_key_questions(planner, snapshot, judged, way_back))
    if questions:
        _take(reader.settle(questions), judged, untold)
        snapshot = _told(snapshot, untold)
    mirrored = {
        place: mirrored_before(judged[place], bounds)
        for bounds in snapshot.partitions
        for place in [TopicPartition(bounds.topic, bounds.partition)]
    }
    stood = _judge_words(snapshot, truths, judged)
    _settle_written_again(reader, planner, snapshot, judged)
    found, summary = _rows(snapshot, scanned, judged, stood, in_flight_limit_ms)
    _add_remembered(summary, {at: one for at, one in kept.items() if scanned[at[1]].is_kept})
    return FlowResult(
        findings=found,
        summary=summary,
        untold=snapshot.untold,
        mirrored={**dict.fromkeys(snapshot.untold), **mirrored},
    )


def _take_equal_ends(
    differing: Sequence[Differences],
    came_back: Mapping[TopicPartition, Counter[Kind]],
    truths: Mapping[TopicPartition, Correspondence],
) -> None:
    """Count a last window as equal where nothing but records in flight is in it."""
    for one in differing:
        place = TopicPartition(one.topic, one.partition)
        windows = [look.window for look in one.looks]
        is_end = len(windows) == 1 and windows[0].is_last
        if is_end and came_back[place].keys() <= {Kind.IN_FLIGHT}:
            bounds = one.planner.partitions[0]
            truths[place].take_end_as_equal(
                in_flight=came_back[place][Kind.IN_FLIGHT],
                may_be_cleaned=bounds.source.is_compacted or bounds.target.is_compacted,
            )


def _told(snapshot: Snapshot, untold: Mapping[TopicPartition, str]) -> Snapshot:
    """Return the snapshot without what could not be read; CannotTell if nothing is left."""
    told = snapshot.without(untold)
    if not told.partitions:
        raise CannotTell(min(told.untold.values()))
    return told


def first_tasks(planner: Planner, kept: Kept = NOTHING_KEPT) -> list[ScanTask]:
    """Return what an audit reads first: both logs, but for what is kept of them."""
    return planner.ranges({of_log: links.span() for of_log, links in kept.items()})


def _read_around(
    reader: LogReader, planner: Planner, kept: Kept, untold: dict[TopicPartition, str]
) -> defaultdict[TopicPartition, Scanned]:
    """Return what is kept of both logs, and what is read around it."""
    scanned = by_partition(reader.scan(first_tasks(planner, kept)), untold)
    for place in {place for _, place in kept}:
        source, target = (kept.get((side, place), NO_LINKS) for side in SIDES)
        for side, rows in zip(SIDES, folded(source, target), strict=True):
            for row in rows:
                scanned[place].add(side, row)
        scanned[place].is_kept = True
    return scanned


def _read_what_parted(
    reader: LogReader,
    planner: Planner,
    snapshot: Snapshot,
    scanned: Mapping[TopicPartition, Scanned],
    untold: dict[TopicPartition, str],
) -> None:
    """Read logs again whose stretches do not add up to them: compacted ones in one go.

    Where one stretch ends and the next begins is cut by content. A cleaner, or retention, that
    takes the record of a cut between two readings leaves offsets that neither has, or that both
    have. So does retention that goes on into what is remembered: nothing of that partition is taken
    from memory then.
    """
    cleaned: list[tuple[PartitionBounds, Side, int, int]] = []
    others: list[tuple[PartitionBounds, Side, int, int]] = []
    for bounds in snapshot.partitions:
        of_partition = scanned[TopicPartition(bounds.topic, bounds.partition)]
        whole = [(bounds, side, *bounds.side(side)[1:]) for side in SIDES]
        parted = [one for one in whole if of_partition.offsets(one[1]) != one[3] - one[2]]
        if parted and of_partition.is_kept:
            parted, of_partition.is_kept = whole, False
        for one in parted:
            is_compacted = bounds.side(one[1])[0].is_compacted
            (cleaned if is_compacted else others).append(one)
    if cleaned or others:
        tasks = [*planner.in_one(cleaned), *planner.opened(others)]
        _read_again(reader, tasks, [*cleaned, *others], scanned, untold)


def _read_again(
    reader: LogReader,
    tasks: Sequence[ScanTask],
    spans: Iterable[tuple[PartitionBounds, Side, int, int]],
    scanned: Mapping[TopicPartition, Scanned],
    untold: dict[TopicPartition, str],
) -> None:
    """Put what these tasks read in the place of what was read of these spans."""
    for bounds, side, start, stop in spans:
        scanned[TopicPartition(bounds.topic, bounds.partition)].forget(side, start, stop)
    for place, found in by_partition(reader.scan(tasks), untold).items():
        scanned[place].take_all(found)


def _open_what_differs(
    reader: LogReader,
    planner: Planner,
    snapshot: Snapshot,
    scanned: defaultdict[TopicPartition, Scanned],
    untold: dict[TopicPartition, str],
) -> None:
    """Read long windows again and open the batches there, where they were digested as they are.

    A mirror that batches anew, or another codec, leaves equal records in batches that differ.
    """
    spans: list[tuple[PartitionBounds, Side, int, int]] = []
    for bounds in snapshot.partitions:
        of_partition = scanned[TopicPartition(bounds.topic, bounds.partition)]
        if not reads_sections(bounds, is_known=of_partition.is_kept):
            continue
        windows, _ = of_partition.compared()
        for window in windows:
            if min(window.source_records, window.target_records) > LONG_RECORDS:
                for side in SIDES:
                    _, start, stop = bounds.side(side)
                    spans.append((bounds, side, *of_partition.span(side, window, start, stop)))
    if spans:
        _read_again(reader, planner.opened(spans), spans, scanned, untold)


def _looks(
    windows: Sequence[Window],
    scanned: Scanned,
    judged: list[Judgement],
    bounds: PartitionBounds,
    *,
    may_wait: bool,
) -> Iterator[Look]:
    """Yield how to look into the windows; what may wait and needs no look is judged at once.

    Where the logs differ at their ends only, and the target has no record there, nobody has to look
    at the source's, however many; where it has a corrupt batch there, they may be in that. Nothing
    waits behind a promotion, nor what was set aside.
    """
    promised_end = None if bounds.promise is None else bounds.promise.source_end
    for window in windows:
        source = within(scanned.ranges[Side.SOURCE], window.source_start, window.source_stop)
        target = within(scanned.ranges[Side.TARGET], window.target_start, window.target_stop)
        waits = may_wait and len(windows) == 1 and window.is_last
        may_be_there = window.source_records <= LONG_RECORDS and scanned.is_corrupt(
            Side.TARGET, window.target_start, window.target_stop
        )
        if waits and not window.target_records and not may_be_there:
            judged += _in_flight(source, promised_end)
        else:
            yield look_into(
                window,
                source,
                target,
                may_wait=waits,
                promised_end=promised_end,
                longest=LONG_RECORDS,
            )


def _in_flight(source: Sequence[TimedRange], promised_end: int | None) -> Iterator[Judgement]:
    times = [one.first_ms for one in source if one.first_ms is not None]
    oldest_ms = min(times, default=None)
    for first, records in waiting_parts(source, promised_end):
        yield Judgement(Kind.IN_FLIGHT, first, None, records, oldest_ms, None, NOT_YET)


def _differences(
    planner: Planner,
    snapshot: Snapshot,
    place: TopicPartition,
    scanned: Scanned,
    looks: Sequence[Look],
) -> Differences:
    return Differences(
        topic=place.topic,
        partition=place.partition,
        planner=planner.alone(*place),
        promotion=snapshot.promotion,
        starts=(scanned.start(Side.SOURCE), scanned.start(Side.TARGET)),
        looks=tuple(looks),
    )


def _take(
    table: pa.Table,
    judged: Mapping[TopicPartition, list[Judgement]],
    untold: dict[TopicPartition, str],
) -> Mapping[TopicPartition, Counter[Kind]]:
    """Add what came back of the partitions that were settled; return how many of each kind."""
    kinds: defaultdict[TopicPartition, Counter[Kind]] = defaultdict(Counter)
    for batch in table.to_batches():
        for row in batch.to_pylist():
            place = TopicPartition(row["topic"], row["partition"])
            if row["kind"] == FAILURE:
                untold.setdefault(place, row["reason"])
            else:
                judgement = judgement_of(row)
                judged[place].append(judgement)
                kinds[place][judgement.kind] += judgement.records
    return kinds


def _key_questions(
    planner: Planner,
    snapshot: Snapshot,
    judged: Mapping[TopicPartition, list[Judgement]],
    way_back: Mapping[TopicPartition, int | None] | None,
) -> Iterator[KeyEnds]:
    """Yield the compacted partitions in which records of several origins may lie in any order.

    Of two directions the one asks that is audited last, and not of what the other does not carry.
    Where one alone has run, it asks if strangers wrote to the target.
    """
    for bounds in snapshot.partitions:
        place = TopicPartition(bounds.topic, bounds.partition)
        if not (bounds.source.is_compacted or bounds.target.is_compacted):
            continue
        if bounds.is_both_ways:
            if way_back is None or place not in way_back:
                continue
            come_back = way_back[place]
        elif any(one.kind is Kind.PHANTOM for one in judged[place]):
            come_back = bounds.target.stop
        else:
            continue
        gone_forth = mirrored_before(judged[place], bounds)
        if gone_forth is None or come_back is None:
            why = "how far the mirror has come is not known, nor which keys end differently"
            judged[place].append(keys_not_compared(1, why))
        else:
            yield KeyEnds(
                topic=place.topic,
                partition=place.partition,
                planner=planner.alone(*place),
                source_mirrored=gone_forth,
                target_mirrored=come_back,
            )


def _judge_words(
    snapshot: Snapshot,
    truths: Mapping[TopicPartition, Correspondence],
    judged: Mapping[TopicPartition, list[Judgement]],
) -> Mapping[TopicPartition, Sequence[Stood]]:
    """Hold groups' positions and the map against where records lie; return how positions stand."""
    stood: dict[TopicPartition, list[Stood]] = {}
    for bounds in snapshot.partitions:
        place = TopicPartition(bounds.topic, bounds.partition)
        truth = truths[place]
        stood[place] = [stand(one, truth, bounds) for one in snapshot.places.get(place, ())]
        judged[place] += judge_positions(stood[place])
        if place in snapshot.maps:
            judged[place] += judge_map(snapshot.maps[place], truth)
    return stood


def _settle_written_again(
    reader: LogReader,
    planner: Planner,
    snapshot: Snapshot,
    judged: Mapping[TopicPartition, list[Judgement]],
) -> None:
    """Find which unmirrored records applications wrote again (time included) to the new site.

    In any partition of the topic. Copies count: two lost and one written again leaves one lost.
    """
    places = [TopicPartition(bounds.topic, bounds.partition) for bounds in snapshot.partitions]
    unmirrored = [
        (place, one) for place in places for one in judged[place] if one.digest is not None
    ]
    if not unmirrored:
        return
    digests = frozenset(one.digest for _, one in unmirrored if one.digest is not None)
    tasks = planner.native({place.topic for place, _ in unmirrored}, digests)
    again = _by_digest(reader.scan(tasks)) if tasks else {}
    for place, one in sorted(unmirrored, key=lambda found: (found[0], found[1].source_offset or 0)):
        assert one.digest is not None, "only these were taken"
        copies = again.get((place.topic, one.digest))
        settled = one._replace(digest=None)
        if copies:
            settled = settled._replace(
                kind=Kind.WRITTEN_AGAIN, target_offset=copies.pop(0), reason=WRITTEN_AGAIN
            )
        judged[place].append(settled)
    for place in {place for place, _ in unmirrored}:
        judged[place][:] = condensed(one for one in judged[place] if one.digest is None)


def _by_digest(table: pa.Table) -> dict[tuple[str, bytes], list[int]]:
    """Return the offsets of records, in the order of their partitions."""
    rows = [row for row in table.to_pylist() if row["kind"] == RowKind.RECORD.value]
    found: defaultdict[tuple[str, bytes], list[int]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: (row["partition"], row["start_offset"])):
        found[row["topic"], row["digest"]].append(row["start_offset"])
    return found


def _rows(
    snapshot: Snapshot,
    scanned: Mapping[TopicPartition, Scanned],
    judged: Mapping[TopicPartition, list[Judgement]],
    stood: Mapping[TopicPartition, Sequence[Stood]],
    in_flight_limit_ms: int,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the findings and the summary, a row for every partition of the snapshot."""
    found: list[dict[str, Any]] = []
    summary: list[dict[str, Any]] = []
    for bounds in snapshot.partitions:
        place = TopicPartition(bounds.topic, bounds.partition)
        of_partition = scanned.get(place, Scanned())
        records = of_partition.records()
        told = list(
            bounded(
                judged[place],
                bounds,
                target_records=records[Side.TARGET],
                taken_ms=snapshot.taken_ms,
                limit_ms=in_flight_limit_ms,
            )
        )
        told += judge_cut_log(bounds, is_behind=_is_behind(told))
        found += findings(bounds, told)
        summary.append(
            {
                **partition_summary(bounds, snapshot.promotion, records, of_partition.holes, told),
                **standings(stood[place]),
            }
        )
    for row in (*found, *summary):
        row["flow"] = snapshot.flow
    return found, summary


def _add_remembered(summary: Iterable[dict[str, Any]], kept: Kept) -> None:
    """Say in each row how many offsets were not read, because evidence tells of them."""
    known = {of_log: links.span() for of_log, links in kept.items()}
    for row in summary:
        place = TopicPartition(row["topic"], row["partition"])
        for side in SIDES:
            start, stop = known.get((side, place), (0, 0))
            row[f"{side.value}_remembered"] = stop - start


def _is_behind(judged: Iterable[Judgement]) -> bool:
    behind = (Kind.IN_FLIGHT, Kind.OVERDUE, Kind.NOT_COMPARED)
    return any(one.kind in behind for one in judged)

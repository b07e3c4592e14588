"""A result for people: the short report after a run, and the long one of a stored result. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from spark_audit.compare.outcomes import FINDINGS, Kind
from spark_audit.result.coverage import SIDES, Share, why_not_compared
from spark_audit.result.verdict import Answer, FlowVerdict, Verdict

MOST_RENAMED: Final = 10
"""So many topics are named with the names that they were given."""
_SHOWN: Final = (*FINDINGS, Kind.IN_FLIGHT, Kind.WRITTEN_AGAIN, Kind.EXPLAINED)


def short_report(verdict: Verdict) -> Iterator[str]:
    """Yield the lines after a run: the verdict, and the numbers of each partition."""
    seconds = (verdict.ended_ms - verdict.started_ms) / 1_000
    is_unknown = verdict.answer is Answer.UNKNOWN
    if is_unknown:
        yield f"could not tell: {verdict.problem}"
        if not verdict.flows:
            return
    compared = verdict.records_compared
    corrupt = sum(flow.total(Kind.CORRUPT.column) for flow in verdict.flows)
    rest = f"corrupt batches ({corrupt:,})" if corrupt else "no findings in the rest"
    words = rest if is_unknown else verdict.answer.value
    yield (
        f"{words}: {compared['source']:,} source and {compared['target']:,} "
        f"target records compared in {seconds:.1f} s"
    )
    if verdict.only:
        yield f"only these topics were looked at: {', '.join(verdict.only)}"
    for flow in verdict.flows:
        yield from _flow_lines(flow)


def _flow_lines(flow: FlowVerdict) -> Iterator[str]:
    taken = datetime.fromtimestamp(flow.taken_ms / 1_000, UTC).isoformat(timespec="seconds")
    ended = "" if flow.promotion is None else f", ended by promotion {flow.promotion}"
    yield f"flow {flow.flow}, snapshot of {taken}{ended}"
    if flow.prefix:
        yield f"  topics by the source's names; on the target {flow.prefix} stands before each"
    yield from _renamed_line(flow)
    yield from _coverage_lines(flow)
    kept = [sum(row.get(f"{side}_remembered", 0) for row in flow.partitions) for side in SIDES]
    if any(kept):
        yield f"  {kept[0]:,} source and {kept[1]:,} target offsets from evidence, others read"
    totals = [f"{flow.total(kind.column):,} {kind.value}" for kind in _SHOWN]
    yield f"  {', '.join(totals)}"
    yield _positions_line(flow)
    if (keys := keys_line(flow)) is not None:
        yield f"  {keys}"
    for row in flow.partitions:
        differing = [f"{row[kind.column]:,} {kind.value}" for kind in _SHOWN if row[kind.column]]
        yield (
            f"  {row['topic']}-{row['partition']}: {row['source_records']:,} / "
            f"{row['target_records']:,} records, {', '.join(differing) or 'equal'}"
        )
    yield from _lines_of_sites(flow)
    for why in flow.unaudited:
        yield f"  not audited: {why}"
    for topic, partition, why in flow.untold:
        yield f"  {topic}-{partition}: not compared: {why}"
    for row in flow.partitions:
        if (incomplete := why_not_compared(row)) is not None:
            yield f"  {row['topic']}-{row['partition']}: not all compared: {incomplete}"
    if flow.only_on_target:
        yield f"  only on the target, not audited: {', '.join(flow.only_on_target)}"


def _renamed_line(flow: FlowVerdict) -> Iterator[str]:
    """Yield what topics with given names are called on the target."""
    if flow.renamed:
        named = [f"{topic} is {name}" for topic, name in flow.renamed[:MOST_RENAMED]]
        more = len(flow.renamed) - MOST_RENAMED
        given = ", ".join([*named, *([f"and {more} more"] if more > 0 else [])])
        yield f"  topics by the source's names; on the target {given}"


def _lines_of_sites(flow: FlowVerdict) -> Iterator[str]:
    """Yield what differs between the sites beside records."""
    for one in flow.settings:
        yield f"  {'warning' if one.loses is None else 'setting'}: {one.words}"
    for right in flow.rights:
        yield f"  {'right' if right.explained is None else 'warning'}: {right.words}"
    if flow.rights_not_compared is not None:
        yield f"  rights not compared: {flow.rights_not_compared}"


def _coverage_lines(flow: FlowVerdict) -> Iterator[str]:
    """Yield the table of what became of the offsets in the snapshot; its columns add up."""
    sides = [flow.coverage(side) for side in SIDES]
    yield f"  {'offsets':<42} {'source':>15} {'target':>15}"
    yield _table_line("in the snapshot", [sum(shares.values()) for shares in sides])
    for share in Share:
        offsets = [shares[share] for shares in sides]
        if any(offsets) or share in {Share.COMPARED, Share.NOT_COMPARED}:
            mark = "explained: " if share.is_explained else ""
            yield _table_line(f"{mark}{share.value}", offsets)


def _positions_line(flow: FlowVerdict) -> str:
    exact, behind, too_far, unknown, again = (
        flow.total(f"positions_{name}")
        for name in ("exact", "behind", "too_far", "unknown", "read_again")
    )
    if not exact + behind + too_far + unknown:
        return "  no positions of groups on both sides to audit"
    return (
        f"  positions of groups: {exact:,} exact, {behind:,} behind (would read {again:,} records "
        f"again), {too_far:,} too far, {unknown:,} where the logs differ"
    )


def keys_line(flow: FlowVerdict) -> str | None:
    """Return how keys of compacted topics end; None if none was looked at."""
    names = ("keys_alike", "ends_differently", "keys_in_flight", "keys_not_compared")
    alike, different, in_flight, untold = map(flow.total, names)
    if not alike + different + in_flight + untold:
        return None
    rest = f", of {untold:,} or more nothing is known" if untold else ""
    return (
        f"last values of keys: {alike:,} alike, {different:,} different, {in_flight:,} with "
        f"records in flight{rest}"
    )


def _table_line(name: str, offsets: Sequence[int]) -> str:
    source, target = (f"{number:,}" if number else "-" for number in offsets)
    return f"  {name:<42} {source:>15} {target:>15}"


def long_report(verdict: Verdict, findings: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines of a stored result: the short report, then every finding by its place."""
    yield from short_report(verdict)
    for finding in findings:
        yield finding_line(finding)


def finding_line(finding: Mapping[str, Any]) -> str:
    """Return one finding as `lost orders:0:17 (target -) key=N123 ...`.

    A record is named topic:partition:offset, with the source's offset where there is one.
    """
    source, target = finding["source_offset"], finding["target_offset"]
    record = f"{finding['topic']}:{finding['partition']}:{'-' if source is None else source}"
    parts = [f"{finding['kind']} {record}"]
    if target is not None:
        parts.append(f"target offset {target}")
    if finding["records"] > 1:
        what = "keys" if finding["kind"] == Kind.ENDS_DIFFERENTLY.value else "offsets"
        parts.append(f"{finding['records']} {what}")
    if finding["key"] is not None:
        parts.append(f"key {finding['key']}")
    if finding["timestamp_ms"] is not None:
        parts.append(f"time {record_time(finding['timestamp_ms'])}")
    return f"{', '.join(parts)}: {finding['reason']}"


def record_time(timestamp_ms: int) -> str:
    """Return a record's time, in milliseconds where it is one that no calendar has."""
    try:
        stamp = datetime.fromtimestamp(timestamp_ms / 1_000, UTC)
    except (ValueError, OverflowError, OSError):
        return f"{timestamp_ms} ms"
    return stamp.isoformat(timespec="milliseconds")

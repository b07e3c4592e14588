"""The part of the page about findings: how many of each kind, which records, which groups. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from runtime.pages.markup import folded, heads, link, numbers_of, shown
from spark_audit.compare.outcomes import FINDINGS, Kind
from spark_audit.result.report import record_time
from spark_audit.result.verdict import FlowVerdict

MOST_FINDINGS: Final = 1_000
"""More rows are not shown; the page says how many there are and how to list them."""
MOST_OPEN: Final = 100
"""So many rows are open to see; others are folded away."""
MOST_OF_NAME: Final = 100
"""So many characters of a key, and of a topic's name; the picture has the whole name."""
RUNBOOK: Final = "operate/audit.html#what-to-do-about-findings"
_NEXT: Final = {
    Kind.LOST: "mirror status",
    Kind.OVERDUE: "mirror status",
    Kind.TOO_FAR: "mirror offsets export",
    Kind.MISMAPPED: "mirror status",
    Kind.HOLE: "mirror status",
    Kind.PHANTOM: "failover divergence",
    Kind.ENDS_DIFFERENTLY: "failover divergence",
}
_COLUMNS: Final = (
    "finding",
    "topic-partition",
    "source offset",
    "target offset",
    "records",
    "key",
    "time",
    "why, and what to run next",
)
_OFFSETS: Final = ("source_offset", "target_offset", "records")
_NUMBERS: Final = ("source offset", "target offset", "records")
Row: TypeAlias = Mapping[str, Any]
Anchors: TypeAlias = Mapping[tuple[str, int], str]
"""The picture of each partition, by its id in the page."""


def findings_summary(flow: FlowVerdict, rows: Sequence[Row], docs: str | None) -> Iterator[str]:
    """Yield a table with how many there are of each kind, and in how many partitions."""
    places: defaultdict[str, set[tuple[str, int]]] = defaultdict(set)
    for one in rows:
        places[one["kind"]].add((one["topic"], one["partition"]))
    counts = {kind: flow.total(kind.column) for kind in FINDINGS}
    if not any(counts.values()):
        yield "<p>No findings in records, groups and the map.</p>"
        return
    yield '<div class="wide"><table>'
    yield heads(
        "finding", "how many", "partitions", "run first", numbers=("how many", "partitions")
    )
    for kind, count in counts.items():
        if count:
            name = shown(kind.value) if docs is None else link(docs, RUNBOOK, kind.value)
            command = _NEXT.get(kind)
            yield (
                f"<tr><td>{name}</td>{numbers_of((count, len(places[kind.value])))}"
                f"<td>{'' if command is None else f'<code>{command}</code>'}</td></tr>"
            )
    yield "</table></div>"


def findings_list(rows: Sequence[Row], anchors: Anchors) -> Iterator[str]:
    """Yield a table with a row for each finding; records in a row are one."""
    if not rows:
        return
    known = rows[:MOST_FINDINGS]
    yield from _table(known[:MOST_OPEN], anchors)
    if len(known) > MOST_OPEN:
        yield f"<details><summary>{len(known) - MOST_OPEN:,} more rows</summary>"
        yield from _table(known[MOST_OPEN:], anchors)
        yield "</details>"
    if len(rows) > MOST_FINDINGS:
        yield (
            f"<p>{len(rows) - MOST_FINDINGS:,} more rows are not shown: "
            "<code>spark-audit report</code> lists all.</p>"
        )


def _table(rows: Sequence[Row], anchors: Anchors) -> Iterator[str]:
    yield '<div class="wide"><table class="cards">' + heads(*_COLUMNS, numbers=_NUMBERS)
    yield from (_finding(one, anchors) for one in rows)
    yield "</table></div>"


def _finding(one: Row, anchors: Anchors) -> str:
    kind = Kind(one["kind"])
    time_ms = one["timestamp_ms"]
    command = _NEXT.get(kind)
    then = "" if command is None else f" <code>{command}</code>"
    place = f"{shown(one['topic'], MOST_OF_NAME)}-{one['partition']}"
    picture = anchors.get((one["topic"], one["partition"]))
    if picture is not None:
        place = f'<a href="#{picture}">{place}</a>'
    cells = (
        ("", shown(kind.value)),
        ("name", place),
        *(("number", _number(one[column])) for column in _OFFSETS),
        ("name", shown(one["key"] or "", MOST_OF_NAME)),
        ("time", "" if time_ms is None else shown(record_time(time_ms))),
        ("why", f"{shown(one['reason'])}.{then}"),
    )
    return f"<tr>{''.join(map(_cell, _COLUMNS, cells))}</tr>"


def _number(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"


def _cell(column: str, cell: tuple[str, str]) -> str:
    """Return a cell with its column's name, which a narrow page shows before it."""
    style, content = cell
    return f'<td class="{style}" data-name="{column}">{content}</td>'


def groups(flow: FlowVerdict, rows: Sequence[Row]) -> Iterator[str]:
    """Yield how positions of groups stand, and which groups would skip records."""
    numbers = {
        name: flow.total(f"positions_{name}") for name in ("exact", "behind", "too_far", "unknown")
    }
    if not any(numbers.values()):
        yield "<p>No group has positions on both sides that were audited.</p>"
        return
    again = flow.total("positions_read_again")
    yield (
        f"<p>{numbers['exact']:,} positions are exact; {numbers['behind']:,} are behind and would "
        f"read {again:,} records again; {numbers['too_far']:,} would skip records; "
        f"{numbers['unknown']:,} lie where the logs differ.</p>"
    )
    skipped: Counter[str] = Counter()
    partitions: Counter[str] = Counter()
    for one in rows:
        if one["kind"] == Kind.TOO_FAR.value:
            skipped[one["key"]] += one["records"]
            partitions[one["key"]] += 1
    yield from folded(
        "groups",
        [
            f"<li>Finding: group {shown(group)} would never read {records:,} records of "
            f"{partitions[group]:,} partitions</li>"
            for group, records in skipped.most_common()
        ],
    )

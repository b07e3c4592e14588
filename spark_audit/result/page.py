"""A stored result as one HTML file that needs nothing else, for managers and engineers. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any, Final

from spark_audit.compare.outcomes import Kind
from spark_audit.result.coverage import SIDES, Share
from spark_audit.result.picture import partition_picture
from spark_audit.result.report import keys_line, record_time
from spark_audit.result.verdict import Answer, FlowReport, Verdict

MOST_FINDINGS: Final = 1_000
"""More rows are not shown; the page says how many there are and how to list them."""
OLD_MS: Final = 36 * 3_600_000
"""A verdict of that age says nothing of today; alerts take the same."""

_MEANS: Final = {
    Answer.CLEAN: "Everything that the snapshot named is equal on both sites, or explained. "
    "A switch to the other site would lose nothing of it.",
    Answer.FINDINGS: "The sites differ where nothing explains it. Look at the findings before you "
    "rely on a switch.",
    Answer.UNKNOWN: "Not everything could be compared. Nothing is known of the rest: it is not "
    "clean.",
}
_NEXT: Final = {
    Kind.LOST: "mirror status",
    Kind.OVERDUE: "mirror status",
    Kind.TOO_FAR: "mirror offsets export",
    Kind.MISMAPPED: "mirror status",
    Kind.HOLE: "mirror status",
    Kind.ENDS_DIFFERENTLY: "failover divergence",
}
_STYLE: Final = """
:root { color-scheme: light dark; --page: #f6f7f9; --card: #fff; --text: #1b2330; --soft: #5b6675;
  --line: #dde2e8; --good: #1a7f4b; --bad: #b42318; --unsure: #a15c00; --wait: #2f6fbd;
  --calm: #8fa3b8; }
@media (prefers-color-scheme: dark) { :root { --page: #12161c; --card: #1b212a; --text: #e6eaf0;
  --soft: #98a4b3; --line: #303946; --good: #4cc38a; --bad: #ff7b6e; --unsure: #f0b35b;
  --wait: #78aef0; --calm: #66788c; } }
* { box-sizing: border-box }
body { margin: 0; background: var(--page); color: var(--text);
  font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 68rem; margin: 0 auto; padding: 2rem 1.25rem 4rem }
section, header { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 1.1rem 1.4rem; margin-bottom: 1.1rem }
h1 { margin: 0; font-size: 1.9rem } h2 { margin: 0 0 .6rem; font-size: 1.1rem }
h3 { margin: 1rem 0 .2rem; font-size: .95rem }
p { margin: .4rem 0 } .soft { color: var(--soft) }
.clean { border-left: 8px solid var(--good) } .clean h1 { color: var(--good) }
.findings { border-left: 8px solid var(--bad) } .findings h1 { color: var(--bad) }
.unknown { border-left: 8px solid var(--unsure) } .unknown h1 { color: var(--unsure) }
.old { color: var(--unsure); font-weight: 600 }
.wide { overflow-x: auto }
table { border-collapse: collapse; width: 100%; font-size: .9rem }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--line);
  vertical-align: top }
th { color: var(--soft); font-weight: 600 }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
td.key { overflow-wrap: anywhere; max-width: 16rem }
code { font: .88em ui-monospace, monospace }
svg { display: block; width: 100%; height: auto }
svg text { fill: var(--soft); font: 11px system-ui, sans-serif }
.log { fill: var(--calm) } .gone { fill: none; stroke: var(--calm); stroke-dasharray: 3 3 }
.wait { fill: var(--wait) } .late, .mark { fill: var(--bad) } .unsure { fill: var(--unsure) }
.key-of span { display: inline-block; width: .8rem; height: .8rem; border-radius: 2px;
  margin: 0 .35rem 0 1rem; vertical-align: -1px }
"""


def html_page(
    verdict: Verdict, findings: Sequence[Mapping[str, Any]], *, now_ms: int, docs: str | None
) -> str:
    """Return the page. `docs` is the address of this service's documentation, if it is known."""
    parts = [
        *_head(verdict, now_ms, docs),
        *(line for flow in verdict.flows for line in _flow(flow, findings, docs)),
    ]
    title = f"Audit: {verdict.answer.value}"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{_STYLE}</style></head>\n<body><main>\n"
        + "\n".join(parts)
        + "\n</main></body></html>\n"
    )


def _head(verdict: Verdict, now_ms: int, docs: str | None) -> Iterator[str]:
    seconds = (verdict.ended_ms - verdict.started_ms) / 1_000
    compared = verdict.records_compared
    age_h = (now_ms - verdict.ended_ms) / 3_600_000
    yield f'<header class="{verdict.answer.value}"><h1>{verdict.answer.value.capitalize()}</h1>'
    yield f"<p>{_MEANS[verdict.answer]}</p>"
    if verdict.problem is not None:
        yield f"<p>Could not tell: {shown(verdict.problem)}</p>"
    yield (
        f'<p class="soft">{compared["source"]:,} source and {compared["target"]:,} target records '
        f"compared in {seconds:,.1f} s. Ended {_day(verdict.ended_ms)}.</p>"
    )
    if now_ms - verdict.ended_ms > OLD_MS:
        yield (
            f'<p class="old">This verdict was {age_h:,.0f} hours old when this page was made, and '
            "says nothing of what was written since. Run <code>spark-audit run</code> again.</p>"
        )
    if docs is not None:
        yield f"<p>{_link(docs, 'operate/audit.html', 'What to do about findings')}</p>"
    yield "</header>"


def _flow(
    flow: FlowReport, findings: Sequence[Mapping[str, Any]], docs: str | None
) -> Iterator[str]:
    own = [one for one in findings if one["flow"] == flow.flow]
    ended = "" if flow.promotion is None else f", ended by promotion {flow.promotion}"
    yield f"<section><h2>Coverage of {shown(flow.flow)}</h2>"
    yield f'<p class="soft">Snapshot of {_day(flow.taken_ms)}{ended}. The columns add up.</p>'
    if flow.prefix:
        yield (
            "<p>Topics are named as on the source; on the target "
            f"<code>{shown(flow.prefix)}</code> stands before each.</p>"
        )
    yield from _coverage_table(flow)
    yield from _left_out(flow)
    if (keys := keys_line(flow)) is not None:
        yield f"<p>{shown(keys.capitalize())}.</p>"
    yield "</section>"
    yield "<section><h2>What differs</h2>"
    yield from _findings(own, docs)
    yield "</section>"
    if flow.settings:
        yield "<section><h2>Topic settings that differ</h2><ul>"
        for one in flow.settings:
            mark = "Warning" if one.loses is None else "Finding"
            yield f"<li>{mark}: {shown(one.words)}</li>"
        yield "</ul></section>"
    yield from _rights(flow)
    yield "<section><h2>Groups</h2>" + _groups(flow) + "</section>"
    yield "<section><h2>Partitions</h2>"
    yield (
        '<p class="key-of soft"><span style="background: var(--calm)"></span>compared'
        '<span style="background: var(--wait)"></span>in flight'
        '<span style="background: var(--bad)"></span>finding'
        '<span style="background: var(--unsure)"></span>not compared</p>'
    )
    for row in sorted(flow.partitions, key=_worst_first):
        here = [one for one in own if _place(one) == _place(row)]
        yield f"<h3>{shown(row['topic'])}-{row['partition']}</h3>"
        yield partition_picture(row, here)
    yield "</section>"


def _worst_first(row: Mapping[str, Any]) -> tuple[bool, str, int]:
    calm = (Kind.EXPLAINED, Kind.KEYS_ALIKE)
    differs = any(row[kind.column] for kind in Kind if kind not in calm)
    return not differs, row["topic"], row["partition"]


def _place(row: Mapping[str, Any]) -> tuple[str, int]:
    return row["topic"], row["partition"]


def _rights(flow: FlowReport) -> Iterator[str]:
    if not flow.rights and flow.rights_not_compared is None:
        return
    yield "<section><h2>Rights that differ</h2>"
    if flow.rights_not_compared is not None:
        yield f"<p>Not compared: {shown(flow.rights_not_compared)}.</p>"
    if flow.rights:
        yield "<ul>"
        for one in flow.rights:
            mark = "Finding" if one.explained is None else "Warning"
            yield f"<li>{mark}: {shown(one.words)}</li>"
        yield "</ul>"
    yield "</section>"


def _coverage_table(flow: FlowReport) -> Iterator[str]:
    sides = [flow.coverage(side) for side in SIDES]
    yield '<div class="wide"><table><tr><th>offsets</th>'
    yield "".join(f'<th class="number">{side}</th>' for side in SIDES) + "</tr>"
    yield _numbers("in the snapshot", [sum(shares.values()) for shares in sides])
    for share in Share:
        offsets = [shares[share] for shares in sides]
        if any(offsets) or share in {Share.COMPARED, Share.NOT_COMPARED}:
            mark = "explained: " if share.is_explained else ""
            yield _numbers(f"{mark}{share.value}", offsets)
    yield "</table></div>"


def _numbers(name: str, numbers: Iterable[int]) -> str:
    cells = "".join(f'<td class="number">{number:,}</td>' for number in numbers)
    return f"<tr><td>{shown(name)}</td>{cells}</tr>"


def _left_out(flow: FlowReport) -> Iterator[str]:
    reasons = [f"{topic}-{partition}: {why}" for topic, partition, why in flow.left_out]
    for reason in [*reasons, *flow.unaudited]:
        yield f"<p>Not compared: {shown(reason)}</p>"
    if flow.only_on_target:
        yield f'<p class="soft">Only on the target: {shown(", ".join(flow.only_on_target))}</p>'


def _findings(findings: Sequence[Mapping[str, Any]], docs: str | None) -> Iterator[str]:
    if not findings:
        yield "<p>No findings in records, groups and the map.</p>"
        return
    names = ("finding", "topic-partition", "source offset", "target offset", "records", "key")
    yield '<div class="wide"><table><tr>'
    yield "".join(f"<th>{name}</th>" for name in (*names, "time", "why, and what to run next"))
    yield "</tr>"
    for one in findings[:MOST_FINDINGS]:
        yield _finding(one, docs)
    yield "</table></div>"
    if len(findings) > MOST_FINDINGS:
        yield (
            f"<p>{len(findings) - MOST_FINDINGS:,} more rows are not shown: "
            "<code>spark-audit report</code> lists all.</p>"
        )


def _finding(one: Mapping[str, Any], docs: str | None) -> str:
    kind = Kind(one["kind"])
    name = shown(kind.value)
    if docs is not None:
        name = _link(docs, "concepts/audit.html", kind.value)
    time_ms = one["timestamp_ms"]
    command = _NEXT.get(kind)
    then = "" if command is None else f" <code>{command}</code>"
    offsets = "".join(
        f'<td class="number">{"-" if one[side] is None else f"{one[side]:,}"}</td>'
        for side in ("source_offset", "target_offset", "records")
    )
    return (
        f"<tr><td>{name}</td><td>{shown(one['topic'])}-{one['partition']}</td>{offsets}"
        f'<td class="key">{shown(one["key"] or "")}</td>'
        f"<td>{'' if time_ms is None else shown(record_time(time_ms))}</td>"
        f"<td>{shown(one['reason'])}.{then}</td></tr>"
    )


def _groups(flow: FlowReport) -> str:
    numbers = {
        name: flow.total(f"positions_{name}") for name in ("exact", "behind", "too_far", "unknown")
    }
    if not any(numbers.values()):
        return "<p>No group has positions on both sides that were audited.</p>"
    again = flow.total("positions_read_again")
    return (
        f"<p>{numbers['exact']:,} positions are exact; {numbers['behind']:,} are behind and would "
        f"read {again:,} records again; {numbers['too_far']:,} would skip records; "
        f"{numbers['unknown']:,} lie where the logs differ.</p>"
    )


def shown(text: str) -> str:
    """Return a text from outside as HTML, within its line."""
    return escape("".join(one if one.isprintable() else f"\\x{ord(one):02x}" for one in text))


def _link(docs: str, page: str, text: str) -> str:
    return f'<a href="{escape(docs.rstrip("/"))}/{page}">{shown(text)}</a>'


def _day(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1_000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")

"""A stored result as one HTML file that needs nothing else, for managers and engineers. Pure.

verdict ─► nights ─► of each flow: coverage, findings by kind, groups, settings and rights,
each finding, pictures of partitions
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from runtime.pages.markup import folded, heads, link, moment, numbers_of, shown
from runtime.pages.page_style import STYLE
from spark_audit.compare.outcomes import FINDINGS, Kind
from spark_audit.result.coverage import SIDES, Share, why_not_compared
from spark_audit.result.history import KeptVerdict, UnreadableNight
from spark_audit.result.page_findings import (
    RUNBOOK,
    Anchors,
    findings_list,
    findings_summary,
    groups,
)
from spark_audit.result.page_nights import nights
from spark_audit.result.picture import partition_picture
from spark_audit.result.report import keys_line
from spark_audit.result.verdict import Answer, FlowVerdict, Verdict

OLD_MS: Final = 36 * 3_600_000
"""A verdict of that age says nothing of today; alerts take the same."""
MOST_NIGHTS: Final = 30
MOST_PICTURES: Final = 2_000
"""So many partitions of a flow are drawn, the worst first."""
_MEANS: Final = {
    Answer.CLEAN: "Everything that the snapshot named is equal on both sites, or explained. "
    "A switch to the other site would lose nothing of it.",
    Answer.FINDINGS: "The sites differ where nothing explains it. Look at the findings before you "
    "rely on a switch.",
    Answer.UNKNOWN: "Not everything could be compared. Nothing is known of the rest: it is not "
    "clean.",
}


def html_page(
    verdict: Verdict,
    findings: Sequence[Mapping[str, Any]],
    *,
    now_ms: int,
    docs: str | None,
    kept: Sequence[KeptVerdict | UnreadableNight] = (),
) -> str:
    """Return the page. `docs` is the address of this service's documentation, if it is known."""
    parts = [
        *_head(verdict, now_ms, docs),
        *nights(kept),
        *(
            line
            for number, flow in enumerate(verdict.flows)
            for line in _flow(flow, findings, docs, f"f{number}")
        ),
    ]
    title = f"Audit: {verdict.answer.value}"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{STYLE}</style></head>\n<body><main>\n"
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
    if verdict.only:
        yield f"<p>Only these topics were looked at: {shown(', '.join(verdict.only))}</p>"
    yield (
        f'<p class="soft">{compared["source"]:,} source and {compared["target"]:,} target records '
        f"compared in {seconds:,.1f} s. Ended {moment(verdict.ended_ms)}.</p>"
    )
    if now_ms - verdict.ended_ms > OLD_MS:
        yield (
            f'<p class="old">This verdict was {age_h:,.0f} hours old when this page was made, and '
            "says nothing of what was written since. Run the audit again.</p>"
        )
    if verdict.ended_ms - now_ms > OLD_MS:
        yield (
            f'<p class="old">By the clock of this page this verdict is {-age_h:,.0f} hours of the '
            "future: one of two clocks is wrong, and how old it is nobody knows.</p>"
        )
    if docs is not None:
        yield f"<p>{link(docs, RUNBOOK, 'What to do about findings')}</p>"
    yield "</header>"


def _flow(
    flow: FlowVerdict, findings: Sequence[Mapping[str, Any]], docs: str | None, name: str
) -> Iterator[str]:
    own = [one for one in findings if one["flow"] == flow.flow]
    rows = sorted(flow.partitions, key=_worst_first)
    anchors = {_place(row): f"{name}p{number}" for number, row in enumerate(rows[:MOST_PICTURES])}
    ended = "" if flow.promotion is None else f", ended by promotion {flow.promotion}"
    yield f"<section><h2>Coverage of {shown(flow.flow)}</h2>"
    yield f'<p class="soft">Snapshot of {moment(flow.taken_ms)}{ended}. The columns add up.</p>'
    if flow.prefix:
        yield (
            "<p>Topics are named as on the source; on the target "
            f"<code>{shown(flow.prefix)}</code> stands before each.</p>"
        )
    if flow.renamed:
        given = (
            f"<code>{shown(topic)}</code> is <code>{shown(name)}</code>"
            for topic, name in flow.renamed
        )
        yield f"<p>Topics are named as on the source; on the target {', '.join(given)}.</p>"
    yield from _coverage_table(flow)
    yield from _left_out(flow)
    if (keys := keys_line(flow)) is not None:
        yield f"<p>{shown(keys.capitalize())}.</p>"
    yield "</section>"
    yield "<section><h2>What differs</h2>"
    yield from findings_summary(flow, own, docs)
    yield "</section><section><h2>Groups</h2>"
    yield from groups(flow, own)
    yield "</section>"
    if flow.settings:
        yield "<section><h2>Topic settings that differ</h2>"
        marked = ((one.loses is not None, one.words) for one in flow.settings)
        yield from folded("settings", _marked(marked))
        yield "</section>"
    yield from _rights(flow)
    if own:
        yield "<section><h2>Each finding</h2>"
        yield from findings_list(own, anchors)
        yield "</section>"
    yield from _partitions(rows, own, anchors)


def _partitions(
    rows: Sequence[Mapping[str, Any]], own: Sequence[Mapping[str, Any]], anchors: Anchors
) -> Iterator[str]:
    """Yield a picture of each partition; those without findings are folded away."""
    by_place: defaultdict[tuple[str, int], list[Mapping[str, Any]]] = defaultdict(list)
    for one in own:
        by_place[_place(one)].append(one)

    def pictures(some: Iterable[Mapping[str, Any]]) -> Iterator[str]:
        for row in some:
            yield f'<h3 id="{anchors[_place(row)]}">{shown(row["topic"])}-{row["partition"]}</h3>'
            yield partition_picture(row, by_place[_place(row)])

    drawn = rows[:MOST_PICTURES]
    bad = [row for row in drawn if _differs(row)]
    calm = drawn[len(bad) :]
    yield "<section><h2>Partitions</h2>"
    yield (
        '<p class="key-of soft"><span style="background: var(--calm)"></span>compared'
        '<span style="background: var(--wait)"></span>in flight'
        '<span style="background: var(--bad)"></span>finding'
        '<span style="background: var(--unsure)"></span>not compared</p>'
    )
    yield from pictures(bad)
    if calm:
        yield f"<details><summary>{len(calm):,} partitions without findings</summary>"
        yield from pictures(calm)
        yield "</details>"
    if len(rows) > MOST_PICTURES:
        yield f"<p>{len(rows) - MOST_PICTURES:,} more partitions are not drawn.</p>"
    yield "</section>"


def _differs(row: Mapping[str, Any]) -> bool:
    """Return whether somebody has to look at the partition."""
    return any(row[kind.column] for kind in FINDINGS) or why_not_compared(row) is not None


def _worst_first(row: Mapping[str, Any]) -> tuple[bool, bool, str, int]:
    waits = any(row[kind.column] for kind in (Kind.IN_FLIGHT, Kind.KEYS_IN_FLIGHT))
    return not _differs(row), not waits, row["topic"], row["partition"]


def _place(row: Mapping[str, Any]) -> tuple[str, int]:
    return row["topic"], row["partition"]


def _rights(flow: FlowVerdict) -> Iterator[str]:
    if not flow.rights and flow.rights_not_compared is None:
        return
    yield "<section><h2>Rights that differ</h2>"
    if flow.rights_not_compared is not None:
        yield f"<p>Not compared: {shown(flow.rights_not_compared)}.</p>"
    yield from folded("rights", _marked((one.explained is None, one.words) for one in flow.rights))
    yield "</section>"


def _marked(found: Iterable[tuple[bool, str]]) -> list[str]:
    """Return items of a list, findings first."""
    return [
        f"<li>{'Finding' if is_finding else 'Warning'}: {shown(words)}</li>"
        for is_finding, words in sorted(found, key=lambda one: not one[0])
    ]


def _coverage_table(flow: FlowVerdict) -> Iterator[str]:
    sides = [flow.coverage(side) for side in SIDES]
    yield '<div class="wide"><table>' + heads("offsets", *SIDES, numbers=SIDES)
    yield _numbers("in the snapshot", [sum(shares.values()) for shares in sides])
    for share in Share:
        offsets = [shares[share] for shares in sides]
        if any(offsets) or share in {Share.COMPARED, Share.NOT_COMPARED}:
            mark = "explained: " if share.is_explained else ""
            yield _numbers(f"{mark}{share.value}", offsets)
    yield "</table></div>"
    told = [sum(row.get(f"{side}_remembered", 0) for row in flow.partitions) for side in SIDES]
    if any(told):
        yield (
            f"<p>{told[0]:,} source and {told[1]:,} target offsets were compared by the sites' "
            "evidence, all others were read.</p>"
        )


def _numbers(name: str, numbers: Iterable[int]) -> str:
    return f"<tr><td>{shown(name)}</td>{numbers_of(numbers)}</tr>"


def _left_out(flow: FlowVerdict) -> Iterator[str]:
    reasons = [f"{topic}-{partition}: {why}" for topic, partition, why in flow.left_out]
    lines = [f"<li>Not compared: {shown(one)}</li>" for one in (*flow.unaudited, *reasons)]
    yield from folded("that were not compared", lines)
    if flow.only_on_target:
        names = [f"<li>{shown(one)}</li>" for one in flow.only_on_target]
        yield f"<details><summary>{len(names):,} topics only on the target, not audited</summary>"
        yield f"<ul>{''.join(names)}</ul></details>"

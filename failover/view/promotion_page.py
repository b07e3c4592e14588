"""The report of a promotion as one HTML file that needs nothing else. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from failover.hooks.called import CALLED, TAKEN_BACK, called_in
from failover.journal.journal import Journal
from failover.journal.steps import ORDER, PromotionState
from failover.view.promotion_report import (
    NOT_EXACT,
    closed_ms,
    lost,
    lost_line,
    phases,
    report_document,
    seconds_of,
)
from failover.view.report import has_slipped, summary
from runtime.pages.markup import folded, heads, moment, numbers_of, shown
from runtime.pages.page_style import STYLE

_BAR_HEIGHT: Final = 18
_NAMES_WIDTH: Final = 150
_WIDTH: Final = 1_000


def promotion_page(journal: Journal, topic_set: str | None) -> str:
    """Return the page."""
    title = f"Promotion of {shown(journal.site)}, epoch {journal.epoch}"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{STYLE}</style></head>\n<body><main>\n"
        + promotion_body(journal, topic_set)
        + "\n</main></body></html>\n"
    )


def promotion_body(journal: Journal, topic_set: str | None) -> str:
    """Return all of the page that is about the promotion."""
    parts = [
        *_head(journal),
        *_timeline(journal),
        *_lost(journal),
        *_groups(report_document(journal)["groups"]),
        *_hooks(journal),
        *_said(journal, topic_set),
        *_partitions(journal),
    ]
    return "\n".join(parts)


def _tone(journal: Journal) -> str:
    """Return how it ended, as the style names it."""
    if journal.state is PromotionState.DONE:
        return "findings" if has_slipped(journal) or lost(journal).records != 0 else "clean"
    return "unknown" if journal.state is PromotionState.RUNNING else "findings"


def _head(journal: Journal) -> Iterator[str]:
    said = {
        PromotionState.DONE: f"{journal.site} is active",
        PromotionState.ROLLED_BACK: f"Rolled back, {journal.source} stays active",
        PromotionState.RUNNING: "Unfinished",
    }[journal.state]
    yield f'<header class="{_tone(journal)}"><h1>{shown(said)}</h1>'
    yield (
        f"<p>{journal.kind.value} promotion from {shown(journal.source)} to {shown(journal.site)},"
        f" epoch {journal.epoch}, begun {moment(journal.started_ms)}</p>"
    )
    if journal.reason is not None:
        yield f"<p>{shown(journal.reason)}</p>"
    figures = []
    if journal.rto_ms is not None:
        figures.append(f"recovery time {seconds_of(journal.rto_ms)}")
    closed = closed_ms(journal)
    if closed is not None:
        figures.append(f"writes were refused for {seconds_of(closed)}")
    figures.append(f"lost: {lost_line(lost(journal))}")
    yield f"<p><strong>{', '.join(figures)}</strong></p>"
    yield from (f'<p class="soft">{shown(str(given))}</p>' for given in journal.given)
    yield "</header>"


def _timeline(journal: Journal) -> Iterator[str]:
    """Yield a bar for each step, on one scale."""
    rows = phases(journal)
    if not rows:
        return
    whole = max(1, *(one.after_ms + (one.took_ms or 0) for one in rows))
    room = _WIDTH - _NAMES_WIDTH - 90
    yield "<section><h2>Steps</h2>"
    yield f'<svg viewBox="0 0 {_WIDTH} {len(rows) * _BAR_HEIGHT}" role="img" aria-label="Steps">'
    for number, one in enumerate(rows):
        top = number * _BAR_HEIGHT
        left = _NAMES_WIDTH + max(0, one.after_ms) * room / whole
        width = max(2.0, (one.took_ms or 0) * room / whole)
        style = "wait" if one.state.value == "done" else "late"
        took = "not ended" if one.took_ms is None else seconds_of(one.took_ms)
        yield f'<text x="0" y="{top + 13}">{one.step.value} ({one.state.value})</text>'
        yield (
            f'<rect class="{style}" x="{left:.1f}" y="{top + 4}" width="{width:.1f}" height="10"'
            ' rx="2"/>'
        )
        yield f'<text x="{left + width + 6:.1f}" y="{top + 13}">{took}</text>'
    yield "</svg></section>"


def _lost(journal: Journal) -> Iterator[str]:
    given_up = lost(journal)
    if given_up.records == 0 and not given_up.before_start:
        return
    yield f"<section><h2>Lost</h2><p>{shown(lost_line(given_up))}</p>"
    lines = [
        f"<tr><td>{shown(name)}</td>{numbers_of([count])}</tr>"
        for name, count in given_up.partitions.items()
    ]
    if lines:
        lines.insert(0, heads("partition", "records, at least", numbers=("records, at least",)))
        yield from folded("partitions", lines, tag="table")
    yield "</section>"


def _groups(groups: Mapping[str, Any]) -> Iterator[str]:
    if groups["moved"] is None:
        return
    bounded, left = groups["bounded"] or {}, groups["left"]
    others = sum(len(groups[one] or ()) for one in NOT_EXACT) + groups["more"]
    exact = "how many go on exactly is not known" if groups["bounded"] is None else ""
    yield (
        f"<section><h2>Groups</h2><p>{groups['moved']:,} groups, {groups['committed']:,} positions"
        f" committed. {exact or f'{others:,} do not go on exactly where they were'}.</p>"
    )
    lines = [
        f"<tr><td>{shown(name)}</td>{numbers_of([one['partitions'], one['reread']])}</tr>"
        for name, one in bounded.items()
    ]
    if lines:
        columns = ("partitions", "records again, at most")
        lines.insert(0, heads("group", *columns, numbers=columns))
        yield from folded("groups", lines, tag="table")
    said = [
        *(f"<li>{shown(name)} was left as it is: {shown(why)}</li>" for name, why in left.items()),
        *(
            f"<li>{shown(name)} goes on behind records that are gone: {shown(where)}</li>"
            for name, where in groups["cut"].items()
        ),
        *(
            f"<li>{shown(name)} goes on before an open transaction</li>"
            for name in groups["unstable"]
        ),
    ]
    yield from folded("groups", said)
    yield "</section>"


def _hooks(journal: Journal) -> Iterator[str]:
    lines = [
        f"<li>{shown(str(one))}</li>"
        for step in ORDER[journal.kind]
        for key in (CALLED, TAKEN_BACK)
        for one in called_in(journal, step, key)
    ]
    if lines:
        yield "<section><h2>Hooks</h2>"
        yield from folded("hooks", lines)
        yield "</section>"


def _said(journal: Journal, topic_set: str | None) -> Iterator[str]:
    told = summary(journal, topic_set)
    lines = [f"<li>{shown(line.strip(), 1_000)}</li>" for line in told]
    yield "<section><h2>What the program said</h2>"
    yield from folded("lines", lines)
    yield "</section>"


def _partitions(journal: Journal) -> Iterator[str]:
    if not journal.partitions:
        return
    columns = ("mirrored up to", "target end", "source end")
    lines = [
        f"<tr><td>{shown(one.topic)}-{one.partition}</td>"
        f"{numbers_of([one.mirrored_source_end, one.target_end, one.source_end])}</tr>"
        for one in journal.partitions
    ]
    yield "<section><h2>Where each partition stood</h2>"
    yield from folded(
        "partitions", [heads("partition", *columns, numbers=columns), *lines], tag="table"
    )
    yield "</section>"

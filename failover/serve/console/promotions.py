"""Promotions: the steps of one as they are done, and the reports of earlier ones. Pure."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Final
from urllib.parse import urlencode

from failover.journal.journal import Journal, StepRecord
from failover.journal.steps import ORDER, PromotionState, StepState
from failover.view.promotion_page import promotion_body
from failover.view.promotion_report import closed_ms, lost, lost_line, seconds_of
from failover.view.report import summary
from runtime.console.frame import ROOT, PagePart, PageParts
from runtime.console.tables import Column, mark, table, when
from runtime.pages.browsing import BadTarget
from runtime.pages.markup import shown

_TONES: Final = {
    PromotionState.DONE: "good",
    PromotionState.RUNNING: "unsure",
    PromotionState.ROLLED_BACK: "bad",
}
_STEP_TONES: Final = {
    StepState.DONE: "good",
    StepState.STARTED: "unsure",
    StepState.FAILED: "bad",
    StepState.UNDONE: "unsure",
    StepState.STALE: "unsure",
}
_COLUMNS: Final = (
    Column("epoch"),
    Column("began"),
    Column("to"),
    Column("kind"),
    Column("state"),
    Column("recovery time", is_number=True),
    Column("closed for", is_number=True),
    Column("lost"),
    Column("by"),
)


def promotion_line(journal: Journal, of_set: str) -> str:
    """Return a promotion of a set in a line, with a link to its report."""
    rto = "" if journal.rto_ms is None else f", recovery time {seconds_of(journal.rto_ms)}"
    link = f'<a href="{_report_address(journal, of_set)}">to {shown(journal.site)}</a>'
    return f"{link}, {journal.kind}, {journal.state}{rto}, {when(journal.started_ms)}."


def _report_address(journal: Journal, of_set: str) -> str:
    chosen = {"set": of_set} if of_set else {}
    return escape(f"{ROOT}/promotions?{urlencode({'epoch': journal.epoch, **chosen})}")


def steps_list(journal: Journal) -> str:
    """Return every step of a promotion: what is done, under way, and still to come."""
    way = f"from {shown(journal.source)} to {shown(journal.site)}, {journal.kind}"
    back = " It is being taken back." if journal.direction.value == "back" else ""
    why = "" if journal.reason is None else f"<p>{shown(journal.reason, 600)}</p>"
    rows = "".join(_step(name.value, journal.record(name)) for name in ORDER[journal.kind])
    return (
        f"<p>{way}, epoch {journal.epoch}, begun {when(journal.started_ms)}.{back}</p>{why}"
        f'<ol class="steps">{rows}</ol>'
    )


def _step(name: str, record: StepRecord | None) -> str:
    if record is None:
        cells = (mark("calm", "to come"), "", "")
    else:
        took = record.ended_ms
        spent = "" if took is None else seconds_of(took - record.started_ms)
        cells = (
            mark(_STEP_TONES[record.state], record.state.value),
            spent,
            when(record.started_ms),
        )
    spans = "".join(f"<span>{cell}</span>" for cell in cells)
    return f"<li><strong>{shown(name)}</strong>{spans}</li>"


def promotions_page(
    by_set: Mapping[str, Sequence[Journal] | str] | None, query: Mapping[str, str]
) -> PageParts:
    """Return the list of promotions, or the report of the one of `epoch`; raises BadTarget.

    Of a set whose journals cannot be read there is the reason.
    """
    if by_set is None:
        said = "<p>The witness is being read; the answer shows here by itself.</p>"
        return PageParts(title="Promotions", parts=[PagePart("asked", said)])
    asked = query.get("epoch")
    if asked is None:
        parts = [PagePart(f"s{number}", _list(*one)) for number, one in enumerate(by_set.items())]
        return PageParts(title="Promotions", parts=parts)
    name = query.get("set", "")
    if not (asked.isascii() and asked.isdigit() and len(asked) < 10) or name not in by_set:
        raise BadTarget(400, "epoch is a number, and set one of the file")
    journals = by_set[name]
    if isinstance(journals, str):
        return PageParts(
            title="Promotion", parts=[PagePart("unknown", f"<p>{shown(journals)}</p>")]
        )
    found = next((one for one in journals if one.epoch == int(asked)), None)
    if found is None:
        raise BadTarget(404, f"the witness holds no journal of epoch {int(asked)}")
    return PageParts(
        title=f"Promotion of {found.site}, epoch {found.epoch}",
        parts=_report_of_any(found, name or None),
    )


def _report(journal: Journal, topic_set: str | None) -> Sequence[PagePart]:
    if journal.state is PromotionState.RUNNING:
        lines = "\n".join(shown(line, 1_000) for line in summary(journal, topic_set))
        return (PagePart("steps", f"<h2>Steps</h2>{steps_list(journal)}<pre>{lines}</pre>"),)
    return (PagePart("report", promotion_body(journal, topic_set)),)


def _report_of_any(journal: Journal, topic_set: str | None) -> Sequence[PagePart]:
    """Return the report; a journal of another version, or a garbled one, may lack what it needs."""
    try:
        return _report(journal, topic_set)
    except (KeyError, TypeError, ValueError) as fault:
        said = f"Not known: the journal lacks what a report needs ({fault!r})."
        steps = f"<h2>Steps</h2>{steps_list(journal)}"
        return (PagePart("unknown", f'<p class="unknown">{shown(said)}</p>{steps}'),)


def _list(name: str, journals: Sequence[Journal] | str) -> str:
    head = f"<h2>{shown(name)}</h2>" if name else ""
    if isinstance(journals, str):
        return f'{head}<p class="unknown">Not known: {shown(journals, 600)}</p>'
    if not journals:
        return f"{head}<p>The witness holds no journal of a promotion.</p>"
    rows = [_row(name, journal) for journal in reversed(journals)]
    return head + table("Promotions", _COLUMNS, rows)


def _row(name: str, journal: Journal) -> Sequence[str]:
    closed = closed_ms(journal)
    return (
        f'<a href="{_report_address(journal, name)}">{journal.epoch}</a>',
        when(journal.started_ms),
        shown(journal.site),
        shown(journal.kind.value),
        mark(_TONES[journal.state], journal.state.value),
        "not switched" if journal.rto_ms is None else seconds_of(journal.rto_ms),
        "not known" if closed is None else seconds_of(closed),
        shown(lost_line(lost(journal))),
        shown(journal.given[0].user) if journal.given else "not known",
    )

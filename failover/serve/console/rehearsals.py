"""Rehearsals: when, by whom, how long each way took, what was lost; and today's outlook. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from html import escape
from typing import Final

from failover.planning.readiness import Readiness
from failover.rehearsal.judgement import WORDS
from failover.rehearsal.outcome import Rehearsal, RehearsalState, RehearsedLeg, SetOutlook
from failover.view.promotion_report import seconds_of
from runtime.console.frame import ROOT, PagePart, PageParts
from runtime.console.tables import Column, mark, table, unknown, when
from runtime.pages.browsing import BadTarget
from runtime.pages.markup import shown
from wire.values import frozen

PATH: Final = "rehearsals"
_TONES: Final = {
    RehearsalState.PASSED: "good",
    RehearsalState.RUNNING: "unsure",
    RehearsalState.REFUSED: "unsure",
    RehearsalState.FAILED: "bad",
    RehearsalState.INTERRUPTED: "bad",
}
_COLUMNS: Final = (
    Column("number"),
    Column("began"),
    Column("to"),
    Column("result"),
    Column("recovery time there", is_number=True),
    Column("and back", is_number=True),
    Column("lost", is_number=True),
    Column("read again", is_number=True),
    Column("by"),
    Column("why"),
)
_LEGS: Final = (
    Column("to"),
    Column("epoch", is_number=True),
    Column("recovery time", is_number=True),
    Column("nobody could write", is_number=True),
    Column("writers stood", is_number=True),
    Column("readers stood", is_number=True),
)
_STEPS: Final = (Column("step"), Column("took", is_number=True))
_TODAY: Final = (Column("set"), Column("to"), Column("could be promoted"), Column("why not"))


@frozen
class RehearsalsSeen:
    """The rehearsals that the witness keeps, oldest first, or why they are not known."""

    kept: Sequence[Rehearsal] = ()
    why_not: str | None = None
    is_configured: bool = True


def rehearsal_line(seen: RehearsalsSeen | None) -> str:
    """Return the newest rehearsal in a line, with a link to all."""
    link = f'<a href="{ROOT}/{PATH}">Last rehearsal</a>'
    if seen is None:
        return f"{link}: the witness is being read."
    if seen.why_not is not None:
        return f"{link}: {unknown(seen.why_not)}"
    if not seen.kept:
        return f"{link}: {'none yet.' if seen.is_configured else 'there is none.'}"
    last = seen.kept[-1]
    rto = "" if not last.legs else f", recovery time {_took(last.legs[0].rto_ms)}"
    return f"{link}: {mark(_TONES[last.state], last.state.value)} {when(last.started_ms)}{rto}."


def rehearsals_page(
    seen: RehearsalsSeen | None,
    today: Mapping[str, tuple[Sequence[Readiness], str]],
    query: Mapping[str, str],
) -> PageParts:
    """Return all rehearsals and today's outlook, or the one of `number`; raises BadTarget.

    `today` has by set what was looked at last, and why nothing was.
    """
    if seen is None:
        said = "<p>The witness is being read; the answer shows here by itself.</p>"
        return PageParts(title="Rehearsals", parts=[PagePart("asked", said)])
    asked = query.get("number")
    if asked is None:
        outlook = PagePart("today", f"<h2>What would refuse a promotion today</h2>{_today(today)}")
        return PageParts(title="Rehearsals", parts=[PagePart("kept", _kept(seen)), outlook])
    if not (asked.isascii() and asked.isdigit() and len(asked) < 10):
        raise BadTarget(400, "number is a number")
    found = next((one for one in seen.kept if one.number == int(asked)), None)
    if found is None:
        raise BadTarget(404, f"the witness keeps no rehearsal {int(asked)}")
    return PageParts(title=f"Rehearsal {found.number}", parts=_report(found))


def _kept(seen: RehearsalsSeen) -> str:
    head = "<h2>Kept in the witness</h2>"
    if seen.why_not is not None:
        return f"{head}<p>{unknown(seen.why_not)}</p>"
    if not seen.is_configured:
        how = (
            "The file has no <code>failover.rehearsal</code>. With it, empty or not, <code>failover"
            " rehearse SITE</code> promotes a set of topics that no application uses, and takes it"
            " back."
        )
        return f"{head}<p>{how}</p>"
    if not seen.kept:
        return f"{head}<p>There was none yet: <code>failover rehearse SITE</code> does one.</p>"
    return head + table("Rehearsals", _COLUMNS, [_row(one) for one in reversed(seen.kept)])


def _row(one: Rehearsal) -> Sequence[str]:
    load = one.load
    there, back = (*one.legs, None, None)[:2]
    return (
        f'<a href="{escape(f"{ROOT}/{PATH}?number={one.number}")}">{one.number}</a>',
        when(one.started_ms),
        shown(one.site),
        mark(_TONES[one.state], one.state.value),
        _took(None if there is None else there.rto_ms),
        _took(None if back is None else back.rto_ms),
        "not known" if load is None else f"{load.lost:,}",
        "not known" if load is None else f"{load.reread:,}",
        shown(one.given.user),
        shown(one.reason or "", 600),
    )


def _today(today: Mapping[str, tuple[Sequence[Readiness], str]]) -> str:
    outlooks: list[SetOutlook] = []
    for name, (ready, why_not) in today.items():
        outlooks += [
            SetOutlook(set=name, site=one.site, ready=one.is_ready, reason=one.reason)
            for one in ready
        ]
        if not ready:
            why = why_not or "the first look is under way"
            outlooks.append(SetOutlook(set=name, site="-", ready=None, reason=why))
    return table("Outlook", _TODAY, [_outlook(one) for one in outlooks])


def _outlook(one: SetOutlook) -> Sequence[str]:
    tone, word = {True: ("good", "yes"), False: ("bad", "no"), None: ("unsure", "not known")}[
        one.ready
    ]
    return (
        shown(one.set or "all"),
        shown(one.site),
        mark(tone, word),
        shown(one.reason or "", 600),
    )


def _report(one: Rehearsal) -> Sequence[PagePart]:
    why = "" if one.reason is None else f"<p>{shown(one.reason, 1_000)}</p>"
    head = (
        f"<h2>From {shown(one.home)} to {shown(one.site)} and back</h2>"
        f"<p>{mark(_TONES[one.state], one.state.value)} Begun {when(one.started_ms)} by"
        f" <code>{shown(str(one.given), 600)}</code>.</p>{why}"
    )
    if one.legs:
        head += table("Ways", _LEGS, [_leg(leg) for leg in one.legs])
    parts = [PagePart("verdict", head), PagePart("load", f"<h2>Records</h2>{_load(one)}")]
    for number, leg in enumerate(one.legs):
        steps = [
            (shown(step), seconds_of(took))
            for step, took in sorted(leg.steps.items(), key=lambda found: -found[1])
        ]
        name = f"Phases to {leg.site}"
        parts.append(
            PagePart(f"leg{number}", f"<h2>{shown(name)}</h2>{table(name, _STEPS, steps)}")
        )
    if one.applications:
        rows = [_outlook(outlook) for outlook in one.applications]
        head = "<h2>What would have refused a promotion then</h2>"
        parts.append(PagePart("then", head + table("Outlook", _TODAY, rows)))
    return parts


def _leg(leg: RehearsedLeg) -> Sequence[str]:
    times = (leg.rto_ms, leg.closed_ms, leg.writers_ms, leg.readers_ms)
    return (shown(leg.site), f"{leg.epoch:,}", *map(_took, times))


def _load(one: Rehearsal) -> str:
    if one.load is None:
        return f"<p>{unknown('the rehearsal did not come as far as to count them')}</p>"
    counts = asdict(one.load)
    rows = [("acknowledged", f"{one.load.acknowledged:,}")]
    rows += [(shown(words), f"{counts[name]:,}") for name, words in WORDS.items()]
    return table(
        "Records", (Column("what became of them"), Column("records", is_number=True)), rows
    )


def _took(duration_ms: int | None) -> str:
    return "not known" if duration_ms is None else seconds_of(duration_ms)

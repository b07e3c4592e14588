"""The first page: is my data safe, could I fail over now, what would it cost? Pure.

What is not known is said with the reason. It is never shown as nothing, and never as good.
"""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from failover.automatic.votes import vote_lines
from failover.planning.before_start import not_carried
from failover.planning.loss import Loss
from failover.planning.readiness import Readiness
from failover.serve.console.audits import AuditSeen, audit_line
from failover.serve.console.mirrors import SummariesSeen
from failover.serve.console.promotions import promotion_line, steps_list
from failover.serve.console.rehearsals import RehearsalsSeen, rehearsal_line
from failover.view.status import SiteStatus, Status
from runtime.console.flow_pages import TONES, faults_list, flows_table
from runtime.console.flow_summary import FlowSummary
from runtime.console.frame import ROOT, PagePart, PageParts
from runtime.console.tables import Column, counted, mark, seconds, table, unknown, when
from runtime.pages.markup import shown
from wire.values import frozen

NAMED: Final = 5
"""So many topics of a list are named."""
_SITES: Final = (
    Column("site"),
    Column("role"),
    Column("answers"),
    Column("closed for writes"),
    Column("to look at"),
)
_WITNESSED: Final = (Column("flow"), Column("by the witness"), Column("run by"))


@frozen
class SetSeen:
    """A set of topics as it was seen last; of a file without sets all there is, without a name."""

    name: str
    status: Status | None
    why_not: str
    """Why there is no status."""
    readiness: Sequence[Readiness]
    looked_ms: int | None
    """When readiness was looked at last."""
    why_not_ready: str
    """Why readiness is not known."""
    audit: AuditSeen | None


@frozen
class OverviewSeen:
    """Everything that the page shows."""

    sets: Sequence[SetSeen]
    summaries: SummariesSeen | None
    """None while the mirrors are being asked."""
    file: Path
    rehearsals: RehearsalsSeen | None = None
    """None while the witness is being read."""


def overview_page(seen: OverviewSeen) -> PageParts:
    """Return the page."""
    parts: list[PagePart] = []
    for number, one in enumerate(seen.sets):
        parts += _set(one, f"s{number}", seen)
    if seen.summaries is not None and seen.summaries.faults:
        said = "<h2>What the mirrors do not tell</h2>"
        parts.append(PagePart("mirrors", said + faults_list(seen.summaries.faults)))
    return PageParts(title="Could I fail over now?", parts=parts)


def _set(one: SetSeen, at: str, seen: OverviewSeen) -> Sequence[PagePart]:
    named = f"Topics of {shown(one.name)}: " if one.name else ""
    status = one.status
    if status is None:
        why = f'<h2>{named}the active site is not known</h2><p class="unknown">{shown(one.why_not)}'
        return (PagePart(f"{at}-unknown", f"{why}</p>{_what_then()}"),)
    moving = status.active.moving_to
    to = f", moving to {shown(moving)}" if moving else ""
    head = (
        f"<h2>{named}{shown(status.active.site)} is active{to}</h2>"
        f'<p class="soft">Epoch {status.active.epoch}. {_last(status, one.name)}</p>{_hold(status)}'
    )
    parts = [PagePart(f"{at}-answers", head + _answers(one, status, seen))]
    if status.unfinished is not None:
        running = f"<h2>Promotion under way</h2>{steps_list(status.unfinished)}"
        parts.insert(0, PagePart(f"{at}-steps", running))
    parts.append(PagePart(f"{at}-sites", f"<h2>{named}Sites</h2>{_sites(status)}"))
    parts.append(PagePart(f"{at}-flows", f"<h2>{named}Flows</h2>{_flows(status, seen.summaries)}"))
    return parts


def _what_then() -> str:
    return (
        "<p>Nothing is promoted while the witness does not answer. Applications go on at the site"
        " where they are.</p>"
    )


def _last(status: Status, name: str) -> str:
    if status.last is not None:
        return f"Last promotion: {promotion_line(status.last, name)}"
    if not status.active.epoch:
        return "There was no promotion yet."
    return "The last promotion is not known: the witness holds no journal of it."


def _hold(status: Status) -> str:
    lines = [] if status.hold is None else [f"Promotions are {status.hold}"]
    lines += [
        line.removeprefix("voter").strip() for line in vote_lines(status.votes, status.voters)
    ]
    return faults_list(lines)


# --- the three answers ----------------------------------------------------------------------------


def _answers(one: SetSeen, status: Status, seen: OverviewSeen) -> str:
    return (
        f'<div class="answers">{_safe(one, status, seen.summaries)}'
        f"{_ready(one, seen)}{_cost(one, seen.file)}</div>"
    )


def _answer(question: str, tone: str, says: str, *more: str) -> str:
    lines = "".join(f"<p>{line}</p>" for line in more if line)
    return f'<div class="answer {tone}"><h3>{question}</h3><p class="says">{says}</p>{lines}</div>'


def _safe(one: SetSeen, status: Status, summaries: SummariesSeen | None) -> str:
    """Answer by what the mirror says now, and by the last audit."""
    question = "Is my data safe?"
    audited = audit_line(one.audit)
    names = [flow.name for flow in status.flows if flow.is_out_of_active]
    known = {} if summaries is None else {flow.flow: flow for flow in summaries.flows}
    if one.audit is not None and one.audit.answer == "findings":
        return _answer(question, "bad", "The last audit has findings", audited)
    if not names:
        return _answer(question, "bad", "No: nothing leads out of the active site", audited)
    if summaries is None:
        return _answer(question, "unsure", "The mirrors are being asked", audited)
    missing = [name for name in names if name not in known]
    if missing:
        says = f"Not known: {shown(missing[0])} does not tell how far it is"
        return _answer(question, "unsure", says, audited)
    said = [_mirrored(known[name]) for name in names]
    tone, says = min(said, key=lambda found: ("bad", "unsure", "good").index(found[0]))
    return _answer(question, tone, says, audited)


def _mirrored(flow: FlowSummary) -> tuple[str, str]:
    """Return how a flow does: a tone, and a line."""
    name = shown(flow.flow)
    stopped = sum(number for state, number in flow.states.items() if state not in TONES)
    if stopped:
        return "bad", f"{name}: {counted(stopped, 'partition')} stand still"
    if flow.lost_records:
        return "bad", f"{name}: {counted(flow.lost_records, 'record')} lost to retention"
    if flow.role != "running" or flow.lag_records is None:
        return "unsure", f"Not known how far {name} is ({shown(flow.role)})"
    if not flow.partitions:
        return "unsure", f"{name} mirrors no partition"
    if not flow.lag_records:
        return "good", f"{name} has mirrored all of it"
    span = "" if flow.lag_seconds is None else f" ({seconds(flow.lag_seconds)})"
    return "good", f"{name} has mirrored all but {counted(flow.lag_records, 'record')}{span}"


def _ready(one: SetSeen, seen: OverviewSeen) -> str:
    question, file = "Could I fail over now?", seen.file
    rehearsed = rehearsal_line(seen.rehearsals)
    if one.looked_ms is None or one.why_not_ready:
        why = one.why_not_ready or "the first look is under way"
        return _answer(question, "unsure", "Not known", unknown(why), rehearsed)
    if not one.readiness:
        says = "No site could take over: no flow leads to one"
        return _answer(question, "unsure", says, rehearsed)
    shown_sites = []
    for ready in one.readiness:
        site = shown(ready.site)
        if ready.is_ready:
            shown_sites.append(("good", f"Yes, to {site}", _command("promote", ready, one, file)))
        else:
            why = f"{mark('bad', ready.cause or 'other')} {shown(ready.reason or '', 600)}"
            shown_sites.append(
                ("bad", f"No, not to {site}", f"{why}</p><p>{_plan(ready, one, file)}")
            )
    tone = "good" if any(found[0] == "good" for found in shown_sites) else "bad"
    says = "; ".join(found[1] for found in shown_sites)
    looked = f'<span class="soft">Looked at {when(one.looked_ms)}.</span>'
    return _answer(question, tone, says, *(found[2] for found in shown_sites), looked, rehearsed)


def _command(verb: str, ready: Readiness, one: SetSeen, file: Path, *options: str) -> str:
    chosen = ["--set", one.name] if one.name else []
    words = ["failover", verb, ready.site, *options, *chosen, str(file)]
    return f"<code>{shown(shlex.join(words), 600)}</code>"


def _plan(ready: Readiness, one: SetSeen, file: Path) -> str:
    return f"All of it: {_command('plan', ready, one, file)}"


def _cost(one: SetSeen, file: Path) -> str:
    question = "What would it cost?"
    if one.looked_ms is None or one.why_not_ready or not one.readiness:
        return _answer(question, "unsure", "Not known", unknown("nobody could look"))
    lines: list[str] = []
    tone, says = "unsure", "Not known"
    for ready in one.readiness:
        if ready.lag is not None:
            tone, says = "good", "Planned: no record"
            waits = f"{counted(ready.lag, 'record')} would be mirrored first"
            groups = (
                "" if ready.groups is None else f", {counted(ready.groups, 'group')} would move"
            )
            lines.append(f"To {shown(ready.site)}: {waits}{groups}.")
        lost = ready.if_lost
        if lost is None:
            lines.append(
                f"If the active site were lost now: {unknown(f'{ready.site} does not tell')}"
            )
            continue
        lines.append(f"If the active site were lost now: {_loss(lost.loss)}")
        if ready.lag is None:
            tone, says = _lost_says(lost.loss)
        if lost.refusal is not None:
            lines.append(f"{mark('bad', 'over budget')} {shown(lost.refusal, 600)}")
    lines.append(_command("plan", one.readiness[0], one, file, "--source-lost"))
    return _answer(question, tone, says, *lines)


def _lost_says(loss: Loss) -> tuple[str, str]:
    if loss.age_s is None:
        return "unsure", "Not known"
    if not loss.at_least and not loss.unknown:
        if loss.before_start:
            return "unsure", "Records before the flow's start"
        return "good", "No record that is known of"
    return "bad", f"At least {counted(loss.at_least, 'record')}"


def _loss(loss: Loss) -> str:
    """Return what would be lost, as far as it is known."""
    if loss.age_s is None:
        return unknown("no mirror has written down where its logs ended")
    span = "" if loss.seconds is None else f", of up to {seconds(loss.seconds)}"
    said = f"at least {counted(loss.at_least, 'record')}{span}"
    if loss.unknown:
        said += (
            f"; of {len(loss.unknown):,} of {counted(len(loss.partitions), 'partition')} it is not"
            " known for sure"
        )
    stays = not_carried(loss.before_start)
    return f"{said}; {stays}." if stays else f"{said}."


# --- sites and flows ------------------------------------------------------------------------------


def _sites(status: Status) -> str:
    more = f'<p><a href="{ROOT}/sites">Brokers and topics</a>, <a href="{ROOT}/divergence">what'
    more += " only one site has</a></p>"
    return table("Sites", _SITES, [_site_row(site) for site in status.sites]) + more


def _site_row(site: SiteStatus) -> Sequence[str]:
    role = mark("good", "active") if site.is_active else mark("calm", "standby")
    if site.fault is not None:
        fault = shown(site.fault, 600)
        return (
            f"<strong>{shown(site.name)}</strong>",
            role,
            mark("bad", "no"),
            unknown("the site does not answer"),
            fault,
        )
    closed = _topics(site.fenced_topics) or "nothing"
    look = []
    if site.is_active and site.fenced_topics:
        look.append(mark("unsure", "the active site is closed for these"))
    if site.open_topics:
        tone, word = (
            ("calm", "both sites are written to") if site.is_written_to else ("bad", "takes writes")
        )
        look.append(f"{mark(tone, word)} {_topics(site.open_topics)}")
    if site.why_open:
        look.append(shown(site.why_open, 600))
    return (
        f"<strong>{shown(site.name)}</strong>",
        role,
        mark("good", "yes"),
        closed,
        " ".join(look),
    )


def _topics(topics: Sequence[str]) -> str:
    more = len(topics) - NAMED
    named = ", ".join(shown(topic) for topic in topics[:NAMED])
    return f"{named} and {more:,} more" if more > 0 else named


def _flows(status: Status, summaries: SummariesSeen | None) -> str:
    rows = [
        (
            f"<strong>{shown(flow.name)}</strong>",
            mark({"runs": "good", "rests": "calm"}.get(flow.state, "unsure"), flow.state),
            "nobody"
            if flow.worker is None
            else shown(f"process {flow.worker.pid} on {flow.worker.host}"),
        )
        for flow in status.flows
    ]
    names = {flow.name for flow in status.flows}
    told = [] if summaries is None else [one for one in summaries.flows if one.flow in names]
    measured = flows_table(told) if told else ""
    links = (
        f'<p><a href="{ROOT}/flows">Lag over time</a>,'
        f' <a href="{ROOT}/partitions">partitions</a>, <a href="{ROOT}/groups">groups</a></p>'
    )
    return table("Flows in the witness", _WITNESSED, rows) + measured + links

"""The pages about flows, partitions and groups, of any program that knows of them. Pure."""

from collections.abc import Mapping, Sequence
from typing import Final

from runtime.console.flow_lines import FlowsSeen, GroupLine, PartitionLine
from runtime.console.flow_summary import FlowSummary
from runtime.console.frame import ROOT, PagePart, PageParts
from runtime.console.lag_picture import lag_picture
from runtime.console.tables import (
    Column,
    ListQuery,
    count,
    counted,
    mark,
    pager,
    search_form,
    seconds,
    table,
    unknown,
    when,
)
from runtime.pages.markup import MOST_OPEN, shown

ASKED: Final = "<p>The mirror is being asked; the answer shows here by itself.</p>"
TONES: Final[Mapping[str, str]] = {
    "streaming": "good",
    "catching up": "calm",
    "discovering": "calm",
    "positioning": "calm",
    "waiting": "unsure",
    "paused": "unsure",
}
"""Of a partition's state; every other one ends by somebody's decision."""
WORST_FIRST: Final = ("bad", "unsure", "calm", "good")
PARTITION_SORTS: Final = ("worst", "name", "lag")
GROUP_SORTS: Final = ("worst", "name", "lag", "reread")

_FLOWS: Final = (
    Column("flow", is_short=True),
    Column("state"),
    Column("partitions"),
    Column("lag, records", is_number=True),
    Column("behind", is_number=True),
    Column("groups", is_number=True),
)
_PARTITIONS: Final = (
    Column("partition", sort="name"),
    Column("state", sort="worst"),
    Column("lag, records", is_number=True, sort="lag"),
    Column("behind", is_number=True),
    Column("lost", is_number=True),
    Column("since", is_short=True),
    Column("why, and what to do"),
    Column("worker"),
)
_GROUPS: Final = (
    Column("group", sort="name"),
    Column("flow", is_short=True),
    Column("partitions", is_number=True),
    Column("unread, records", is_number=True, sort="lag"),
    Column("reads again on the target", is_number=True, sort="reread"),
    Column("unread for", is_number=True),
    Column("state", sort="worst"),
)


def flows_table(flows: Sequence[FlowSummary]) -> str:
    """Return a row for each flow."""
    label = f"Flow {flows[0].flow}" if len(flows) == 1 else "Flows"
    return table(label, _FLOWS, [_flow_row(one) for one in flows])


def _flow_row(flow: FlowSummary) -> Sequence[str]:
    tone = {"running": "good", "not authorised": "bad"}.get(flow.role, "calm")
    why = f' <span class="soft">{shown(flow.reason)}</span>' if flow.reason else ""
    states = ", ".join(
        f"{number:,} {mark(_tone(state), state)}" for state, number in sorted(flow.states.items())
    )
    lost = f" {mark('bad', f'{flow.lost_records:,} records lost')}" if flow.lost_records else ""
    return (
        f"<strong>{shown(flow.flow)}</strong>",
        mark(tone, flow.role) + why,
        (states or "none is known") + lost,
        count(flow.lag_records),
        seconds(flow.lag_seconds),
        f"{flow.groups:,}",
    )


def _tone(state: str) -> str:
    return TONES.get(state, "bad")


def faults_list(faults: Sequence[str]) -> str:
    """Return what keeps something from being known or from working, a line each."""
    if not faults:
        return ""
    lines = "".join(f"<li>{shown(one)}</li>" for one in faults[:MOST_OPEN])
    more = len(faults) - MOST_OPEN
    rest = f"<li>and {more:,} more</li>" if more > 0 else ""
    return f'<ul class="faults">{lines}{rest}</ul>'


def flows_page(flows: Sequence[FlowSummary] | None, faults: Sequence[str]) -> PageParts:
    """Return the page of all flows, with their lag over time."""
    parts = []
    if faults:
        parts.append(PagePart("faults", f"<h2>Not known</h2>{faults_list(faults)}"))
    if flows is None:
        parts.append(PagePart("asked", ASKED))
    for number, flow in enumerate(flows or ()):
        parts.append(PagePart(f"flow{number}", _flow(flow)))
    if flows is not None and not flows and not faults:
        parts.append(PagePart("none", "<p>No flow is configured.</p>"))
    return PageParts(title="Flows", parts=parts)


def _flow(flow: FlowSummary) -> str:
    return (
        f"<h2>{shown(flow.flow)}</h2>{flows_table([flow])}"
        f'<p class="soft">As of {when(flow.taken_ms)}.</p>'
        f"{faults_list(flow.faults)}<h3>Lag, in records</h3>{lag_picture(flow.history)}"
    )


def partitions_page(seen: FlowsSeen | None, asked: Mapping[str, str]) -> PageParts:
    """Return the list of partitions; raises BadTarget."""
    query = ListQuery.of(asked, PARTITION_SORTS)
    parts = [*_unseen(seen)]
    if seen is not None:
        found = [one for one in seen.partitions if query.finds(one.name, one.flow, one.state)]
        found.sort(key=_PARTITION_ORDER[query.sort])
        rows = [_partition_row(one) for one in query.part(found)]
        parts.append(
            PagePart(
                "list",
                pager(query, len(found), len(seen.partitions), "partitions")
                + table("Partitions", _PARTITIONS, rows, query)
                + _as_of(seen),
            )
        )
    form = search_form(query, "Topic, flow or state")
    return PageParts(title="Partitions", parts=parts, form=form)


def groups_page(seen: FlowsSeen | None, asked: Mapping[str, str]) -> PageParts:
    """Return the list of groups; raises BadTarget."""
    query = ListQuery.of(asked, GROUP_SORTS)
    parts = [*_unseen(seen)]
    if seen is not None:
        found = [one for one in seen.groups if query.finds(one.group, one.flow)]
        found.sort(key=_GROUP_ORDER[query.sort])
        rows = [_group_row(one) for one in query.part(found)]
        parts.append(
            PagePart(
                "list",
                f"<p>{_rereads(seen.groups)}</p>"
                + pager(query, len(found), len(seen.groups), "groups")
                + table("Groups", _GROUPS, rows, query)
                + _as_of(seen),
            )
        )
    return PageParts(title="Groups", parts=parts, form=search_form(query, "Group or flow"))


def _unseen(seen: FlowsSeen | None) -> Sequence[PagePart]:
    if seen is None:
        return (PagePart("asked", ASKED),)
    if not seen.faults:
        return ()
    said = "These are missing below, and nothing is known of them:"
    return (PagePart("faults", f"<h2>Not known</h2><p>{said}</p>{faults_list(seen.faults)}"),)


def _as_of(seen: FlowsSeen) -> str:
    return (
        f'<p class="soft">As of {when(seen.looked_ms)}. '
        f'<a href="{ROOT}/flows">Flows</a> have their lag over time.</p>'
    )


def _rereads(groups: Sequence[GroupLine]) -> str:
    """Return what a switch would cost all groups now."""
    if not groups:
        return "No group has a position that the mirror knows of."
    known = [one.reread for one in groups if one.reread is not None]
    said = (
        f"If all groups went on at the target now, they would read {counted(sum(known), 'record')}"
        " again"
    )
    left = len(groups) - len(known)
    return f"{said}; of {counted(left, 'group')} more it is not known." if left else f"{said}."


def _partition_row(one: PartitionLine) -> Sequence[str]:
    reason = shown(one.reason)
    advice = f' <span class="soft">{shown(one.advice, 600)}</span>' if one.advice else ""
    skipped = f" {counted(one.skipped, 'offset')} left out." if one.skipped else ""
    return (
        f'<strong>{shown(one.name)}</strong> <span class="soft">{shown(one.flow)}</span>',
        mark(_tone(one.state), one.state),
        count(one.lag_records),
        seconds(one.lag_seconds),
        f"{one.lost:,}",
        when(one.since_ms),
        reason + advice + skipped,
        shown(one.worker),
    )


def _group_row(one: GroupLine) -> Sequence[str]:
    if one.reread is not None:
        reread = f"{one.reread:,}"
    else:
        reread = unknown(f"in {one.unknown:,} of {counted(one.partitions, 'partition')}")
    waiting = ", ".join(mark("unsure", state) for state in one.waiting)
    return (
        f"<strong>{shown(one.group)}</strong>",
        shown(one.flow),
        f"{one.partitions:,}",
        count(one.lag),
        reread,
        seconds(one.lag_seconds),
        waiting or mark("good", "settled"),
    )


def _worst_partition(one: PartitionLine) -> tuple[object, ...]:
    """Those first that stand still, then what is not known, then those that are behind."""
    rank = WORST_FIRST.index(_tone(one.state))
    lag = one.lag_records
    return (rank, lag is not None, -(lag or 0), one.flow, one.topic, one.partition)


def _worst_group(one: GroupLine) -> tuple[object, ...]:
    return (one.reread is not None, not one.waiting, -(one.reread or 0), one.flow, one.group)


_PARTITION_ORDER: Final = {
    "worst": _worst_partition,
    "name": lambda one: (one.topic, one.partition, one.flow),
    "lag": lambda one: (one.lag_records is not None, -(one.lag_records or 0), one.topic),
}
_GROUP_ORDER: Final = {
    "worst": _worst_group,
    "name": lambda one: (one.group, one.flow),
    "lag": lambda one: (one.lag is not None, -(one.lag or 0), one.group),
    "reread": lambda one: (one.reread is not None, -(one.reread or 0), one.group),
}

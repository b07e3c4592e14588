"""The report that `promote` and `abort` print: a line for each step, then a summary. Pure."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from failover.hooks.called import CALLED, TAKEN_BACK, Called, called_in
from failover.journal.execute import StepReport
from failover.journal.journal import Journal
from failover.journal.steps import ORDER, PromotionKind, PromotionState, StepName, StepState
from failover.sites.slipped import Shrunk
from failover.view.told_facts import LEFT_OUT
from runtime.set_option import set_option


def _fence(facts: Any) -> str:  # noqa: ANN401 - JSON, as all facts below
    if facts["fenced"]:
        return f"{facts['partitions']} partitions refuse writes"
    return f"NOT fenced: {facts['why']}"


def _groups_leave(facts: Any) -> str:  # noqa: ANN401
    staying = ", ".join(f"{name} ({count})" for name, count in facts["still_members"].items())
    more = facts.get("more_members", 0)
    staying += f" and {more} more" if more else ""
    left = f"{facts['had_members']} of {facts['groups']} groups had members"
    return f"{left}; still there: {staying}" if staying else left


def _confirm(facts: Any) -> str:  # noqa: ANN401
    if "not_looked" in facts:
        return f"NOT looked: {facts['not_looked']}"
    records = sum(one["stop"] - one["start"] for one in facts.get("appended", ()))
    return f"{records} offsets are on the old site alone" if records else ""


SAID: Final[Mapping[StepName, Callable[[Any], str]]] = {
    StepName.PREFLIGHT: lambda facts: (
        f"{len(facts['topics'])} topics, {sum(facts['topics'].values())} partitions"
    ),
    StepName.FENCE: _fence,
    StepName.DRAIN: lambda facts: f"{facts['records']} records",
    StepName.GROUPS_LEAVE: _groups_leave,
    StepName.GROUPS_MOVE: lambda facts: (
        f"{facts['groups']} groups, {facts['committed']} positions committed"
    ),
    StepName.STOP_FLOW: lambda facts: str(facts["flow"]),
    StepName.VERIFY_FENCE: lambda facts: f"{facts['partitions']} partitions",
    StepName.SEAL: lambda facts: f"{facts['partitions']} partitions",
    StepName.OPEN_TARGET: lambda facts: (
        f"some broker denies writes to {facts['denied']} topics still"
        if facts.get("denied")
        else ""
    ),
    StepName.CONFIRM: _confirm,
    StepName.START_REVERSE: lambda facts: "" if facts["configured"] else "none is configured",
}


LEFT: Final[Mapping[StepName, str]] = {
    StepName.FENCE: "{source} may still be closed for writes; `failover serve` opens it when it"
    " answers",
    StepName.OPEN_TARGET: "{site}, the standby, may still take writes; `failover serve` closes it"
    " when it answers",
    StepName.SEAL: "seals still lie in the offset map on {site}; the mirror takes them back when it"
    " goes on",
}
"""What is so where a step could not be taken back, and who sets it right."""


def step_line(report: StepReport) -> str:
    """Return the line of a step that ended."""
    facts: Any = report.facts
    said = report.reason or ""
    if report.state is StepState.UNDONE and "left" in facts:
        said = f"left as it is: {facts['left']}"
    elif report.state is StepState.DONE and report.step in SAID:
        said = SAID[report.step](facts)
    line = f"{report.step:<13} {report.state:<7} {report.duration_ms / 1000:7.2f} s"
    return f"{line}   {said}".rstrip()


def summary(journal: Journal, topic_set: str | None) -> Iterator[str]:
    """Yield the lines that end the report of a promotion of a set; None where there are none."""
    of_set = set_option(topic_set)
    match journal.state:
        case PromotionState.ROLLED_BACK:
            yield f"rolled back, {journal.source} stays active: {journal.reason}"
            yield from _left(journal)
            yield from _taken(journal, of_set)
        case PromotionState.RUNNING:
            yield f"unfinished: {journal.reason or 'run the same command again to go on'}"
        case PromotionState.DONE:
            rto = "not known" if journal.rto_ms is None else f"{journal.rto_ms / 1000:.2f} s"
            yield f"{journal.site} is active (epoch {journal.epoch}), RTO {rto}"
            if journal.kind is PromotionKind.PLANNED:
                yield from _moved(journal)
                yield from _slipped(journal, of_set)
            else:
                yield from _lost(journal, of_set)
                yield from _slipped(journal, of_set)
    yield from _hooks(journal)
    yield from _left_out(journal)
    yield from (f"  command  {given}" for given in journal.given)


def _left_out(journal: Journal) -> Iterator[str]:
    for record in journal.steps:
        wrong: Any = record.facts.get(LEFT_OUT, ())
        if wrong:
            yield (
                f"  warning  what {record.name} says of {', '.join(wrong)} is not as this version"
                " writes it, and is not told here"
            )


def _hooks(journal: Journal) -> Iterator[str]:
    for step in ORDER[journal.kind]:
        yield from (f"  hook     {one}" for one in called_in(journal, step, CALLED))
    if journal.state is PromotionState.ROLLED_BACK:
        for step in ORDER[journal.kind]:
            for one in called_in(journal, step, TAKEN_BACK):
                yield f"  {'warning  hook' if one.failure else 'hook    '} {one}"


def hooks_left(journal: Journal) -> tuple[Called, ...]:
    """Return the hooks that have not taken back what they did."""
    steps = ORDER[journal.kind]
    called = (one for step in steps for one in called_in(journal, step, TAKEN_BACK))
    return tuple(one for one in called if one.failure is not None)


def left_steps(journal: Journal) -> Mapping[StepName, str]:
    """Return the steps that could not be taken back for now, and why."""
    return {
        record.name: str(record.facts["left"])
        for record in journal.steps
        if record.state is StepState.UNDONE and "left" in record.facts
    }


def _left(journal: Journal) -> Iterator[str]:
    for step, why in left_steps(journal).items():
        yield f"  warning  {LEFT[step].format(source=journal.source, site=journal.site)} ({why})"


def _taken(journal: Journal, of_set: str) -> Iterator[str]:
    """Yield what the new site took while it was open, and does not share with the old one."""
    facts: Any = journal.facts(StepName.OPEN_TARGET)
    for one in facts.get("taken", ()):
        yield (
            f"  warning  {journal.site} {one['topic']}-{one['partition']} holds records at offsets"
            f" {one['start']} to {one['stop'] - 1} that are not on {journal.source}: it was open"
            f" for a while; `failover divergence{of_set}` lists them"
        )
    if "not_looked" in facts:
        yield (
            f"  warning  {journal.site} was open for a while and could not be looked at"
            f" ({facts['not_looked']}); `failover divergence{of_set}` tells what it alone has"
        )


def _moved(journal: Journal) -> Iterator[str]:
    drained: Any = journal.facts(StepName.DRAIN)
    records = drained.get("records", "an unknown number of")
    yield f"  drained  {records} records behind the fence"
    moved: Any = journal.moved_groups
    if "positions" not in moved:
        yield "  group    which groups were moved is not known: the journal does not say"
    for group, topics in moved.get("positions", {}).items():
        positions = " ".join(
            f"{topic}-{partition}@{offset}"
            for topic, partitions in topics.items()
            for partition, offset in partitions.items()
        )
        yield f"  group    {group}: {positions or 'no position in a moved topic'}"
    for group, why in moved.get("left", {}).items():
        yield f"  group    {group} was left as it is: {why}"
    if moved.get("more_left", 0):
        yield f"  group    {moved['more_left']} more were left as they are"
    for group, where in moved.get("cut", {}).items():
        yield (
            f"  group    {group} goes on behind records that {journal.site} has lost to retention:"
            f" {where}"
        )
    if moved.get("more_cut", 0):
        yield f"  group    so do {moved['more_cut']} more"
    for group in moved.get("unstable", ()):
        yield (
            f"  group    {group} goes on before what a transaction on {journal.source} that is"
            " still open may commit"
        )
    if moved.get("more_unstable", 0):
        yield f"  group    so do {moved['more_unstable']} more"


def has_slipped(journal: Journal) -> bool:
    """Tell whether something is on one site alone, or was, or nobody could look whether it is.

    Or whether a group may go on behind records that it has not read, or a fact is not understood.
    """
    facts, sealed = journal.facts(StepName.CONFIRM), journal.facts(StepName.SEAL)
    is_on_old_site = any(map(facts.get, ("appended", "shrunk", "not_looked")))
    may_skip = bool(journal.moved_groups.get("ahead"))
    if LEFT_OUT in facts or LEFT_OUT in sealed:
        return True
    return is_on_old_site or may_skip or bool(sealed.get("foreign")) or bool(sealed.get("untold"))


def _slipped(journal: Journal, of_set: str) -> Iterator[str]:
    facts: Any = journal.facts(StepName.CONFIRM)
    old, new = journal.source, journal.site
    for one in facts.get("appended", ()):
        yield (
            f"  warning  {old} {one['topic']}-{one['partition']} holds records at offsets"
            f" {one['start']} to {one['stop'] - 1} that are not on {new}"
        )
    for one in facts.get("shrunk", ()):
        yield f"  warning  {Shrunk(**one).describe(old)}; {new} has them"
    if "not_looked" in facts:
        yield (
            f"  warning  {old} could not be looked at behind the switch ({facts['not_looked']});"
            f" `spark-audit run{of_set}` tells whether records are on it alone"
        )
    for topic in facts.get("made", ()):
        yield f"  made     {topic} on {new}: it was made on {old} during the promotion"
    if facts.get("committed"):
        yield f"  groups   {facts['committed']} positions were committed late, and carried over"
    for group, count in facts.get("not_carried", {}).items():
        yield (
            f"  group    {group} has committed on {old} late, and has members on {new}: {count}"
            f" positions were not carried over, and what lies between is read again"
        )
    for group, count in facts.get("still_members", {}).items():
        members = "member" if count == 1 else "members"
        yield (
            f"  group    {group} still has {count} {members} on {old}:"
            f" what they commit there counts no more; stop them and start them on {new}"
        )
    for site, why in facts.get("evidence", {}).items():
        yield f"  evidence on {site} is not renewed yet: {why}; `failover serve` does it"


def _lost(journal: Journal, of_set: str) -> Iterator[str]:
    for ends in journal.partitions:
        yield (
            f"  {ends.topic}-{ends.partition}: mirrored up to {journal.source} offset"
            f" {ends.mirrored_source_end} ({journal.site} {ends.target_end})"
        )
    yield from _foreign(journal, of_set)
    yield from _stray(journal)
    unmirrored: Any = journal.facts(StepName.PREFLIGHT).get("unmirrored", {})
    for topic, count in unmirrored.items():
        yield f"  {topic}: {count} partitions of {journal.source} are not on {journal.site} at all"
    fence: Any = journal.facts(StepName.FENCE)
    if not fence.get("fenced"):
        why = fence.get("why", "the journal does not say whether it was tried")
        yield f"  warning  {journal.source} could not be fenced: {why}"
        yield (
            f"  warning  keep {journal.source} down, or `failover serve` up, which closes it for"
            " writes when it is back"
        )
    yield (
        f"  warning  what {journal.source} acknowledged beyond these offsets is missing on"
        f" {journal.site}; once {journal.source} is back, `spark-audit run{of_set}` lists each"
        " record"
    )


def _stray(journal: Journal) -> Iterator[str]:
    """Yield the groups that stood behind the end of a log of the new site."""
    sealed: Any = journal.facts(StepName.SEAL)
    for group, where in sealed.get("stray", {}).items():
        yield f"  group    {group}: {where}"
    if sealed.get("more_stray"):
        yield f"  group    so did {sealed['more_stray']} more"
    if "stray_unknown" in sealed:
        yield (
            f"  warning  whether groups stand behind the ends of {journal.site}'s logs is not known"
            f" ({sealed['stray_unknown']}): they would pass over what is written from now on"
        )


def _foreign(journal: Journal, of_set: str) -> Iterator[str]:
    """Yield the parts of the new site that no mirror has written, and the ends that none tells."""
    sealed: Any = journal.facts(StepName.SEAL)
    old, new = journal.source, journal.site
    for part in sealed.get("foreign", ()):
        yield (
            f"  warning  {new} {part['topic']}-{part['partition']} holds records at offsets"
            f" {part['start']} to {part['stop'] - 1} that no mirror has written: they stay, {old}"
            f" gets them when it is back, and `failover divergence{of_set}` lists them"
        )
    if sealed.get("more_foreign"):
        yield f"  warning  so does {new} in {sealed['more_foreign']} more places"
    for partition, why in sealed.get("untold", {}).items():
        yield (
            f"  warning  {new} {partition}: its mirrored end is not known ({why}), so all of it"
            f" counts as mirrored; compare both sites when {old} is back"
        )
    if sealed.get("more_untold"):
        yield f"  warning  nor is that of {sealed['more_untold']} more partitions"

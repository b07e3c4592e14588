"""A plan as people are told of it: its lines, its JSON form, what each step does. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from failover.journal.journal import Journal
from failover.journal.steps import ORDER, Direction, PromotionKind, StepName
from failover.planning.before_start import before_start_document, before_start_lines
from failover.planning.loss import loss_document, loss_lines
from failover.planning.plan import Plan, Resume, some_of

NAMED_TOPICS: Final = 10
"""So many topics that lag are named in a plan that nobody asks for more."""

EXPLAINED: Final[Mapping[StepName, str]] = {
    StepName.PREFLIGHT: "look at both sites once more, and wait for what would hold up writes",
    StepName.ANNOUNCE: "tell clients in the witness that {site} is next; they finish and leave",
    StepName.FENCE: "close {source} for writes to the moved topics, and make sure that it holds",
    StepName.DRAIN: "wait until everything {source} holds is on {site}",
    StepName.GROUPS_LEAVE: "wait, for a bounded time, until members that follow the site have left",
    StepName.GROUPS_MOVE: "translate every group's last position and commit it on {site}",
    StepName.STOP_FLOW: "stop the flow {flow} once what it has in flight is settled",
    StepName.VERIFY_FENCE: "make sure that {source} took no write since it was drained",
    StepName.SEAL: "bound the mirrored part of every partition in the offset map",
    StepName.OPEN_TARGET: "lift a fence for the moved topics on {site}, if there is one",
    StepName.SWITCH: "make {site} the active site; from here on there is no way back",
    StepName.CONFIRM: "look at {source} once more, and say what has slipped through",
    StepName.START_REVERSE: "let the flow from {site} to {source} run, if one is configured",
}

EXPLAINED_LOST: Final[Mapping[StepName, str]] = {
    StepName.FENCE: "try to close {source} for writes, and say so if that cannot be",
}


def describe_resume(resume: Resume) -> str:
    """Return the line that `plan` prints and `promote` begins with when one is unfinished."""
    journal = resume.journal
    what = f"the {journal.kind} promotion of {journal.site}, epoch {journal.epoch}"
    if journal.direction is Direction.BACK:
        return f"takes back {what}: {journal.reason}"
    return f"goes on with {what}"


def describe(plan: Plan, lag_over: int | None = None) -> tuple[str, ...]:
    """Return the plan as the lines that `plan` prints and `promote` begins with.

    Topics that lag most are named, or all that lag by more than `lag_over` records.
    """
    topics = len({topic for topic, _ in plan.partitions})
    names = {"site": plan.site, "source": plan.source, "flow": plan.flow}
    lag = "not known" if plan.lag is None else f"{plan.lag} records"
    groups = ", ".join(
        some_of([f"{name} ({count})" for name, count in sorted(plan.groups.items())])
    )
    explained = dict(EXPLAINED)
    if plan.kind is PromotionKind.SOURCE_LOST:
        explained.update(EXPLAINED_LOST)
    return (
        f"promote {plan.site}: {plan.kind}, from {plan.source}, epoch {plan.epoch}",
        f"  flow     {plan.flow}, run by {plan.worker or 'nobody'}",
        f"  moves    {topics} topics, {len(plan.partitions)} partitions; not mirrored yet: {lag}",
        *_behind(plan.backlog, lag_over),
        f"  groups   {groups or 'none'}{' (members)' if groups else ''}",
        *(f"  {line}" for line in (*_awaited(plan), *_lost(plan))),
        *(f"  {line}" for line in before_start_lines(plan.left_behind, plan.source)),
        *_renamed(plan),
        *(f"  warning  {warning}" for warning in _warnings(plan)),
        *(f"  rights   {line}" for line in (() if plan.outlook is None else plan.outlook.lines())),
        *_replaced(plan.supersedes),
        *(
            f"  {number:2}. {step:<13} {explained[step].format(**names)}"
            for number, step in enumerate(ORDER[plan.kind], start=1)
        ),
    )


def _behind(backlog: Mapping[str, int], lag_over: int | None) -> Iterator[str]:
    """Yield a line for each topic that is named, those that lag most first."""
    ordered = sorted(backlog.items(), key=lambda item: (-item[1], item[0]))
    named = ordered[:NAMED_TOPICS]
    if lag_over is not None:
        named = [(topic, lag) for topic, lag in ordered if lag > lag_over]
    for topic, lag in named:
        yield f"           {topic}: {lag} records"
    if lag_over is None and len(ordered) > len(named):
        yield f"           and {len(ordered) - len(named)} topics more; --lag-over 0 lists them"


def _renamed(plan: Plan) -> Iterator[str]:
    """Yield a line of names that applications do not find on the promoted site."""
    if plan.renamed:
        named = some_of([f"{topic} is {name}" for topic, name in plan.renamed.items()])
        yield f"  names    on {plan.site} {', '.join(named)}: applications have to ask for these"


def _warnings(plan: Plan) -> list[str]:
    where = f"topics can be made on {plan.source} behind its fence"
    return [
        *plan.warnings,
        *([f"{where}: {plan.creatable}"] if plan.creatable else []),
        *([plan.unbelieved] if plan.unbelieved else []),
        *plan.others_closed,
    ]


def stay_line(group: str, count: int, target: str) -> str:
    """Return what is wrong with a group of plain consumers, and what to do about it."""
    return (
        f"group {group} has {count} {'member' if count == 1 else 'members'} that would stay: stop"
        f" them, and start them on {target} behind the promotion"
    )


def _awaited(plan: Plan) -> tuple[str, ...]:
    """Return the lines about groups whose members have to be stopped by hand."""
    key = "insists" if plan.is_insisted else "waits"
    lines = [stay_line(group, count, plan.site) for group, count in sorted(plan.plain.items())]
    return tuple(f"{key:<8} {line}" for line in some_of(lines))


def _lost(plan: Plan) -> Iterator[str]:
    return iter(()) if plan.loss is None else loss_lines(plan.loss, plan.source)


def plan_document(decision: Plan | Resume) -> Mapping[str, object]:
    """Return the JSON form of what `promote` would do."""
    if isinstance(decision, Resume):
        journal = decision.journal
        return {
            "resumes": journal.epoch,
            "site": journal.site,
            "source": journal.source,
            "kind": journal.kind.value,
            "direction": journal.direction.value,
        }
    topics = Counter(partition.topic for partition in decision.partitions)
    replaced = decision.supersedes
    return {
        "site": decision.site,
        "source": decision.source,
        "epoch": decision.epoch,
        "kind": decision.kind.value,
        "flow": decision.flow,
        "worker": decision.worker,
        "topics": dict(sorted(topics.items())),
        "lag": decision.lag,
        "backlog": dict(sorted(decision.backlog.items())),
        "loss": None if decision.loss is None else loss_document(decision.loss),
        "before_start": before_start_document(decision.left_behind),
        "groups": dict(decision.groups),
        "plain_members": dict(decision.plain),
        "renamed": dict(decision.renamed),
        "warnings": _warnings(decision),
        "applications": None if decision.outlook is None else decision.outlook.document,
        "replaces": None if replaced is None else replaced.epoch,
        "steps": [step.value for step in ORDER[decision.kind]],
    }


def _replaced(journal: Journal | None) -> tuple[str, ...]:
    if journal is None:
        return ()
    return (f"  replaces the unfinished {journal.kind} promotion, epoch {journal.epoch}",)

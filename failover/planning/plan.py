"""The plan of a promotion, or its refusal: a pure function of one look at both sites."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias, assert_never

from failover.journal.journal import Journal
from failover.journal.journal_size import why_too_long
from failover.journal.steps import ORDER, Direction, PromotionKind, StepName, is_switched
from failover.planning.loss import Loss, beyond_budget, loss_document, loss_lines
from runtime.configuration.config import NO_LIMIT, LossBudget
from runtime.rights.outlook import Outlook
from wire.topic_partition import TopicPartition

RISKS_NAMED: Final = 5
"""More of each kind are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteView:
    """One cluster as it was seen.

    `fault` says in a few words why the site does not fully answer; None means that every moved
    partition's end is in `ends`. `groups` counts the members of each group that the flow covers.
    """

    name: str
    fault: str | None
    ends: Mapping[TopicPartition, int]
    groups: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class SitesView:
    """Everything a plan depends on.

    `flow` is the name of the flow from the active site into the requested one; `worker` is the
    daemon that runs it; `mirrored` holds per partition the first source offset that is not on the
    target.
    """

    sites: frozenset[str]
    active: str
    last_epoch: int
    unfinished: Journal | None
    flow: str | None
    worker: str | None
    source: SiteView | None
    target: SiteView | None
    mirrored: Mapping[TopicPartition, int]
    is_prefixed: bool = False
    """Whether the flow gives topics other names on its target."""
    is_active_active: bool = False
    """Whether both sites are written to, whichever is active."""
    differing: str | None = None
    """How the file here differs from what the mirror runs, and what to do; None if it does not."""
    unfenceable: str | None = None
    """Why the source cannot be closed for writes; None when it can, or nobody could tell."""
    other_log: str | None = None
    """Of which partition `mirrored` speaks of another log than the source's, and what to do; None
    when it does of none, or nobody could tell."""
    standing: str | None = None
    """Which partition stands still until somebody decides, and the command; None if none does."""
    plain: Mapping[str, int] = field(default_factory=dict)
    """How many members of each group on the source do not follow the active site."""
    loss: Loss | None = None
    """What would be lost with the source; None where it is not said to be lost."""
    loss_budget: LossBudget = NO_LIMIT
    outlook: Outlook | None = None
    """Who would be refused on the target; None where nobody has looked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotionRequest:
    """The operator's request.

    `force` insists on what is on the target, and on source-lost though the source answers.
    `accepts_loss` insists on losing more than the configuration allows.
    """

    site: str
    kind: PromotionKind
    force: bool = False
    accepts_loss: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A promotion that may begin. `lag` is in records, None when the source cannot tell.

    `supersedes` is a planned promotion of the same site that was left unfinished before its source
    was lost. It is closed without lifting its fence, which this one needs too.
    """

    site: str
    source: str
    epoch: int
    kind: PromotionKind
    flow: str
    worker: str | None
    partitions: tuple[TopicPartition, ...]
    lag: int | None
    groups: Mapping[str, int]
    supersedes: Journal | None
    warnings: tuple[str, ...] = ()
    """What applications do not expect; somebody has insisted on the promotion."""
    plain: Mapping[str, int] = field(default_factory=dict)
    """The members that a planned promotion waits for before the fence, by group."""
    is_insisted: bool = False
    loss: Loss | None = None
    """What is given up with a source that is lost."""
    outlook: Outlook | None = None
    """Which applications the target would refuse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume:
    """The same promotion was begun and not finished: go on with it."""

    journal: Journal


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The promotion may not begin; `reason` is one line that names what is in the way."""

    reason: str


Decision: TypeAlias = Plan | Resume | Refusal


def decide(snapshot: SitesView, request: PromotionRequest) -> Decision:
    """Decide what a `promote` does, from an unfinished promotion first, then from both sites."""
    if request.site not in snapshot.sites:
        known = ", ".join(sorted(snapshot.sites))
        return Refusal(reason=f"unknown site {request.site} (the file has {known})")
    unfinished = snapshot.unfinished
    if unfinished is not None and not _is_overtaken(unfinished, request):
        return _go_on(unfinished, request, snapshot.differing)
    refusal = _whether_possible(snapshot, request)
    if refusal is not None:
        return refusal
    assert snapshot.flow is not None, "checked by _whether_possible"
    assert snapshot.target is not None, "a flow has a target"
    planned = request.kind is PromotionKind.PLANNED
    view = snapshot.source if planned else snapshot.target
    assert view is not None, "a flow has a source"
    if not view.ends:
        return Refusal(
            reason=f"no topic of the flow {snapshot.flow} is on {view.name}, so nothing moves;"
            " `mirror topics` says why"
        )
    too_long = why_too_long(Counter(topic for topic, _ in view.ends))
    if too_long is not None:
        return Refusal(reason=too_long)
    return Plan(
        site=request.site,
        source=snapshot.active,
        epoch=snapshot.last_epoch + 1,
        kind=request.kind,
        flow=snapshot.flow,
        worker=snapshot.worker,
        partitions=tuple(sorted(view.ends)),
        lag=_lag(snapshot) if planned else None,
        groups=view.groups,
        supersedes=unfinished,
        warnings=_risks(snapshot),
        plain=snapshot.plain if planned else {},
        is_insisted=request.force,
        loss=None if planned else snapshot.loss,
        outlook=snapshot.outlook,
    )


def _is_overtaken(journal: Journal, request: PromotionRequest) -> bool:
    """Tell whether the source of an unfinished planned promotion is now said to be lost."""
    return (
        journal.site == request.site
        and journal.kind is PromotionKind.PLANNED
        and request.kind is PromotionKind.SOURCE_LOST
        and not is_switched(journal.step_states)
    )


def _go_on(journal: Journal, request: PromotionRequest, differing: str | None) -> Resume | Refusal:
    """Go on with an unfinished promotion; by another file, others' topics and groups would move."""
    unfinished = f"the {journal.kind} promotion of {journal.site} (epoch {journal.epoch})"
    if journal.site != request.site:
        return Refusal(
            reason=f"{unfinished} is unfinished: finish it with `failover promote {journal.site}`"
            " or take it back with `failover abort`"
        )
    if journal.kind is request.kind or is_switched(journal.step_states):
        is_insisted = request.force and journal.kind is PromotionKind.SOURCE_LOST
        if differing is not None and not is_insisted:
            return Refusal(reason=f"{unfinished} is unfinished, and {differing}")
        return Resume(journal=journal)
    return Refusal(
        reason=f"{unfinished} is unfinished: finish it with `failover promote {journal.site}"
        " --source-lost`"
    )


def _whether_possible(snapshot: SitesView, request: PromotionRequest) -> Refusal | None:
    if request.site == snapshot.active:
        return Refusal(reason=f"{request.site} is already the active site")
    if snapshot.flow is None or snapshot.source is None or snapshot.target is None:
        return Refusal(
            reason=f"no flow from {snapshot.active} to {request.site} is configured,"
            f" so {request.site} has nothing to go on with"
        )
    unfit = _unfit(snapshot)
    if unfit is not None:
        return Refusal(reason=f"the flow {snapshot.flow} has {unfit}")
    if snapshot.target.fault is not None:
        return Refusal(reason=f"{request.site} cannot take over: {snapshot.target.fault}")
    match request.kind:
        case PromotionKind.PLANNED:
            refusal = _whether_planned_possible(snapshot, snapshot.source)
        case PromotionKind.SOURCE_LOST:
            refusal = _whether_source_is_lost(snapshot.source, request) or _whether_affordable(
                snapshot, request
            )
        case _:
            assert_never(request.kind)
    return refusal or _whether_wanted(snapshot, request)


def _whether_wanted(snapshot: SitesView, request: PromotionRequest) -> Refusal | None:
    """Refuse what hurts applications, or leaves topics behind, unless somebody insists on it.

    The source of a planned promotion answers, so its mirror can be given the same file first.
    """
    is_insisted = request.force and request.kind is PromotionKind.SOURCE_LOST
    if snapshot.differing is not None and not is_insisted:
        return Refusal(reason=snapshot.differing)
    risks = _risks(snapshot)
    if risks and not request.force:
        return Refusal(reason=f"{'; '.join(risks)}; --force promotes {request.site} all the same")
    return None


def _risks(snapshot: SitesView) -> tuple[str, ...]:
    """Return what on the target applications do not expect, a line each."""
    source, target = snapshot.source, snapshot.target
    assert source is not None, "a flow has a source"
    assert target is not None, "a flow has a target"
    here = Counter(topic for topic, _ in source.ends)
    there = Counter(topic for topic, _ in target.ends)
    grown = [
        f"{topic} has {there[topic]} partitions on {target.name} and {count} on {source.name},"
        " so keys go to other partitions there"
        for topic, count in sorted(here.items())
        if there[topic] > count
    ]
    active = [
        f"group {group} has {count} members on {target.name}: its positions cannot be moved until"
        " they are stopped"
        for group, count in sorted(target.groups.items())
        if count
    ]
    return (*_some(grown), *_some(active))


def _some(lines: Sequence[str]) -> tuple[str, ...]:
    more = len(lines) - RISKS_NAMED
    return (*lines[:RISKS_NAMED], *((f"and {more} more",) if more > 0 else ()))


def _unfit(snapshot: SitesView) -> str | None:
    """Return what of the flow's configuration a promotion cannot go with."""
    if snapshot.is_prefixed:
        return (
            "`names: prefixed`: applications would find none of their topics in"
            f" {snapshot.target.name if snapshot.target else ''}; a promotion needs"
            " `names: identical`"
        )
    if snapshot.is_active_active:
        return (
            "`active_active: true`: both sites are written to, and a promotion closes one; take"
            " that out of both flows first"
        )
    return None


def _whether_planned_possible(snapshot: SitesView, source: SiteView) -> Refusal | None:
    if source.fault is not None:
        return Refusal(
            reason=f"{source.name} does not answer ({source.fault});"
            " if it is lost, promote with --source-lost"
        )
    if snapshot.worker is None:
        return Refusal(
            reason=f"no mirror daemon runs the flow {snapshot.flow}, so {source.name} cannot be"
            " drained; start `mirror run`, or give up what is not mirrored with --source-lost"
        )
    if snapshot.unfenceable is not None:
        return Refusal(
            reason=f"{source.name} cannot be closed for writes: {snapshot.unfenceable};"
            " --source-lost --force goes without a fence"
        )
    if snapshot.other_log is not None:
        return Refusal(reason=snapshot.other_log)
    if snapshot.standing is not None:
        return Refusal(reason=f"{snapshot.flow} cannot be drained: {snapshot.standing}")
    return None


def _whether_source_is_lost(source: SiteView, request: PromotionRequest) -> Refusal | None:
    if source.fault is None and not request.force:
        return Refusal(
            reason=f"{source.name} answers, and a planned promotion loses nothing: leave out"
            " --source-lost, or insist with --force"
        )
    return None


def _whether_affordable(snapshot: SitesView, request: PromotionRequest) -> Refusal | None:
    """Refuse to lose more than the configuration allows, or nobody knows how much."""
    if snapshot.loss is None or request.accepts_loss:
        return None
    beyond = beyond_budget(snapshot.loss, snapshot.loss_budget, snapshot.active)
    if beyond is None:
        return None
    return Refusal(
        reason=f"{beyond}; `failover plan {request.site} --source-lost --accept-loss` lists it,"
        f" and --accept-loss promotes {request.site} all the same"
    )


def _lag(snapshot: SitesView) -> int:
    assert snapshot.source is not None, "lag is asked of a flow's source"
    ends = snapshot.source.ends
    return sum(max(0, end - snapshot.mirrored.get(where, 0)) for where, end in ends.items())


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


def describe(plan: Plan) -> tuple[str, ...]:
    """Return the plan as the lines that `plan` prints and `promote` begins with."""
    topics = len({topic for topic, _ in plan.partitions})
    names = {"site": plan.site, "source": plan.source, "flow": plan.flow}
    lag = "not known" if plan.lag is None else f"{plan.lag} records"
    groups = ", ".join(f"{group} ({count})" for group, count in sorted(plan.groups.items()))
    explained = dict(EXPLAINED)
    if plan.kind is PromotionKind.SOURCE_LOST:
        explained.update(EXPLAINED_LOST)
    return (
        f"promote {plan.site}: {plan.kind}, from {plan.source}, epoch {plan.epoch}",
        f"  flow     {plan.flow}, run by {plan.worker or 'nobody'}",
        f"  moves    {topics} topics, {len(plan.partitions)} partitions; not mirrored yet: {lag}",
        f"  groups   {groups or 'none'}{' (members)' if groups else ''}",
        *(f"  {line}" for line in (*_awaited(plan), *_lost(plan))),
        *(f"  warning  {warning}" for warning in plan.warnings),
        *(f"  rights   {line}" for line in (() if plan.outlook is None else plan.outlook.lines())),
        *_replaced(plan.supersedes),
        *(
            f"  {number:2}. {step:<13} {explained[step].format(**names)}"
            for number, step in enumerate(ORDER[plan.kind], start=1)
        ),
    )


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
    return tuple(f"{key:<8} {line}" for line in _some(lines))


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
        "loss": None if decision.loss is None else loss_document(decision.loss),
        "groups": dict(decision.groups),
        "plain_members": dict(decision.plain),
        "warnings": list(decision.warnings),
        "applications": None if decision.outlook is None else decision.outlook.document,
        "replaces": None if replaced is None else replaced.epoch,
        "steps": [step.value for step in ORDER[decision.kind]],
    }


def _replaced(journal: Journal | None) -> tuple[str, ...]:
    if journal is None:
        return ()
    return (f"  replaces the unfinished {journal.kind} promotion, epoch {journal.epoch}",)

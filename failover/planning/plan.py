"""The plan of a promotion, or its refusal: a pure function of one look at both sites."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Final, TypeAlias, assert_never

from failover.automatic.hold import Hold
from failover.journal.journal import Journal
from failover.journal.journal_size import why_too_long
from failover.journal.steps import PromotionKind, is_switched
from failover.planning.before_start import KeptOnSource
from failover.planning.loss import Loss, beyond_budget
from failover.planning.refusal import Cause, Refusal
from runtime.configuration.failover_section import NO_LIMIT, LossBudget
from runtime.rights.outlook import Outlook
from runtime.set_option import set_option
from wire.topic_partition import TopicPartition
from wire.values import frozen

RISKS_NAMED: Final = 5
"""More of each kind are counted."""


@frozen
class SiteView:
    """One cluster as it was seen.

    `fault` says in a few words why the site does not fully answer; None means that every moved
    partition's end is in `ends`. `groups` counts the members of each group that the flow covers.
    With `is_unsure` it may be at work all the same.
    """

    name: str
    fault: str | None
    ends: Mapping[TopicPartition, int]
    groups: Mapping[str, int]
    is_unsure: bool = False
    cut: str | None = None
    """Which groups would be cut in two with their sets of topics, and what to do; None if none."""


@frozen
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
    left_behind: Mapping[TopicPartition, KeptOnSource] = field(default_factory=dict)
    """What stays on the source on purpose, because it was there before the flow's start."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """The topics that have another name on the target, each with it."""
    is_prefixed: bool = False
    is_active_active: bool = False
    """Whether both sites are written to, whichever is active."""
    differing: str | None = None
    """How the file here differs from what the mirror runs, and what to do; None if it does not."""
    unfenceable: str | None = None
    """Why the source cannot be closed for writes; None when it can, or nobody could tell."""
    creatable: str | None = None
    """Why topics can be made on the source behind its fence; None when not, or nobody told."""
    other_log: str | None = None
    """Of which partition `mirrored` speaks of another log than the source's, and what to do; None
    when it does of none, or nobody could tell."""
    outdated: str | None = None
    """Why what the map says is not known: the witness takes records of it for somebody else's."""
    map_refused: str | None = None
    """Why nothing of the map is believed, as where its topic was made again; None where it is read,
    or could not be asked for."""
    unbelieved: str | None = None
    """What of the map is not believed, and whose it is; None where all of it is."""
    others_closed: tuple[str, ...] = ()
    """What somebody else has closed on either site, and this promotion would open for a moment."""
    one_way: tuple[str, ...] | None = ()
    """What of the target would be opened without the records that the source has of it; None where
    nobody could tell."""
    unsure_seal: str | None = None
    """Of which partition of a lost source that decides where it would be sealed, and what to do."""
    standing: str | None = None
    """Which partition stands still until somebody decides, and the command; None if none does."""
    plain: Mapping[str, int] = field(default_factory=dict)
    """How many members of each group on the source do not follow the active site."""
    loss: Loss | None = None
    """What would be lost with the source; None where it is not said to be lost."""
    loss_budget: LossBudget = NO_LIMIT
    outlook: Outlook | None = None
    """Who would be refused on the target; None where nobody has looked."""
    hold: Hold | None = None
    """Who wants no promotion now."""
    topic_set: str | None = None
    """Whose sites these are, in a file with sets."""


@frozen
class PromotionRequest:
    """The operator's request.

    `force` insists on what is on the target, and on source-lost though the source answers.
    `accepts_loss` insists on losing more than the configuration allows. `without_hooks` calls none.
    `despite_hold` goes on although somebody holds.
    """

    site: str
    kind: PromotionKind
    force: bool = False
    accepts_loss: bool = False
    without_hooks: bool = False
    despite_hold: bool = False


@frozen
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
    backlog: Mapping[str, int] = field(default_factory=dict)
    """The records of each topic that a planned promotion drains, where there are any."""
    left_behind: Mapping[TopicPartition, KeptOnSource] = field(default_factory=dict)
    """What stays on the source on purpose: records before the flow's start."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """The topics that applications find under another name on the promoted site."""
    warnings: tuple[str, ...] = ()
    """What applications do not expect; somebody has insisted on the promotion."""
    creatable: str | None = None
    """Why topics can be made on the source behind its fence."""
    unbelieved: str | None = None
    """What of the map is not believed."""
    others_closed: tuple[str, ...] = ()
    """What somebody else has closed, and this promotion opens for a moment."""
    plain: Mapping[str, int] = field(default_factory=dict)
    """The members that a planned promotion waits for before the fence, by group."""
    is_insisted: bool = False
    loss: Loss | None = None
    """What is given up with a source that is lost."""
    outlook: Outlook | None = None
    """Which applications the target would refuse."""


@frozen
class Resume:
    """The same promotion was begun and not finished: go on with it."""

    journal: Journal


Decision: TypeAlias = Plan | Resume | Refusal


def decide(snapshot: SitesView, request: PromotionRequest) -> Decision:
    """Decide what a `promote` does, from an unfinished promotion first, then from both sites."""
    if request.site not in snapshot.sites:
        known = ", ".join(sorted(snapshot.sites))
        return Refusal(
            cause=Cause.UNKNOWN_SITE, reason=f"unknown site {request.site} (the file has {known})"
        )
    unfinished = snapshot.unfinished
    if unfinished is not None and not _is_overtaken(unfinished, request):
        return _go_on(snapshot, unfinished, request)
    refusal = _whether_possible(snapshot, request)
    if refusal is not None:
        return refusal
    assert snapshot.flow is not None, "checked by _whether_possible"
    assert snapshot.target is not None, "a flow has a target"
    planned = request.kind is PromotionKind.PLANNED
    view = snapshot.source if planned else snapshot.target
    assert view is not None, "a flow has a source"
    if not view.ends and snapshot.topic_set is None:
        return Refusal(
            cause=Cause.NOTHING_MOVES,
            reason=f"no topic of the flow {snapshot.flow} is on {view.name}, so nothing moves;"
            " `mirror topics` says why",
        )
    too_long = why_too_long(Counter(topic for topic, _ in view.ends))
    if too_long is not None:
        return Refusal(cause=Cause.TOO_LARGE, reason=too_long)
    return Plan(
        site=request.site,
        source=snapshot.active,
        epoch=snapshot.last_epoch + 1,
        kind=request.kind,
        flow=snapshot.flow,
        worker=snapshot.worker,
        partitions=tuple(sorted(view.ends)),
        lag=sum(_backlog(snapshot).values()) if planned else None,
        backlog=_backlog(snapshot) if planned else {},
        groups=view.groups,
        left_behind=snapshot.left_behind,
        supersedes=unfinished,
        renamed=snapshot.renamed,
        warnings=(*_risks(snapshot), *_overruled(snapshot), *_empty(snapshot, view)),
        creatable=snapshot.creatable,
        unbelieved=snapshot.unbelieved,
        others_closed=snapshot.others_closed,
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


def _go_on(snapshot: SitesView, journal: Journal, request: PromotionRequest) -> Resume | Refusal:
    """Go on with an unfinished promotion; by another file, others' topics and groups would move.

    Behind the switch nothing can be held any more: applications have moved.
    """
    differing = snapshot.differing
    unfinished = f"the {journal.kind} promotion of {journal.site} (epoch {journal.epoch})"
    of_set = set_option(snapshot.topic_set)
    if journal.site != request.site:
        return Refusal(
            cause=Cause.UNFINISHED,
            reason=f"{unfinished} is unfinished: finish it with"
            f" `failover promote {journal.site}{of_set}` or take it back with"
            f" `failover abort{of_set}`",
        )
    if journal.kind is request.kind or is_switched(journal.step_states):
        is_insisted = request.force and journal.kind is PromotionKind.SOURCE_LOST
        if differing is not None and not is_insisted:
            return Refusal(
                cause=Cause.UNFINISHED, reason=f"{unfinished} is unfinished, and {differing}"
            )
        held = None if is_switched(journal.step_states) else _whether_held(snapshot, request)
        return held or Resume(journal=journal)
    return Refusal(
        cause=Cause.UNFINISHED,
        reason=f"{unfinished} is unfinished: finish it with"
        f" `failover promote {journal.site} --source-lost{of_set}`",
    )


def _whether_possible(snapshot: SitesView, request: PromotionRequest) -> Refusal | None:
    if request.site == snapshot.active:
        return Refusal(
            cause=Cause.ACTIVE_ALREADY, reason=f"{request.site} is already the active site"
        )
    if snapshot.flow is None or snapshot.source is None or snapshot.target is None:
        return Refusal(
            cause=Cause.NO_FLOW,
            reason=f"no flow from {snapshot.active} to {request.site} is configured,"
            f" so {request.site} has nothing to go on with",
        )
    unfit = _unfit(snapshot)
    if unfit is not None:
        return Refusal(cause=Cause.CONFIGURATION, reason=f"the flow {snapshot.flow} has {unfit}")
    if snapshot.target.fault is not None:
        return Refusal(
            cause=Cause.TARGET_SILENT,
            reason=f"{request.site} cannot take over: {snapshot.target.fault}",
        )
    if snapshot.outdated is not None:
        return Refusal(cause=Cause.WITNESS_OUTDATED, reason=snapshot.outdated)
    match request.kind:
        case PromotionKind.PLANNED:
            refusal = _whether_planned_possible(snapshot, snapshot.source)
        case PromotionKind.SOURCE_LOST:
            refusal = _whether_source_is_lost(snapshot.source, request) or _whether_affordable(
                snapshot, request
            )
        case _:
            assert_never(request.kind)
    return refusal or _whether_wanted(snapshot, request) or _whether_held(snapshot, request)


def _whether_held(snapshot: SitesView, request: PromotionRequest) -> Refusal | None:
    """Refuse what somebody holds, unless somebody insists who has read by whom and why."""
    if snapshot.hold is None or request.despite_hold:
        return None
    return Refusal(
        cause=Cause.HOLD,
        reason=f"promotions are {snapshot.hold}; `failover release` ends that, and --despite-hold"
        f" promotes {request.site} all the same",
    )


def _whether_wanted(snapshot: SitesView, request: PromotionRequest) -> Refusal | None:
    """Refuse what hurts applications, or leaves topics behind, unless somebody insists on it.

    The source of a planned promotion answers, so its mirror can be given the same file first.
    """
    is_insisted = request.force and request.kind is PromotionKind.SOURCE_LOST
    if snapshot.differing is not None and not is_insisted:
        return Refusal(cause=Cause.OTHER_FILE, reason=snapshot.differing)
    view = snapshot.source if request.kind is PromotionKind.PLANNED else snapshot.target
    if view is not None and view.cut is not None:
        return Refusal(cause=Cause.CUT_GROUP, reason=f"{view.name}: {view.cut}")
    risks = _risks(snapshot)
    if risks and not request.force:
        return Refusal(
            cause=Cause.TARGET_DIFFERS,
            reason=f"{'; '.join(risks)}; --force promotes {request.site} all the same",
        )
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
    one_way = [
        f"{target.name} is closed for {topic}, and the flow {snapshot.flow} does not bring what"
        f" {source.name} has of it: add it to that flow's topics, and restart `mirror run`"
        for topic in snapshot.one_way or ()
    ]
    if snapshot.one_way is None:
        one_way.append(
            f"whether {target.name} is closed for topics that {snapshot.flow} leaves out"
            " is not known"
        )
    return (*some_of(one_way), *some_of(grown), *some_of(active))


def _empty(snapshot: SitesView, view: SiteView) -> tuple[str, ...]:
    """Tell of a set that moves without a topic, so that what is made later is made there."""
    if view.ends:
        return ()
    name = snapshot.topic_set
    told = (
        f"no topic of the set {name} is on {view.name}, so no record moves; where it should have"
        f" some, see `failover.sets.{name}.topics` and `mirror topics`"
    )
    return (told,)


def _overruled(snapshot: SitesView) -> tuple[str, ...]:
    return () if snapshot.hold is None else (f"promotions are {snapshot.hold}",)


def some_of(lines: Sequence[str]) -> tuple[str, ...]:
    """Return the first lines, and how many more there are."""
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


def _whether_mirrored(snapshot: SitesView, source: SiteView) -> Refusal | None:
    """Refuse where nobody mirrors, or nobody can tell how far."""
    if snapshot.map_refused is not None:
        return Refusal(
            cause=Cause.MAP_REFUSED,
            reason=f"how far {snapshot.flow} has come is not known: {snapshot.map_refused}",
        )
    if snapshot.worker is None:
        return Refusal(
            cause=Cause.NO_MIRROR,
            reason=f"no mirror daemon runs the flow {snapshot.flow}, so {source.name} cannot be"
            " drained; start `mirror run`, or give up what is not mirrored with --source-lost",
        )
    return None


def _whether_planned_possible(snapshot: SitesView, source: SiteView) -> Refusal | None:
    if source.fault is not None:
        return Refusal(
            cause=Cause.SOURCE_SILENT,
            reason=f"{source.name} does not answer ({source.fault});"
            " if it is lost, promote with --source-lost",
        )
    if (refusal := _whether_mirrored(snapshot, source)) is not None:
        return refusal
    if snapshot.unfenceable is not None:
        return Refusal(
            cause=Cause.UNFENCEABLE,
            reason=f"{source.name} cannot be closed for writes: {snapshot.unfenceable};"
            " --source-lost --force goes without a fence",
        )
    if snapshot.other_log is not None:
        return Refusal(cause=Cause.OTHER_LOG, reason=snapshot.other_log)
    if snapshot.standing is not None:
        return Refusal(
            cause=Cause.STANDSTILL, reason=f"{snapshot.flow} cannot be drained: {snapshot.standing}"
        )
    return None


def _whether_source_is_lost(source: SiteView, request: PromotionRequest) -> Refusal | None:
    if source.is_unsure and not request.force:
        return Refusal(
            cause=Cause.SOURCE_ANSWERS,
            reason=f"{source.name} may be at work, and take writes ({source.fault}): mend what it"
            " has against us, or insist with --force",
        )
    if source.fault is None and not request.force:
        return Refusal(
            cause=Cause.SOURCE_ANSWERS,
            reason=f"{source.name} answers, and a planned promotion loses nothing: leave out"
            " --source-lost, or insist with --force",
        )
    return None


def _whether_affordable(snapshot: SitesView, request: PromotionRequest) -> Refusal | None:
    """Refuse to lose more than the configuration allows, or nobody knows how much.

    Refuse as well where it hangs on records that are not believed where the mirrored part ends.
    """
    if snapshot.loss is None or request.accepts_loss:
        return None
    if snapshot.unsure_seal is not None:
        return Refusal(
            cause=Cause.MAP_WRITERS,
            reason=f"{snapshot.unsure_seal}; --accept-loss promotes {request.site} by what is"
            " believed",
        )
    beyond = beyond_budget(snapshot.loss, snapshot.loss_budget, snapshot.active)
    if beyond is None:
        return None
    of_set = set_option(snapshot.topic_set)
    return Refusal(
        cause=Cause.LOSS,
        reason=f"{beyond}; `failover plan {request.site} --source-lost --accept-loss{of_set}`"
        f" lists it, and --accept-loss promotes {request.site} all the same",
    )


def _backlog(snapshot: SitesView) -> Mapping[str, int]:
    """Return by topic how many records are not mirrored yet, where there are any."""
    assert snapshot.source is not None, "a backlog is asked of a flow's source"
    found: Counter[str] = Counter()
    for where, end in snapshot.source.ends.items():
        found[where.topic] += max(0, end - snapshot.mirrored.get(where, 0))
    return +found

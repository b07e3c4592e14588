"""How promotions go: the section `failover`, with those within it."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from runtime.configuration import (
    automatic_section,
    bootstrap_section,
    canary_section,
    hooks_section,
    rehearsal_section,
)
from runtime.configuration.automatic_section import AutomaticConfig, read_automatic
from runtime.configuration.bootstrap_section import BootstrapConfig, read_bootstrap
from runtime.configuration.canary_section import CanaryConfig, read_canary
from runtime.configuration.flow_section import FlowConfig, unknown_cluster
from runtime.configuration.hooks_section import HookConfig, read_hooks
from runtime.configuration.reading.section import Section
from runtime.configuration.rehearsal_section import RehearsalConfig, read_rehearsal
from runtime.configuration.topic_sets import (
    NO_SETS,
    TopicSets,
    read_sets,
    refuse_shared_ports,
    refuse_unfit,
    refuse_unfit_rehearsal,
)
from wire.values import frozen

STANDBY: Final = ("closed", "open")

MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "failover.initial_active": "The site that is active before the first promotion. It may be "
        "left out where all flows have the same source, which it then is.",
        "failover.drain_timeout_ms": "How long a promotion waits for the last records.",
        "failover.max_lag_before_fence": "So many offsets, all partitions together, may be "
        "unmirrored when a planned promotion closes the active site.",
        "failover.catch_up_timeout_ms": "How long a planned promotion waits for that; the active "
        "site takes writes meanwhile.",
        "failover.source_lost_after_ms": "How long `promote --source-lost` looks at a site that "
        "keeps silent before it takes the site for lost.",
        "failover.loss_budget.records": "With more records lost than this, or an unknown number, "
        "`promote --source-lost` is refused unless `--accept-loss` is given.",
        "failover.loss_budget.seconds": "The same for the time of which records are lost.",
        "failover.standby": "Whether `failover serve` closes the topics of flows for writes on the "
        "site that is not active, before any promotion too: what applications wrote there would "
        "stand between the mirror's records.",
        "failover.rebootstrap_clients": "Whether bundled brokers of a closed site send clients of "
        "its topics back to their `bootstrap.servers` (KIP-1102). Right where those lead to the "
        "active site, and nobody reads the closed site; "
        "see [Clients of any language](../clients/any-language.md).",
        "failover.orphan_after_ms": "When a promotion has had no controller for so long, "
        "`failover serve` finishes it behind the switch, and takes it back before.",
        "failover.readiness_interval_ms": "How often `failover serve` looks whether each idle site "
        "could be promoted now.",
        "failover.group_drain_timeout_ms": "How long a promotion waits for members of "
        "groups to leave: before the fence for plain consumers, behind it for those that follow "
        "the active site.",
        "failover.stop_timeout_ms": "How long a promotion waits for the mirror to stop the flow.",
        "failover.sets.<name>.topics": "A set of topics that is promoted by itself, as names and "
        "beginnings of names (`payments.*`). All topics that no set has are the set `default`: see "
        "[Sets of topics](../concepts/sets.md).",
        **{
            key.replace("failover.", "failover.sets.<name>.", 1): f"As `{key}`, for this set."
            for key in bootstrap_section.MEANINGS
        },
        **automatic_section.MEANINGS,
        **hooks_section.MEANINGS,
        **canary_section.MEANINGS,
        **rehearsal_section.MEANINGS,
        **bootstrap_section.MEANINGS,
    }
)
"""What each key is for."""


@frozen
class LossBudget:
    """What a promotion may give up of a lost source unasked; None sets no limit."""

    records: int | None = None
    seconds: int | None = None


NO_LIMIT: Final = LossBudget()


@frozen
class FailoverConfig:
    """Limits of a promotion; `initial_active` is the site that is active before the first."""

    initial_active: str
    drain_timeout_ms: int
    group_drain_timeout_ms: int
    stop_timeout_ms: int
    max_lag_before_fence: int
    """So many offsets may be unmirrored, all partitions together, when the source is closed."""
    catch_up_timeout_ms: int
    """So long a planned promotion waits for that; the source takes writes meanwhile."""
    is_standby_closed: bool
    """Whether `serve` closes the site that is not active before any promotion."""
    source_lost_after_ms: int
    """So long a site is looked at before it is taken for lost."""
    orphan_after_ms: int
    """A promotion that nobody has led for so long is finished or taken back by `serve`."""
    loss_budget: LossBudget
    readiness_interval_ms: int = 60_000
    """So often `serve` looks whether a promotion could begin."""
    hooks: tuple[HookConfig, ...] = ()
    """What a promotion calls on its way, in the order of the file."""
    canary: CanaryConfig | None = None
    """None where no record is sent to see how long it takes."""
    rehearsal: RehearsalConfig | None = None
    """None where no promotion can be rehearsed."""
    sends_clients_away: bool = False
    """Whether bundled brokers send clients of closed topics to their bootstrap servers."""
    automatic: AutomaticConfig | None = None
    """None where nothing is promoted by itself."""
    bootstrap: BootstrapConfig | None = None
    """None where `failover bootstrap` is not to be run."""
    sets: TopicSets = NO_SETS
    """What is promoted by itself."""


def read_failover(
    section: Section,
    top: Section,
    clusters: Collection[str],
    flows: tuple[FlowConfig, ...] | None,
) -> FailoverConfig:
    """Take the whole section, None stands for flows with mistakes; raises ConfigurationError."""
    initial_active = _initial_active(section, top, clusters, flows or ())
    budget = section.part("loss_budget", _loss_budget)
    failover = FailoverConfig(
        initial_active=initial_active,
        drain_timeout_ms=section.integer("drain_timeout_ms", 60_000, least=100),
        group_drain_timeout_ms=section.integer("group_drain_timeout_ms", 10_000, least=100),
        stop_timeout_ms=section.integer("stop_timeout_ms", 15_000, least=100),
        max_lag_before_fence=section.integer("max_lag_before_fence", 100_000, least=0),
        catch_up_timeout_ms=section.integer("catch_up_timeout_ms", 60_000, least=100),
        source_lost_after_ms=section.integer("source_lost_after_ms", 10_000, least=1_000),
        is_standby_closed=section.choice("standby", STANDBY, "closed") == "closed",
        orphan_after_ms=section.integer("orphan_after_ms", 60_000, least=1_000),
        readiness_interval_ms=section.integer("readiness_interval_ms", 60_000, least=1_000),
        loss_budget=NO_LIMIT if budget is None else budget,
        automatic=section.attempt(
            lambda: read_automatic(
                section.section("automatic", required=False),
                flows,
                has_budget=budget != NO_LIMIT,
            )
        ),
        hooks=section.attempt(lambda: read_hooks(section), ()),
        canary=section.part("canary", read_canary),
        sends_clients_away=section.boolean("rebootstrap_clients", default=False),
        bootstrap=section.part("bootstrap", read_bootstrap),
        rehearsal=section.attempt(
            lambda: read_rehearsal(
                section.section("rehearsal", required=False),
                is_given="rehearsal" in section.values,
            )
        ),
        sets=section.part("sets", read_sets, NO_SETS),
    )
    named = failover.sets
    if failover.rehearsal is not None:
        failover = replace(failover, sets=named.with_rehearsal())
    _refuse_renamed_canary(section, failover.canary, flows or ())
    beside = {"automatic": failover.automatic, "canary": failover.canary}
    refuse_unfit(section, failover.sets, clusters, flows or (), beside)
    refuse_shared_ports(section, named, failover.bootstrap)
    if failover.rehearsal is not None:
        refuse_unfit_rehearsal(section, named, flows or ())
    section.finish()
    return failover


def _initial_active(
    section: Section, top: Section, clusters: Collection[str], flows: tuple[FlowConfig, ...]
) -> str:
    named = section.optional_string("initial_active")
    if named is not None:
        if named not in clusters:
            section.complain("initial_active", unknown_cluster(named, clusters))
        return named
    if "initial_active" in section.values:
        return ""
    if len({flow.source for flow in flows}) == 1:
        return flows[0].source
    if flows:
        top.complain("failover", "initial_active must say which site is active at first")
    return ""


def _refuse_renamed_canary(
    section: Section, canary: CanaryConfig | None, flows: Iterable[FlowConfig]
) -> None:
    """Complain of a canary's topic that has another name where it is looked for."""
    for flow in () if canary is None else flows:
        name = None if canary is None else flow.renames.to_target.get(canary.topic)
        if name is not None:
            told = f"{flow.name} calls it {name!r} on {flow.target}: a canary keeps its name"
            section.complain("canary.topic", told)


def _loss_budget(section: Section) -> LossBudget:
    budget = LossBudget(
        records=section.optional_integer("records", least=0),
        seconds=section.optional_integer("seconds", least=0),
    )
    section.finish()
    return budget

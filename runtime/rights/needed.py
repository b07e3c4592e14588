"""The rights that our own programs need on clusters with an authorizer: one table. Pure.

The reference page, `mirror acls` and the test that runs everything with just these are made of it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final, NamedTuple

from runtime.configuration.flow_section import AclSync, FlowConfig, OffsetSyncs, PatternSet
from runtime.configuration.name_patterns import alternatives
from runtime.configuration.topic_names import TopicNames
from wire.acls import CLUSTER_NAME, WILDCARD, Operation, PatternType, ResourceType
from wire.values import frozen

READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE = (
    Operation.READ,
    Operation.WRITE,
    Operation.CREATE,
    Operation.DELETE,
    Operation.ALTER,
    Operation.DESCRIBE,
)
DESCRIBE_CONFIGS, ALTER_CONFIGS = Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS


class By(Enum):
    """The programs, each of which may have a user of its own."""

    MIRROR = "mirror"
    FAILOVER = "failover"
    AUDIT = "spark-audit"
    CLIENT = "failover.client"


class At(Enum):
    """The cluster of a flow on which a right is needed."""

    SOURCE = "source"
    TARGET = "target"


class Thing(Enum):
    """What a right is to, in the words of the reference page."""

    TOPICS = "each mirrored topic"
    GROUPS = "each group whose positions are kept in step"
    CLUSTER = "the cluster"
    EVIDENCE = "`pair-evidence.internal`"
    OFFSETS = "`__consumer_offsets`"
    MAP = "`<source>.offset-map.internal`"
    CHECKPOINTS = "`<source>.checkpoints.internal`"
    SET_ASIDE = "`<topic>.diverged` of each mirrored topic"
    HEARTBEATS = "`heartbeats`"
    OFFSET_SYNCS = "`mm2-offset-syncs.<other>.internal`"


def _always(_: FlowConfig) -> bool:
    return True


def _carries_rights(flow: FlowConfig) -> bool:
    return flow.acls is not AclSync.OFF


def _carries_quotas(flow: FlowConfig) -> bool:
    return flow.copies_quotas


def _deletes(flow: FlowConfig) -> bool:
    return flow.delete_gone_after_ms is not None


def _sets_aside(flow: FlowConfig) -> bool:
    return any(policy.value == "quarantine" for policy in flow.policies.values())


def _does_not_set_aside(flow: FlowConfig) -> bool:
    return not _sets_aside(flow)


def _keeps_gone(flow: FlowConfig) -> bool:
    return not _deletes(flow)


def _beats(flow: FlowConfig) -> bool:
    return flow.mirrormaker.heartbeats


def _syncs_on(side: OffsetSyncs) -> Callable[[FlowConfig], bool]:
    return lambda flow: flow.mirrormaker.offset_syncs is side


@frozen(kw_only=False)
class Need:
    """Operations that one program needs on one thing, for a reason that people read."""

    program: By
    at: At
    thing: Thing
    operations: tuple[Operation, ...]
    reason: str
    applies: Callable[[FlowConfig], bool] = _always
    is_for_orders: bool = False
    """Whether only a command of a person needs it, so that it may be given for that time alone."""


def _of_order(
    at: At,
    thing: Thing,
    operations: tuple[Operation, ...],
    reason: str,
    applies: Callable[[FlowConfig], bool] = _always,
) -> Need:
    return Need(By.MIRROR, at, thing, operations, reason, applies, is_for_orders=True)


M, F, A, C = By.MIRROR, By.FAILOVER, By.AUDIT, By.CLIENT
SOURCE, TARGET = At.SOURCE, At.TARGET
T = Thing
EVERYONE: Final = "`allow.everyone.if.no.acl.found`"
BY_QUARANTINE: Final = "`mirror restart --quarantine`, if it is given"
BY_ANEW: Final = "`mirror restart --from-earliest`, if it is given"
BY_REFILL: Final = "`mirror refill`, if it is given"
NEEDS: Final = (
    Need(M, SOURCE, T.TOPICS, (READ,), "to fetch records"),
    Need(M, SOURCE, T.TOPICS, (DESCRIBE_CONFIGS,), "for their settings to travel"),
    Need(M, SOURCE, T.GROUPS, (DESCRIBE,), "for their positions"),
    Need(M, SOURCE, T.OFFSETS, (READ,), "for positions as they are committed; else it polls"),
    Need(M, SOURCE, T.EVIDENCE, (READ, WRITE, CREATE), "to say which site is active"),
    Need(M, SOURCE, T.EVIDENCE, (DESCRIBE_CONFIGS,), "to see that it is compacted"),
    Need(M, SOURCE, T.CLUSTER, (DESCRIBE,), "`acls` other than `off`", _carries_rights),
    Need(M, SOURCE, T.CLUSTER, (DESCRIBE_CONFIGS,), "`client_quotas`", _carries_quotas),
    Need(M, SOURCE, T.HEARTBEATS, (WRITE, CREATE), "`mirrormaker.heartbeats`", _beats),
    Need(
        M,
        SOURCE,
        T.OFFSET_SYNCS,
        (WRITE, CREATE),
        "`mirrormaker.offset_syncs: source`",
        _syncs_on(OffsetSyncs.SOURCE),
    ),
    Need(M, SOURCE, T.SET_ASIDE, (WRITE, CREATE), "`quarantine`", _sets_aside),
    Need(M, TARGET, T.TOPICS, (READ, WRITE, CREATE), "to make and write them, and read the end"),
    Need(M, TARGET, T.TOPICS, (ALTER,), "for new partitions"),
    Need(M, TARGET, T.TOPICS, (DESCRIBE_CONFIGS, ALTER_CONFIGS), "for settings to travel"),
    Need(M, TARGET, T.TOPICS, (DELETE,), "`delete_gone_topics_after_ms`", _deletes),
    Need(M, TARGET, T.GROUPS, (READ,), "to commit positions"),
    Need(M, TARGET, T.MAP, (READ, WRITE, CREATE), "the offset map"),
    Need(M, TARGET, T.MAP, (DESCRIBE_CONFIGS,), "to see that it is compacted"),
    Need(M, TARGET, T.CHECKPOINTS, (READ, WRITE, CREATE), "checkpoints"),
    Need(M, TARGET, T.EVIDENCE, (READ, WRITE, CREATE), "to say which site is active"),
    Need(M, TARGET, T.EVIDENCE, (DESCRIBE_CONFIGS,), "to see that it is compacted"),
    Need(M, TARGET, T.CLUSTER, (DESCRIBE, ALTER), "`acls` other than `off`", _carries_rights),
    Need(
        M, TARGET, T.CLUSTER, (DESCRIBE_CONFIGS, ALTER_CONFIGS), "`client_quotas`", _carries_quotas
    ),
    Need(
        M,
        TARGET,
        T.OFFSET_SYNCS,
        (WRITE, CREATE),
        "`mirrormaker.offset_syncs: target`",
        _syncs_on(OffsetSyncs.TARGET),
    ),
    Need(M, TARGET, T.SET_ASIDE, (WRITE, CREATE), "`quarantine`", _sets_aside),
    _of_order(SOURCE, T.SET_ASIDE, (WRITE, CREATE), BY_QUARANTINE, _does_not_set_aside),
    _of_order(TARGET, T.SET_ASIDE, (WRITE, CREATE), BY_QUARANTINE, _does_not_set_aside),
    _of_order(TARGET, T.TOPICS, (DELETE,), BY_ANEW, _keeps_gone),
    _of_order(TARGET, T.MAP, (DELETE,), BY_REFILL),
    _of_order(TARGET, T.CHECKPOINTS, (DELETE,), BY_REFILL),
    Need(F, SOURCE, T.TOPICS, (READ,), "to read what a site alone has"),
    Need(F, SOURCE, T.TOPICS, (WRITE,), "to try whether a fence holds; nothing is written"),
    Need(F, SOURCE, T.GROUPS, (DESCRIBE,), "to see members, and for their last positions"),
    Need(F, SOURCE, T.EVIDENCE, (READ, WRITE, CREATE), "to say which site is active"),
    Need(F, SOURCE, T.EVIDENCE, (DESCRIBE_CONFIGS,), "to see that it is compacted"),
    Need(F, SOURCE, T.CLUSTER, (DESCRIBE, ALTER), "to close Apache Kafka by rights"),
    Need(F, SOURCE, T.CLUSTER, (DESCRIBE_CONFIGS,), f"to see whether {EVERYONE} is set"),
    Need(F, SOURCE, T.CLUSTER, (DESCRIBE_CONFIGS, ALTER_CONFIGS), "to close bundled brokers"),
    Need(F, TARGET, T.TOPICS, (READ,), "to see how far they are mirrored"),
    Need(F, TARGET, T.GROUPS, (READ,), "to move their positions"),
    Need(F, TARGET, T.MAP, (READ, WRITE), "to follow the map and seal it"),
    Need(F, TARGET, T.EVIDENCE, (READ, WRITE, CREATE), "to say which site is active"),
    Need(F, TARGET, T.EVIDENCE, (DESCRIBE_CONFIGS,), "to see that it is compacted"),
    Need(F, TARGET, T.CLUSTER, (DESCRIBE, ALTER), "to close and open Apache Kafka"),
    Need(F, TARGET, T.CLUSTER, (DESCRIBE_CONFIGS,), f"to see whether {EVERYONE} is set"),
    Need(F, TARGET, T.CLUSTER, (DESCRIBE_CONFIGS, ALTER_CONFIGS), "the same on bundled brokers"),
    Need(A, SOURCE, T.TOPICS, (READ, DESCRIBE_CONFIGS), "to compare records and settings"),
    Need(A, SOURCE, T.GROUPS, (DESCRIBE,), "to compare positions"),
    Need(A, SOURCE, T.CLUSTER, (DESCRIBE,), "to compare rights; else they are not compared"),
    Need(A, TARGET, T.TOPICS, (READ, DESCRIBE_CONFIGS), "to compare records and settings"),
    Need(A, TARGET, T.GROUPS, (DESCRIBE,), "to compare positions"),
    Need(A, TARGET, T.MAP, (READ,), "to translate offsets"),
    Need(A, TARGET, T.CLUSTER, (DESCRIBE,), "to compare rights; else they are not compared"),
    Need(C, SOURCE, T.TOPICS, (READ, WRITE), "what the application itself does"),
    Need(C, SOURCE, T.GROUPS, (READ,), "a consumer's own group"),
    Need(C, TARGET, T.TOPICS, (READ, WRITE), "the same behind a switch"),
    Need(C, TARGET, T.GROUPS, (READ,), "the same behind a switch"),
    Need(C, TARGET, T.MAP, (READ,), "to go on behind a switch"),
)
"""Each line is needed; `tests/interop/test_least_rights.py` runs everything with just these."""
MEANT: Final[Mapping[Thing, ResourceType]] = MappingProxyType(
    {
        **dict.fromkeys(Thing, ResourceType.TOPIC),
        Thing.GROUPS: ResourceType.GROUP,
        Thing.CLUSTER: ResourceType.CLUSTER,
    }
)


class Named(NamedTuple):
    """The resources of one entry. `widened` is the pattern of the file that no entry can say."""

    name: str
    pattern: PatternType = PatternType.LITERAL
    widened: str | None = None


class ClusterGrant(NamedTuple):
    """One thing of a cluster, and what a program may do with it."""

    cluster: str
    program: By
    kind: ResourceType
    named: Named
    operations: tuple[Operation, ...]
    reasons: tuple[str, ...]

    @property
    def of(self) -> tuple[object, ...]:
        """What one grant is for: cluster, program and thing."""
        return self[:4]

    def with_more(self, other: "ClusterGrant | None") -> "ClusterGrant":
        """Return a grant of all that either lets."""
        if other is None:
            return self._replace(operations=tuple(sorted(self.operations)))
        return self._replace(
            operations=tuple(sorted({*other.operations, *self.operations})),
            reasons=tuple(dict.fromkeys((*other.reasons, *self.reasons))),
        )


def grants(
    flow: FlowConfig,
    programs: Iterable[By],
    names: "InternalTopics",
    *,
    with_orders: bool = False,
) -> list[ClusterGrant]:
    """Return what these programs need for a flow: one grant for each cluster, program and thing.

    `with_orders`: what only commands of a person need, too.
    """
    merged: dict[tuple[object, ...], ClusterGrant] = {}
    wanted = frozenset(programs)
    for need in NEEDS:
        is_asked = with_orders or not need.is_for_orders
        if need.program in wanted and is_asked and need.applies(flow):
            for grant in granted(need, flow, names):
                merged[grant.of] = grant.with_more(merged.get(grant.of))
    return list(merged.values())


def granted(need: Need, flow: FlowConfig, names: "InternalTopics") -> Iterator[ClusterGrant]:
    """Yield what one line of the table means for a flow."""
    cluster = flow.source if need.at is At.SOURCE else flow.target
    for named in _named(need, flow, names):
        yield ClusterGrant(
            cluster, need.program, MEANT[need.thing], named, need.operations, (need.reason,)
        )


class InternalTopics(NamedTuple):
    """The internal topics of a flow, by their names."""

    map: str
    evidence: str


def _named(need: Need, flow: FlowConfig, names: InternalTopics) -> Iterator[Named]:
    is_copy = need.at is At.TARGET
    one = {
        Thing.CLUSTER: CLUSTER_NAME,
        Thing.EVIDENCE: names.evidence,
        Thing.OFFSETS: "__consumer_offsets",
        Thing.MAP: names.map,
        Thing.CHECKPOINTS: flow.names.checkpoints_topic,
        Thing.HEARTBEATS: "heartbeats",
        Thing.OFFSET_SYNCS: flow.names.offset_syncs_topic(flow.source if is_copy else flow.target),
    }.get(need.thing)
    if one is not None:
        yield Named(one)
    elif need.thing is Thing.GROUPS:
        yield from named_by(flow.groups)
    else:
        topics = named_by(flow.topics)
        if is_copy:
            topics = (copy for topic in topics for copy in _copies(flow.names, topic))
        is_aside = need.thing is Thing.SET_ASIDE
        yield from map(_set_aside, topics) if is_aside else topics


def _copies(names: TopicNames, named: Named) -> Iterator[Named]:
    """Yield the copies on the target of the topics that are named."""
    if named.pattern is PatternType.LITERAL and named.name != WILDCARD:
        yield named._replace(name=names.on_target(named.name))
        return
    start = "" if named.name == WILDCARD else named.name
    copies = names.prefix + start
    if copies:
        yield named._replace(name=copies, pattern=PatternType.PREFIXED)
    else:
        yield named
    for topic, name in names.renames.to_target.items():
        if topic.startswith(start) and not name.startswith(copies):
            yield Named(name)


def _set_aside(named: Named) -> Named:
    """Return the topic of records set aside; those of many topics begin as the topics do."""
    is_one = named.pattern is PatternType.LITERAL and named.name != WILDCARD
    return named._replace(name=f"{named.name}.diverged") if is_one else named


def named_by(patterns: PatternSet) -> Iterator[Named]:
    """Yield the resources that the included patterns mean; Kafka's entries know no exclusion.

    A pattern that is neither a name nor a prefix becomes every name.
    """
    for include in patterns.include:
        for text, said in alternatives(include.pattern):
            if said is None:
                yield Named(WILDCARD, widened=text)
            elif not said.text:
                yield Named(WILDCARD)
            else:
                kind = PatternType.PREFIXED if said.is_prefix else PatternType.LITERAL
                yield Named(said.text, kind)

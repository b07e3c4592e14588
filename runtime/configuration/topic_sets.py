"""Sets of topics that are promoted each by itself: which topics are of which set. Pure.

A set is a name and the patterns of its topics. All other topics of a flow are the default set's. A
set's patterns say names and beginnings of names (`runtime.configuration.name_patterns`), so two
sets that would share a topic are found in the file, before there is such a topic.
`Configuration.of_set` is what a program takes for one of them.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from runtime.configuration.bootstrap_section import BootstrapConfig, read_bootstrap
from runtime.configuration.flow_section import FlowConfig, PatternSet
from runtime.configuration.name_patterns import NamePattern, alternatives, read_name_pattern
from runtime.configuration.reading.section import Section
from wire.values import frozen

DEFAULT_SET: Final = "default"
"""The set of all topics that no set of the file has."""
REHEARSAL_SET: Final = "rehearsal"
"""The set of `failover.rehearsal`: no application has topics in it."""
REHEARSAL_TOPICS: Final = NamePattern("failover.rehearsal", is_prefix=True)
REHEARSAL_TOPIC: Final = "failover.rehearsal.load"
REHEARSAL_GROUP: Final = "failover.rehearsal"
"""The canary group that reads it."""
MOST_SETS: Final = 32
"""Each set has flows of its own in `mirror run`, with connections of their own."""
MOST_PATTERNS: Final = 200
"""Of one set."""
SHOWN: Final = 3
"""So many names of topics stand in a message."""
_SET_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?")


@frozen
class TopicSet:
    """One set of the file."""

    name: str
    patterns: tuple[NamePattern, ...]
    bootstrap: BootstrapConfig | None = None
    """Where `failover bootstrap` listens for clients of this set; None where it does not."""

    def takes(self, topic: str) -> bool:
        """Tell whether a topic is of this set."""
        return any(pattern.takes(topic) for pattern in self.patterns)


@frozen
class TopicSets:
    """All sets of the file; no topic matches two."""

    named: tuple[TopicSet, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of all sets, the default set's first."""
        return (DEFAULT_SET, *(one.name for one in self.named))

    @property
    def of_applications(self) -> tuple[str, ...]:
        """Return the names of the sets that applications have topics in, the default set's first.

        Where that is one, nobody is asked which set is meant.
        """
        return tuple(name for name in self.names if name != REHEARSAL_SET)

    def with_rehearsal(self) -> "TopicSets":
        """Return the same with the set that rehearsals promote."""
        return TopicSets(
            named=(*self.named, TopicSet(name=REHEARSAL_SET, patterns=(REHEARSAL_TOPICS,)))
        )

    def topics_of(self, name: str) -> str:
        """Return the patterns of a named set, in words."""
        [patterns] = (one.patterns for one in self.named if one.name == name)
        return ", ".join(sorted(map(str, patterns)))

    def set_of(self, topic: str) -> str:
        """Return the name of the one set that a topic is of."""
        return next((one.name for one in self.named if one.takes(topic)), DEFAULT_SET)

    def by_set(self, topics: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
        """Return the topics of each set that has some of these, in the order of their names."""
        found: dict[str, list[str]] = {}
        for topic in sorted(set(topics)):
            found.setdefault(self.set_of(topic), []).append(topic)
        return {name: tuple(found[name]) for name in self.names if name in found}


NO_SETS: Final = TopicSets()


def read_sets(section: Section) -> TopicSets:
    """Return the sets of the mapping `failover.sets`: by name, each with its `topics`.

    Raises ConfigurationError for a pattern that is neither a name nor the beginning of names, and
    for two sets that share a topic.
    """
    named: list[TopicSet] = []
    for name, inner in section.named_sections():
        if name == DEFAULT_SET:
            raise section.error(name, "is the set of all topics that no other set has")
        if name == REHEARSAL_SET:
            raise section.error(name, "is the set that `failover.rehearsal` makes")
        if not _SET_NAME.fullmatch(name):
            raise section.error(
                name, "a set's name has 1 to 32 small letters, digits or '-', no '-' at its ends"
            )
        texts = inner.strings("topics")
        if not 0 < len(texts) <= MOST_PATTERNS:
            raise inner.error("topics", f"must be 1 to {MOST_PATTERNS} patterns, not {len(texts)}")
        one = TopicSet(
            name=name,
            patterns=tuple(_pattern(inner, text) for text in texts),
            bootstrap=read_bootstrap(inner.section("bootstrap", required=False)),
        )
        inner.finish()
        for other in named:
            shared = find_shared(other, one)
            if shared is not None:
                raise inner.error("topics", f"{shared} would also be of the set {other.name}")
        named.append(one)
    if len(named) > MOST_SETS:
        raise section.complaint(f"has {len(named)} sets, more than {MOST_SETS}")
    return TopicSets(named=tuple(named))


def refuse_unfit(
    section: Section,
    sets: TopicSets,
    clusters: Collection[str],
    flows: Sequence[FlowConfig],
    beside: Mapping[str, object | None],
) -> None:
    """Complain of sets in a file that goes by other things as a whole, `beside` what is given.

    What stands beside them is of the default set, which may have the rehearsals' beside it.
    """
    if not sets.named:
        return
    has_several = len(sets.of_applications) > 1
    key = "sets" if has_several else "rehearsal"
    they = "" if has_several else "makes sets of topics, which "
    if len(clusters) > 2:
        section.complain(key, f"{they}need a file of two clusters, not {len(clusters)}")
    for flow in flows:
        if not flow.heeds_promotions:
            section.complain(key, f"{they}are promoted, and {flow.name} heeds no promotion")
        if flow.renames:
            section.complain(
                key, f"{they}go by one name of a topic, and {flow.name} has `rename`: not yet both"
            )
        if flow.topics != flows[0].topics:
            section.complain(
                key, f"{they}need the same `topics` in all flows, not as {flow.name} has"
            )
        if (found := find_not_mirrored(flow, sets)) is not None:
            one, pattern = found
            section.complain(
                key, f"{one.name} has {pattern}, of which {flow.name} does not mirror all"
            )
    for other, value in beside.items():
        if value is not None and has_several:
            section.complain(key, f"cannot be beside failover.{other} yet")


def endpoint_key(name: str | None) -> str:
    """Return the key of the section of a set's endpoint."""
    of_set = "" if name in {None, DEFAULT_SET} else f".sets.{name}"
    return f"failover{of_set}.bootstrap"


def refuse_shared_ports(
    section: Section, sets: TopicSets, of_default: BootstrapConfig | None
) -> None:
    """Complain where the endpoints of two sets would listen at one port: one program has both."""
    known = [(DEFAULT_SET, of_default), *((one.name, one.bootstrap) for one in sets.named)]
    for number, (name, one) in enumerate(known):
        for other, before in known[:number]:
            port = None if one is None or before is None else one.shares_port(before)
            if port is not None:
                section.complain(
                    "sets",
                    f"{endpoint_key(name)} listens at port {port}, as {endpoint_key(other)} does",
                )


def refuse_unfit_rehearsal(section: Section, sets: TopicSets, flows: Sequence[FlowConfig]) -> None:
    """Complain where the set of rehearsals cannot be promoted and taken back beside these sets."""
    rehearsed = TopicSet(name=REHEARSAL_SET, patterns=(REHEARSAL_TOPICS,))
    for one in sets.named:
        if (shared := find_shared(rehearsed, one)) is not None:
            section.complain("rehearsal", f"{shared} would also be of the set {one.name}")
    ways = {(flow.source, flow.target) for flow in flows}
    for source, target in sorted(ways):
        if (target, source) not in ways:
            section.complain(
                "rehearsal", f"takes the promotion back, and there is no flow {target}->{source}"
            )
    for flow in flows:
        if flow.topics.include and not flow.mirrors(REHEARSAL_TOPIC):
            section.complain("rehearsal", f"{flow.name} does not mirror {REHEARSAL_TOPIC}")
        if not flow.groups.matches(REHEARSAL_GROUP):
            section.complain(
                "rehearsal", f"{flow.name} does not translate the group {REHEARSAL_GROUP}"
            )


def _pattern(section: Section, text: str) -> NamePattern:
    found = read_name_pattern(text)
    if found is None:
        raise section.error(
            "topics", f"{text!r} is neither a name nor the beginning of names, as `orders.*` is"
        )
    if found == NamePattern("", is_prefix=True):
        raise section.error("topics", "'.*' would leave no topic to the default set")
    return found


def find_shared(one: TopicSet, other: TopicSet) -> NamePattern | None:
    """Return the topics that both sets would have, as a pattern; None where there are none."""
    for ours in one.patterns:
        for theirs in other.patterns:
            if ours.overlaps(theirs):
                return theirs if ours.takes_all_of(theirs) else ours
    return None


def find_not_mirrored(flow: FlowConfig, sets: TopicSets) -> tuple[TopicSet, NamePattern] | None:
    """Return a set with a pattern of which this flow may not mirror all, None where there is none.

    Such a set's own flow would mirror more than the file says.
    """
    for one in sets.named:
        for pattern in one.patterns:
            if not _is_included(flow.topics, pattern):
                return one, pattern
    return None


def _is_included(topics: PatternSet, pattern: NamePattern) -> bool:
    """Tell whether included patterns surely take all that a pattern takes."""
    if not pattern.is_prefix and any(one.fullmatch(pattern.text) for one in topics.include):
        return True
    plain = (said for one in topics.include for _, said in alternatives(one.pattern))
    return any(said is not None and said.takes_all_of(pattern) for said in plain)


def flow_of_sets(flow: FlowConfig, sets: TopicSets, chosen: Collection[str]) -> FlowConfig:
    """Return the flow of the topics of these sets alone.

    The flows of all sets, each by itself, take together what the flow takes, and no topic twice,
    where `find_not_mirrored` finds nothing. Included patterns stay names and beginnings of names
    where the file has those, as a fence by rights needs them (`runtime.rights.needed.named_by`).
    """
    unknown = set(chosen) - set(sets.names)
    assert not unknown, f"{unknown} are no sets"
    patterns = {one.name: tuple(each.compiled() for each in one.patterns) for one in sets.named}
    if DEFAULT_SET in chosen:
        left = [each for name, own in patterns.items() if name not in chosen for each in own]
        topics = replace(flow.topics, exclude=(*flow.topics.exclude, *left))
    else:
        include = [each for name, own in patterns.items() if name in chosen for each in own]
        topics = replace(flow.topics, include=tuple(include))
    return replace(flow, topics=topics)


def flow_of_set(flow: FlowConfig, sets: TopicSets, name: str) -> FlowConfig:
    """Return the flow of one set, a named one under a name of its own.

    What belongs to no topic travels with the default set alone: quotas and heartbeats.
    """
    part = replace(flow_of_sets(flow, sets, [name]), topic_set=name, told_set=name)
    if name == DEFAULT_SET:
        return part
    return replace(
        part,
        name=f"{name}:{flow.name}",
        copies_quotas=False,
        mirrormaker=replace(flow.mirrormaker, heartbeats=False),
    )


def names_of_set(flow: FlowConfig) -> tuple[NamePattern, ...] | None:
    """Return the names of topics that a named set's flow has; None of any other flow."""
    if flow.topic_set in {None, DEFAULT_SET}:
        return None
    said = (read_name_pattern(one.pattern) for one in flow.topics.include)
    return tuple(one for one in said if one is not None)


@frozen
class CutGroup:
    """A group that has positions in topics of several sets, so that no set takes it along."""

    group: str
    topics: Mapping[str, tuple[str, ...]]
    """By set."""

    def __str__(self) -> str:
        """Return it in words."""
        parts = [f"{_some(topics)} (set {name})" for name, topics in self.topics.items()]
        return f"group {self.group} reads {' and '.join(parts)}"


def group_sets(
    sets: TopicSets, positions: Mapping[str, Iterable[str]]
) -> tuple[Mapping[str, str], Sequence[CutGroup]]:
    """Return the set of each group, and the groups that span several, each by the group's name.

    `positions` are the topics in which a group has committed positions, of those that the flow
    moves. A group without any is of no set.
    """
    whole: dict[str, str] = {}
    cut: list[CutGroup] = []
    for group, topics in sorted(positions.items()):
        by_set = sets.by_set(topics)
        if len(by_set) > 1:
            cut.append(CutGroup(group=group, topics=by_set))
        elif by_set:
            [whole[group]] = by_set
    return whole, cut


@frozen
class NotSets:
    """Why topics that somebody has named cannot be promoted by themselves."""

    reason: str


def sets_of_topics(
    sets: TopicSets, pattern: str, topics: Iterable[str]
) -> frozenset[str] | NotSets:
    """Return the sets whose topics are together just those that match a regular expression.

    `topics` are all that the flow moves. Sets are what is promoted, so a topic that is made later
    goes with its set, whether or not it matches.
    """
    try:
        wanted = re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return NotSets(reason=f"--topics {pattern!r} is no regular expression: {error}")
    chosen: set[str] = set()
    for name, of_set in sets.by_set(topics).items():
        inside = tuple(topic for topic in of_set if wanted.fullmatch(topic))
        outside = tuple(topic for topic in of_set if topic not in inside)
        if inside and outside:
            return NotSets(
                reason=f"--topics {pattern!r} cuts the set {name} in two: it takes"
                f" {_some(inside)} and leaves {_some(outside)}"
            )
        if inside:
            chosen.add(name)
    if not chosen:
        return NotSets(reason=f"--topics {pattern!r} matches no topic that is moved")
    return frozenset(chosen)


def _some(topics: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    more = len(topics) - SHOWN
    return ", ".join(topics[:SHOWN]) + (f" and {more} more" if more > 0 else "")

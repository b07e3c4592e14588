"""The rights that travel to the other site: by MirrorMaker 2's rules, or all of them. Pure.

MirrorMaker never lets anybody write to a mirrored topic: ALLOW WRITE stays behind, and of ALLOW
ALL only READ arrives (MirrorSourceConnector). It copies rights to one topic by its name alone; we
go by its rules for prefixes, for `*`, for groups and for transactional ids as well:

    kind                identical        downgraded
    topic               as it is         no WRITE; READ of ALL
    group               as it is         no DELETE; READ of ALL
    transactional id    as it is         no WRITE; DESCRIBE of ALL
    cluster             OF_APPLICATIONS  nothing

A right to names that begin alike, or to every name, travels as it is, and to each copy of another
name that it concerns. Where it would concern a copy there whose topic it does not concern here, it
travels to each topic by itself.

What denies something travels as it is. Nothing is ever taken away. What a fence consists of stays
on the site that was closed: the other site has to take writes.
"""

from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import field, replace
from types import MappingProxyType
from typing import Final

from runtime.configuration.flow_section import AclSync, PatternSet
from runtime.configuration.name_patterns import NamePattern
from runtime.rights.closing import of_fence
from wire.acls import WILDCARD, Operation, ResourceType
from wire.net.rights import ALLOW, LITERAL, PREFIXED, Right
from wire.values import frozen

OF_APPLICATIONS: Final = frozenset(
    {
        Operation.CREATE,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    }
)
"""The rights to a cluster that applications use. Administrators and brokers are each site's own."""
_STAYS: Final = None
_DOWNGRADED: Final[Mapping[tuple[int, int], Operation | None]] = MappingProxyType(
    {
        (ResourceType.TOPIC, Operation.WRITE): _STAYS,
        (ResourceType.TOPIC, Operation.ALL): Operation.READ,
        (ResourceType.GROUP, Operation.DELETE): _STAYS,
        (ResourceType.GROUP, Operation.ALL): Operation.READ,
        (ResourceType.TRANSACTIONAL_ID, Operation.WRITE): _STAYS,
        (ResourceType.TRANSACTIONAL_ID, Operation.ALL): Operation.DESCRIBE,
    }
)
"""What becomes of an ALLOW by kind and operation; another one travels as it is."""
_KINDS: Final = frozenset(
    {
        ResourceType.TOPIC,
        ResourceType.GROUP,
        ResourceType.TRANSACTIONAL_ID,
        ResourceType.CLUSTER,
    }
)


@frozen
class Travelled:
    """The resources whose rights travel."""

    topics: Mapping[str, str]
    """The source's topics that are mirrored, each with its name on the target."""
    prefix: str = ""
    """What stands before each name on the target, where names are prefixed."""
    groups: Collection[str] = ()
    """The groups that were seen on the source, of those whose positions are kept in step."""
    group_names: PatternSet | None = None
    """The groups whose positions are kept in step; None is no group."""
    names_of_set: tuple[NamePattern, ...] | None = None
    """The names of a named set's topics, of whose flow nothing else travels: other sets may move
    the other way, and would bring back what somebody has taken away."""
    renamed: tuple[tuple[str, str], ...] = field(init=False, compare=False, repr=False)
    """The topics whose names on the target are not those with the prefix, each with its name."""

    def __post_init__(self) -> None:
        """Find them once, as there are many entries."""
        found = ((t, name) for t, name in self.topics.items() if name != self.prefix + t)
        object.__setattr__(self, "renamed", tuple(found))


def rights_to_give(
    source: Iterable[Right], target: Collection[Right], travelled: Travelled, sync: AclSync
) -> list[Right]:
    """Return the entries that the target lacks, of those that travel."""
    held = set(source)
    wanted: set[Right] = set()
    for right in held - of_fence(held):
        wanted |= given_on_target(right, travelled, sync)
    return sorted(wanted.difference(target))


def given_on_target(right: Right, travelled: Travelled, sync: AclSync) -> Set[Right]:
    """Return the entries that the target is to have for this one, which is of no fence.

    Nothing for one that stays.
    """
    given = as_it_travels(right, sync)
    if given is None or not is_about(given, travelled):
        return frozenset()
    return named_on_target(given, travelled)


def named_on_target(right: Right, travelled: Travelled) -> Set[Right]:
    """Return an entry that is about the flow by the target's names: one, or one for each copy."""
    if right.kind != ResourceType.TOPIC:
        return {right}
    if right.is_of_one:
        return {replace(right, name=travelled.topics[right.name])}
    pattern = _pattern_on_target(right, travelled.prefix)
    renamed = {topic: name for topic, name in travelled.renamed if pattern.concerns(name)}
    if not all(map(right.concerns, renamed)):
        return {
            replace(right, name=name, pattern=LITERAL)
            for topic, name in travelled.topics.items()
            if right.concerns(topic)
        }
    return {pattern} | {
        replace(right, name=name, pattern=LITERAL)
        for topic, name in travelled.renamed
        if topic not in renamed and right.concerns(topic)
    }


def _pattern_on_target(right: Right, prefix: str) -> Right:
    """Return an entry of many topics that takes their copies, but for those of another name."""
    if right.pattern == PREFIXED:
        return replace(right, name=prefix + right.name)
    if prefix:  # all topics of the source are those with its prefix there
        return replace(right, name=prefix, pattern=PREFIXED)
    return right


def as_it_travels(right: Right, sync: AclSync) -> Right | None:
    """Return the entry, under the source's name, that the target gets for one of no fence.

    None for one that stays.
    """
    if sync is AclSync.OFF or right.kind not in _KINDS:
        return None
    if right.kind == ResourceType.CLUSTER:
        is_carried = sync is AclSync.IDENTICAL and right.operation in OF_APPLICATIONS
        return right if is_carried else None
    if sync is AclSync.IDENTICAL or right.permission != ALLOW:
        return right
    key = right.kind, right.operation
    if key not in _DOWNGRADED:
        return right
    operation = _DOWNGRADED[key]
    return None if operation is None else replace(right, operation=operation)


def is_about(right: Right, travelled: Travelled) -> bool:
    """Tell whether an entry of the source concerns something that the flow carries.

    Nobody knows the transactional ids of a flow, so all of their entries are about it.
    """
    if travelled.names_of_set is not None and not _is_of_set(right, travelled.names_of_set):
        return False
    match right.kind:
        case ResourceType.TOPIC if right.is_of_one:
            return right.name in travelled.topics
        case ResourceType.TOPIC:
            return any(right.concerns(topic) for topic in travelled.topics)
        case ResourceType.GROUP:
            return _is_about_group(right, travelled)
        case _:
            return True


def _is_of_set(right: Right, names: Iterable[NamePattern]) -> bool:
    """Tell whether an entry concerns topics of these names alone."""
    if right.kind != ResourceType.TOPIC or (right.name == WILDCARD and right.pattern == LITERAL):
        return False
    concerned = NamePattern(right.name, is_prefix=right.pattern == PREFIXED)
    return any(one.takes_all_of(concerned) for one in names)


def _is_about_group(right: Right, travelled: Travelled) -> bool:
    """Tell whether some group of the flow is meant, seen or yet to come."""
    names = travelled.group_names
    if names is None:
        return False
    if right.pattern == LITERAL and right.name == WILDCARD:
        return True
    return names.matches(right.name) or (
        right.pattern == PREFIXED and any(map(right.concerns, travelled.groups))
    )

"""Rights that differ between the sites: to topics, groups, transactional ids, the cluster. Pure.

A switch rests on them: applications may on the new site what they were given there. What the mirror
carries and the target lacks is a finding. All else is shown and explained: MirrorMaker's rules keep
rights to write on the source, and the mirror takes none away.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from enum import IntEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from runtime.configuration.flow_section import AclSync
from runtime.rights.closing import of_fence
from runtime.rights.travelling import Travelled, as_it_travels, is_about, named_on_target
from wire.acls import WILDCARD, Operation, Permission, ResourceType
from wire.net.rights import LITERAL, PREFIXED, Right

MOST_LISTED: Final = 1_000
"""So many differences of a flow are listed; the last one stands for the others."""
KEPT_BACK: Final = "the mirror keeps rights to write on the source"
NOT_CARRIED: Final = "the mirror carries no rights: `acls: off`"
OF_CLUSTER: Final = "the mirror carries no such right to a cluster"
GROUPS_KEPT: Final = "the mirror keeps rights to delete groups on the source"
SURPLUS: Final = "the mirror takes no rights away"
OF_FENCE: Final = "it closes a site for writes"
_WORDS: Final[Mapping[int, str]] = MappingProxyType(
    {
        ResourceType.TOPIC: "topic",
        ResourceType.GROUP: "group",
        ResourceType.TRANSACTIONAL_ID: "transactional id",
    }
)


class DifferentRight(NamedTuple):
    """An entry that one site alone has. Without `explained` it is a finding."""

    resource: str
    """As on the source: a topic, `prefix*`, `every topic`, `group g`, or `the cluster`."""
    right: str
    is_on_source: bool
    explained: str | None

    @property
    def words(self) -> str:
        """Return the difference as words for people."""
        where = "only on the source" if self.is_on_source else "only on the target"
        advice = "give it on the target with `kafka-acls`; see the mirror's log"
        return f"{self.resource}: {self.right}: {where}; {self.explained or advice}"


def different_rights(
    source: Collection[Right], target: Collection[Right], travelled: Travelled, sync: AclSync
) -> list[DifferentRight]:
    """Return the entries for what the flow carries that one site alone has, the findings first.

    A right that arrives as another one, as MirrorMaker's rules have it, is looked for as that.
    """
    back = {name: topic for topic, name in travelled.topics.items()}
    ours = {one for one in source if _is_known(one) and is_about(one, travelled)}
    there = replace(travelled, topics=dict.fromkeys(back, ""))
    theirs = {one for one in target if _is_known(one) and is_about(one, there)}
    of_theirs = of_fence(target) & theirs
    here = {one: _by_sources_name(one, back, travelled.prefix) for one in theirs}
    fences = of_fence(source) | {here[one] for one in of_theirs}
    travelling = {other for one in ours - fences if (other := as_it_travels(one, sync))}
    wanted = {one: named_on_target(one, travelled) for one in ours | travelling}
    missing = {one for one in travelling if not wanted[one] <= theirs}
    kept = {one for one in ours - missing if not wanted[one] <= theirs}
    surplus = theirs.difference(*wanted.values())
    found = [_only(one, is_on_source=True, explained=None) for one in sorted(missing)]
    found += (
        _only(one, is_on_source=True, explained=OF_FENCE if one in fences else _why_not(one, sync))
        for one in sorted(kept)
    )
    found += (
        _only(one, is_on_source=False, explained=OF_FENCE if one in fences else _why_surplus(one))
        for one in sorted(here[one] for one in surplus)
    )
    return _listed(found)


def _is_known(right: Right) -> bool:
    """Return whether an entry is of a kind that any flow carries."""
    return right.kind in _WORDS or right.kind == ResourceType.CLUSTER


def _by_sources_name(right: Right, back: Mapping[str, str], prefix: str) -> Right:
    """Return an entry of the target as the source has it: see `named_on_target`."""
    if right.kind != ResourceType.TOPIC:
        return right
    if right.is_of_one:
        return replace(right, name=back[right.name])
    if not prefix or right.pattern != PREFIXED or not right.name.startswith(prefix):
        return right
    if right.name == prefix:
        return replace(right, name=WILDCARD, pattern=LITERAL)
    return replace(right, name=right.name.removeprefix(prefix))


def _why_not(right: Right, sync: AclSync) -> str:
    if right.kind == ResourceType.CLUSTER:
        return OF_CLUSTER
    if sync is AclSync.OFF:
        return NOT_CARRIED
    return GROUPS_KEPT if right.kind == ResourceType.GROUP else KEPT_BACK


def _why_surplus(right: Right) -> str:
    return OF_CLUSTER if right.kind == ResourceType.CLUSTER else SURPLUS


def _only(right: Right, *, is_on_source: bool, explained: str | None) -> DifferentRight:
    resource = _resource(right)
    permission, operation = _name(Permission, right.permission), _name(Operation, right.operation)
    what = f"{permission} {operation} to {right.principal} from {right.host}"
    return DifferentRight(resource, what, is_on_source, explained)


def _resource(right: Right) -> str:
    if right.kind == ResourceType.CLUSTER:
        return "the cluster"
    what = _WORDS[right.kind]
    if right.pattern == LITERAL and right.name == WILDCARD:
        return f"every {what}"
    name = f"{right.name}*" if right.pattern == PREFIXED else right.name
    return name if right.kind == ResourceType.TOPIC else f"{what} {name}"


def _name(kind: type[IntEnum], number: int) -> str:
    """Return Kafka's name; brokers may know of more than we do."""
    names = {one.value: one.name for one in kind}
    return names.get(number, f"number {number}")


def _listed(found: list[DifferentRight]) -> list[DifferentRight]:
    if len(found) <= MOST_LISTED:
        return found
    left = len(found) - MOST_LISTED + 1
    last = found[MOST_LISTED - 1]._replace(right=f"{left:,} more entries")
    return [*found[: MOST_LISTED - 1], last]

"""Rights to topics and to the cluster that differ between the sites. Pure.

A switch rests on them: applications may on the new site what they were given there. What the mirror
carries and the target lacks is a finding. All else is shown and explained: MirrorMaker's rules keep
rights to write on the source, and the mirror takes none away.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from enum import IntEnum
from typing import Final, NamedTuple

from runtime.configuration.flow_section import AclSync
from runtime.rights.travelling import as_it_travels
from runtime.write_fence import is_of_fence
from wire.acls import WILDCARD, Operation, Permission
from wire.net.rights import LITERAL, PREFIXED, Right

MOST_LISTED: Final = 1_000
"""So many differences of a flow are listed; the last one stands for the others."""
KEPT_BACK: Final = "the mirror keeps rights to write on the source"
NOT_CARRIED: Final = "the mirror carries no rights: `acls: off`"
OF_CLUSTER: Final = "the mirror carries no such right to a cluster"
SURPLUS: Final = "the mirror takes no rights away"
OF_FENCE: Final = "it closes a site for writes"


class DifferentRight(NamedTuple):
    """An entry that one site alone has. Without `explained` it is a finding."""

    resource: str
    """As on the source: a topic, `prefix*`, `every topic`, or `the cluster`."""
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
    source: Collection[Right],
    target: Collection[Right],
    *,
    mirrored: Mapping[str, str],
    sync: AclSync,
    prefix: str = "",
) -> list[DifferentRight]:
    """Return the entries for these topics that one site alone has, the findings first.

    `mirrored` are the source's topics, each with its name on the target, which begins with
    `prefix`. A right that arrives as another one, as MirrorMaker's rules have it, is looked for as
    that.
    """
    ours = {one for one in source if _concerns(one, mirrored.keys())}
    back = {name: topic for topic, name in mirrored.items()}
    theirs = {_by_sources_name(one, back, prefix) for one in target if _concerns(one, back.keys())}
    travelling = {other for one in ours if (other := as_it_travels(one, sync))}
    missing = travelling - theirs
    found = [_only(one, is_on_source=True, explained=None) for one in sorted(missing)]
    found += (
        _only(one, is_on_source=True, explained=_why_not(one, sync))
        for one in sorted(ours - theirs - missing)
    )
    found += (
        _only(one, is_on_source=False, explained=OF_FENCE if is_of_fence(one) else SURPLUS)
        for one in sorted(theirs - ours - travelling)
    )
    return _listed(found)


def different_cluster_rights(
    source: Collection[Right], target: Collection[Right], sync: AclSync
) -> list[DifferentRight]:
    """Return the entries for the clusters that one site alone has, the findings first."""
    missing = {one for one in source if as_it_travels(one, sync)} - {*target}
    found = [_only(one, is_on_source=True, explained=None) for one in sorted(missing)]
    found += (
        _only(one, is_on_source=one in source, explained=OF_CLUSTER)
        for one in sorted(({*source} ^ {*target}) - missing)
    )
    return _listed([one._replace(resource="the cluster") for one in found])


def _concerns(right: Right, topics: Collection[str]) -> bool:
    if right.is_of_one:
        return right.name in topics
    return any(right.concerns(topic) for topic in topics)


def _by_sources_name(right: Right, back: Mapping[str, str], prefix: str) -> Right:
    """Return an entry of the target as the source has it: see `given_on_target`."""
    if right.is_of_one:
        return replace(right, name=back[right.name])
    if not prefix or right.pattern != PREFIXED or not right.name.startswith(prefix):
        return right
    if right.name == prefix:
        return replace(right, name=WILDCARD, pattern=LITERAL)
    return replace(right, name=right.name.removeprefix(prefix))


def _why_not(right: Right, sync: AclSync) -> str:
    if is_of_fence(right):
        return OF_FENCE
    if sync is AclSync.OFF:
        return NOT_CARRIED
    return KEPT_BACK


def _only(right: Right, *, is_on_source: bool, explained: str | None) -> DifferentRight:
    resource = right.name
    if right.pattern == PREFIXED:
        resource += "*"
    elif right.name == WILDCARD:
        resource = "every topic"
    permission, operation = _name(Permission, right.permission), _name(Operation, right.operation)
    what = f"{permission} {operation} to {right.principal} from {right.host}"
    return DifferentRight(resource, what, is_on_source, explained)


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

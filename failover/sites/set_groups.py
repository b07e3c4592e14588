"""The groups of one set of topics on a site: those with positions in its topics.

A group follows its topics. One with positions in topics of two sets would find half of them closed
when one of the sets has moved, so it is cut, and no promotion begins. A group without positions is
of no set, and nobody waits for its members. Without sets all groups are those of the flow.
"""

from collections.abc import Sequence

from failover.sites.site import GroupChoice, Site
from runtime.configuration.config import Configuration, FlowConfig
from runtime.configuration.topic_sets import CutGroup, group_sets
from wire.net import NetworkFault
from wire.net.operations import fetch_group_offsets, fetch_offsets_of, list_groups
from wire.values import frozen


@frozen
class NamedGroups:
    """Groups by their names, as `PatternSet` chooses them by patterns."""

    names: frozenset[str]

    def matches(self, name: str) -> bool:
        """Tell whether a group is one of these."""
        return name in self.names


@frozen
class GroupsOfSet:
    """The groups that a set takes along, and those that it would cut in two."""

    chosen: GroupChoice
    cut: Sequence[CutGroup] = ()


async def groups_of_set(site: Site, configuration: Configuration, flow: FlowConfig) -> GroupsOfSet:
    """Return the groups of the configuration's set on a site; raises NetworkFault."""
    name, whole = configuration.topic_set, configuration.whole
    if name is None:
        return GroupsOfSet(chosen=flow.groups)
    groups = sorted(filter(flow.groups.matches, await list_groups(site.cluster)))
    answers = await fetch_offsets_of(site.cluster, groups) if groups else {}
    topics: dict[str, set[str]] = {}
    for group in groups:
        stored = answers[group]
        if isinstance(stored, NetworkFault):
            stored = await fetch_group_offsets(site.cluster, group)
        topics[group] = {
            partition.topic
            for partition, one in stored.items()
            if one.offset >= 0 and any(each.moves(partition.topic) for each in whole.flows)
        }
    of_set, cut = group_sets(whole.sets, topics)
    return GroupsOfSet(
        chosen=NamedGroups(names=frozenset(group for group, one in of_set.items() if one == name)),
        cut=tuple(one for one in cut if name in one.topics),
    )


def cut_line(cut: Sequence[CutGroup]) -> str:
    """Return what is wrong with groups that are cut, and what to do."""
    more = f" (and {len(cut) - 1} groups more)" if len(cut) > 1 else ""
    return (
        f"{cut[0]}{more}: half of its topics would be closed to it; have it read topics of one set,"
        " and delete its positions in the others (`kafka-consumer-groups.sh --delete-offsets`)"
    )

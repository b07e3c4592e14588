"""Positions of groups on a site, by the names that its callers use: see `failover.sites.site`."""

from collections.abc import Collection, Mapping
from typing import TypeAlias

from failover.sites.site import Site
from wire.errors import ErrorCode
from wire.net import NetworkFault
from wire.net.operations import (
    GroupOffset,
    commit_group_offsets,
    commit_offsets_of,
    fetch_group_offsets,
    fetch_offsets_of,
)
from wire.topic_partition import TopicPartition

Stored: TypeAlias = dict[TopicPartition, GroupOffset]
Commits: TypeAlias = Mapping[TopicPartition, tuple[int, str]]
Codes: TypeAlias = dict[TopicPartition, ErrorCode]


async def stored_by_each(
    site: Site, groups: Collection[str], *, require_stable: bool = False
) -> dict[str, Stored | NetworkFault]:
    """Return what each group has stored, or why it is not told."""
    answers = await fetch_offsets_of(site.cluster, [*groups], require_stable=require_stable)
    return {
        group: found if isinstance(found, NetworkFault) else _told(site, found)
        for group, found in answers.items()
    }


async def stored_by(site: Site, group: str, *, require_stable: bool = False) -> Stored:
    """Return what a group has stored; raises NetworkFault."""
    return _told(
        site, await fetch_group_offsets(site.cluster, group, require_stable=require_stable)
    )


async def commit_each(
    site: Site, commits: Mapping[str, Commits]
) -> dict[str, Codes | NetworkFault]:
    """Commit (offset, metadata) for groups; return what came of each."""
    sent = {group: _here(site, of_group) for group, of_group in commits.items()}
    answers = await commit_offsets_of(site.cluster, sent)
    return {
        group: codes if isinstance(codes, NetworkFault) else _answered(site, commits[group], codes)
        for group, codes in answers.items()
    }


async def commit(site: Site, group: str, of_group: Commits) -> Codes:
    """Commit (offset, metadata) for one group; raises NetworkFault."""
    codes = await commit_group_offsets(site.cluster, group, _here(site, of_group))
    return _answered(site, of_group, codes)


def _here(site: Site, of_group: Commits) -> dict[TopicPartition, tuple[int, str]]:
    return {site.here(partition): one for partition, one in of_group.items()}


def _answered(site: Site, of_group: Commits, codes: Mapping[TopicPartition, ErrorCode]) -> Codes:
    callers = {site.here(partition): partition for partition in of_group}
    return {callers[partition]: code for partition, code in codes.items() if partition in callers}


def _told(site: Site, found: Stored) -> Stored:
    """Return positions by the names of the callers; those in topics that have none are left out."""
    names = site.names
    if names is None:
        return found
    return {
        TopicPartition(topic, partition.partition): one
        for partition, one in found.items()
        if (topic := names.on_source(partition.topic)) is not None
    }

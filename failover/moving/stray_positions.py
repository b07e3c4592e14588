"""Positions of groups on a target that lie behind the end of its log.

    target  |--aaaa--|           the log has lost its tail, or somebody has committed by hand
                     end    18   a group that goes on at 18 passes over what is written from now on

A planned promotion moves groups to where they stand on the source. Behind a source that was lost
there is no such place, and the log's end is the last that a group can have read.
"""

import logging
from collections.abc import Collection, Mapping
from typing import Final

from failover.journal.facts import Facts
from failover.moving.groups import GROUPS_BYTES, fitting
from failover.sites.positions import commit, stored_by, stored_by_each
from failover.sites.site import GroupChoice, Site, brief
from wire.errors import ErrorCode
from wire.net import NetworkFault
from wire.net.operations import GroupOffset
from wire.topic_partition import TopicPartition

_LOG = logging.getLogger(__name__)

AT_ONCE: Final = 500
"""Applications wait for the promotion, so groups are not asked for one after the other."""


def find_stray(
    stored: Mapping[TopicPartition, GroupOffset], ends: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Return the log end of each partition in which a position lies behind it. Pure."""
    return {
        partition: ends[partition]
        for partition, one in sorted(stored.items())
        if partition in ends and one.offset > ends[partition]
    }


async def pull_back_stray(
    target: Site, groups: GroupChoice, ends: Mapping[TopicPartition, int]
) -> Facts:
    """Commit the log's end for each group that stands behind it, and return what was found.

    A fault does not hold a disaster up: it is told in the facts.
    """
    pulled: dict[str, str] = {}
    unknown: Facts = {}
    try:
        names = [*await target.members(groups)]
        for first in range(0, len(names), AT_ONCE):
            pulled |= await _pull_back(target, names[first : first + AT_ONCE], ends)
    except NetworkFault as fault:
        _LOG.warning("positions behind the ends of %s's logs: %s", target.name, fault)
        unknown = {"stray_unknown": brief(fault)}
    named = fitting(pulled, GROUPS_BYTES // 16)
    return {"stray": named, "more_stray": len(pulled) - len(named), **unknown}


async def _pull_back(
    target: Site, names: Collection[str], ends: Mapping[TopicPartition, int]
) -> dict[str, str]:
    pulled: dict[str, str] = {}
    answers = await stored_by_each(target, names)
    for name in names:
        stored = answers[name]
        if isinstance(stored, NetworkFault):
            stored = await stored_by(target, name)
        stray = find_stray(stored, ends)
        if not stray:
            continue
        codes = await commit(
            target,
            name,
            {partition: (end, stored[partition].metadata) for partition, end in stray.items()},
        )
        first, end = next(iter(stray.items()))
        refused = next((code.name for code in codes.values() if code is not ErrorCode.NONE), None)
        pulled[name] = (
            f"it stood at {stored[first].offset} in {first}, which ends at {end}"
            f" ({len(stray)} partitions); "
            + ("it goes on at the end" if refused is None else f"it stays there: {refused}")
        )
    return pulled

"""Wait until members of groups have left the source: plain ones before the fence, others behind it.

A member that follows the active site (`failover.client`) has a node of its own in the witness. It
leaves as soon as the next site is announced. A plain consumer knows nothing of that and leaves when
somebody stops it, so it is waited for while the source still takes writes, and never behind the
fence.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

import trio

from failover.journal.execute import StepFailed
from failover.journal.facts import Facts
from failover.moving.groups import GROUPS_BYTES, GROUPS_POLL_S, fitting
from failover.planning.plan_description import stay_line
from failover.sites.site import GroupChoice, Site
from runtime.coordination.witness import WitnessPaths
from runtime.coordination.zookeeper import ZooKeeper

Counts: TypeAlias = Mapping[str, int]
"""By the names of groups."""
CountFollowers: TypeAlias = Callable[[Counts], Awaitable[Counts]]
"""Counts how many followers the groups with members have."""


async def count_followers(zookeeper: ZooKeeper, paths: WitnessPaths, members: Counts) -> Counts:
    """Return how many clients that follow the active site each group with members has."""
    followers: dict[str, int] = {}

    async def count(group: str) -> None:
        names = await zookeeper.children(paths.group(group))
        if names:
            followers[group] = len(names)

    async with trio.open_nursery() as nursery:
        for group, members_now in members.items():
            if members_now:
                nursery.start_soon(count, group)
    return followers


def plain_members(members: Counts, followers: Counts) -> dict[str, int]:
    """Return how many members of each group do not follow the active site, without groups of 0."""
    plain = {group: count - followers.get(group, 0) for group, count in members.items()}
    return {group: count for group, count in plain.items() if count > 0}


async def wait_plain_left(
    source: Site,
    groups: GroupChoice,
    count: CountFollowers,
    *,
    target: str,
    timeout_ms: int,
    is_insisted: bool,
) -> Counts:
    """Return the plain members that stay: none, unless somebody insists and knows that.

    Raises StepFailed after `timeout_ms`, naming a group and what to do; and NetworkFault.
    """

    async def stays() -> Counts:
        members = await source.members(groups)
        return plain_members(members, await count(members))

    plain = await stays()
    with trio.move_on_after(timeout_ms / 1000):
        while plain and not is_insisted:
            await trio.sleep(GROUPS_POLL_S)
            plain = await stays()
    if not plain or is_insisted:
        return plain
    first, *others = sorted(plain.items())
    more = f" ({len(others)} groups more)" if others else ""
    raise StepFailed(
        f"{stay_line(*first, target)}{more}; waited {timeout_ms / 1000:g} s, and {source.name} took"
        " writes all the while; --force promotes all the same, and what they commit then is lost"
    )


async def wait_left(
    source: Site,
    groups: GroupChoice,
    count: CountFollowers,
    *,
    plain: Counts,
    timeout_ms: int,
) -> Facts:
    """Return once no members are there that leave by themselves; after `timeout_ms` all the same.

    `plain` are the plain members that were known before the fence. A group that is not empty moves
    to the position that it has committed. Names take a quarter of GROUPS_BYTES. Raises
    NetworkFault.
    """
    members = await source.members(groups)
    at_first = sum(1 for number in members.values() if number)
    followers = await count(members)
    with trio.move_on_after(timeout_ms / 1000):
        while _awaited(members, followers, plain):
            await trio.sleep(GROUPS_POLL_S)
            members = await source.members(groups)
    staying = {name: number for name, number in members.items() if number}
    named = fitting(staying, GROUPS_BYTES // 4)
    return {
        "groups": len(members),
        "had_members": at_first,
        "still_members": named,
        "more_members": len(staying) - len(named),
    }


def _awaited(members: Counts, followers: Counts, plain: Counts) -> bool:
    """Tell whether a member is there that leaves by itself."""
    return any(
        group in followers and number > plain.get(group, 0) for group, number in members.items()
    )

# ruff: noqa: ARG001 - asking for the clock is what makes it jump
"""Members are waited for: plain consumers before the fence, followers of the site behind it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

import pytest
import trio
from trio.testing import MockClock

from failover.journal.execute import StepFailed
from failover.moving.groups import GROUPS_BYTES
from failover.moving.leaving import count_followers, plain_members, wait_left, wait_plain_left
from failover.sites.site import Site
from runtime.configuration.config import PatternSet
from runtime.coordination.witness import WitnessPaths
from runtime.coordination.zookeeper import ZooKeeper

GROUPS = PatternSet(include=(), exclude=())


@dataclass(slots=True)
class Groups:
    """Groups with members on a site, some of which follow the witness; each may leave some time."""

    members_now: dict[str, int]
    followers: dict[str, int] = field(default_factory=dict)
    leaving_s: dict[str, float] = field(default_factory=dict)
    name: str = "dc1"

    async def members(self, _: PatternSet) -> dict[str, int]:
        await trio.lowlevel.checkpoint()
        now = trio.current_time()
        gone = {group for group, at_s in self.leaving_s.items() if at_s <= now}
        return {group: 0 if group in gone else count for group, count in self.members_now.items()}

    async def count(self, _: Mapping[str, int]) -> Mapping[str, int]:
        await trio.lowlevel.checkpoint()
        return self.followers

    @property
    def site(self) -> Site:
        return cast("Site", self)


async def before_the_fence(groups: Groups, *, is_insisted: bool = False) -> Mapping[str, int]:
    return await wait_plain_left(
        groups.site,
        GROUPS,
        groups.count,
        target="dc2",
        timeout_ms=10_000,
        is_insisted=is_insisted,
    )


async def test_a_plain_consumer_that_stays_is_named_with_what_to_do_and_nothing_is_closed(
    autojump_clock: MockClock,
) -> None:
    groups = Groups({"billing": 2, "idle": 0, "stock": 1}, followers={"stock": 1})
    with pytest.raises(StepFailed) as refused:
        await before_the_fence(groups)
    assert str(refused.value) == (
        "group billing has 2 members that would stay: stop them, and start them on dc2 behind the"
        " promotion; waited 10 s, and dc1 took writes all the while; --force promotes all the same,"
        " and what they commit then is lost"
    )
    assert trio.current_time() >= 10


async def test_a_plain_consumer_that_leaves_in_time_is_waited_for(
    autojump_clock: MockClock,
) -> None:
    assert await before_the_fence(Groups({"billing": 2}, leaving_s={"billing": 4.0})) == {}
    assert 4 <= trio.current_time() < 5


async def test_who_insists_does_not_wait_and_knows_who_stays(autojump_clock: MockClock) -> None:
    groups = Groups({"billing": 3, "stock": 1}, followers={"billing": 1, "stock": 1})
    assert await before_the_fence(groups, is_insisted=True) == {"billing": 2}
    assert trio.current_time() < 1


async def test_members_that_follow_the_site_are_no_reason_to_wait_before_the_fence(
    autojump_clock: MockClock,
) -> None:
    assert await before_the_fence(Groups({"stock": 2}, followers={"stock": 2})) == {}
    assert trio.current_time() < 1


@pytest.mark.parametrize(
    ("followers", "plain", "waited_s"),
    [
        ({}, {}, 0.0),  # nobody of it leaves by itself
        ({"billing": 1}, {}, 5.0),
        ({"billing": 1}, {"billing": 2}, 0.0),  # all but those that stay have left
        ({"billing": 1}, {"billing": 1}, 5.0),
    ],
)
async def test_behind_the_fence_only_those_are_waited_for_that_leave_by_themselves(
    followers: dict[str, int],
    plain: dict[str, int],
    waited_s: float,
    autojump_clock: MockClock,
) -> None:
    groups = Groups({"billing": 2}, followers)
    facts = await wait_left(groups.site, GROUPS, groups.count, plain=plain, timeout_ms=5_000)
    assert round(trio.current_time(), 1) == waited_s
    assert facts == {
        "groups": 1,
        "had_members": 1,
        "still_members": {"billing": 2},
        "more_members": 0,
    }


async def test_of_the_groups_that_stay_some_are_named_and_all_are_counted() -> None:
    count = 20_000
    groups = Groups({f"group-{number}-of-an-application": 1 for number in range(count)})
    facts = await wait_left(groups.site, GROUPS, groups.count, plain={}, timeout_ms=100)
    named, more = facts["still_members"], facts["more_members"]
    assert isinstance(named, dict)
    assert named
    assert len(named) + cast("int", more) == count
    assert len(json.dumps(facts)) < GROUPS_BYTES / 2


def test_a_group_of_which_only_the_state_tells_that_it_has_members_may_follow_with_several() -> (
    None
):
    assert plain_members({"streams": 1, "plain": 1}, {"streams": 3}) == {"plain": 1}


async def test_followers_are_the_clients_with_a_node_of_their_group() -> None:
    class Witness:
        async def children(self, path: str) -> list[str] | None:
            await trio.lowlevel.checkpoint()
            return {"/r/groups/a%2Fb": ["x", "y"], "/r/groups/left": ["z"]}.get(path)

    found = await count_followers(
        cast("ZooKeeper", Witness()), WitnessPaths(root="/r"), {"a/b": 2, "left": 0, "plain": 1}
    )
    assert found == {"a/b": 2}

# ruff: noqa: ARG001 - asking for the clock is what makes it jump
"""What a look at both sites takes, and what it must not take for silence."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import cast

import pytest
import trio
from trio.testing import MockClock

import failover.view.snapshot
from failover.planning.plan import SiteView
from failover.sites.fence import Fence
from failover.sites.opening import Ends
from failover.sites.site import LogUnavailable, Site, SiteUnclear
from failover.view.snapshot import (
    MAP_TIMEOUT_S,
    Mirrored,
    _look_ahead,
    _others_closed,
    _read_mirrored,
)
from runtime.configuration.config import FlowConfig, PatternSet
from runtime.configuration.flow_section import AclSync
from tests.doubles.fake_rights import FakeRights
from tests.doubles.map_writers import MemoryWriters
from tests.failover.plans import FLOW
from tests.mirror.two_fakes import two_fakes
from wire.net import Cluster, NetworkFault
from wire.net.errors import RequestTimedOut
from wire.net.rights import DENY, READ, Right
from wire.topic_partition import TopicPartition


class SlowMap:
    """A map that takes its time."""

    takes_s = 0.0
    fault: NetworkFault | None = None
    partitions = (("orders", 0), ("orders", 1))
    unbelieved = None

    def __init__(self, *_: object, topic_set: str | None) -> None:
        pass

    async def refresh(self, _: Iterable[TopicPartition] | None = None) -> None:
        await trio.sleep(self.takes_s)
        if self.fault is not None:
            raise self.fault

    def mirrored_end(self, partition: TopicPartition) -> int | None:
        return 7 if partition == ("orders", 0) else None


ORDERS_ALONE = replace(FLOW, topics=PatternSet(include=(re.compile("orders"),), exclude=()))
AWAY = SiteView(name="dc1", fault="refused", ends={}, groups={})


class Flow:
    source = "dc1"
    topic_set = None
    mirrors = ORDERS_ALONE.mirrors


async def reached(
    patch: pytest.MonkeyPatch, takes_s: float, fault: NetworkFault | None
) -> Mapping[TopicPartition, int]:
    return (await seen(patch, takes_s, fault)).ends


async def seen(patch: pytest.MonkeyPatch, takes_s: float, fault: NetworkFault | None) -> Mirrored:
    patch.setattr(SlowMap, "takes_s", takes_s)
    patch.setattr(SlowMap, "fault", fault)
    patch.setattr(failover.view.snapshot, "MapFollower", SlowMap)
    site = cast("Site", None)
    ends = Ends(flow=cast("FlowConfig", Flow()), source=site, target=site)
    return await _read_mirrored(ends, AWAY, MemoryWriters())


async def test_a_map_of_many_holes_may_take_longer_than_a_site_that_answers(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    assert await reached(monkeypatch, MAP_TIMEOUT_S - 1, None) == {("orders", 0): 7}
    assert await reached(monkeypatch, MAP_TIMEOUT_S + 1, None) == {}


async def test_of_a_target_that_stops_answering_nothing_is_known(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    assert await reached(monkeypatch, 1, RequestTimedOut("gone")) == {}


@pytest.mark.parametrize(
    ("fault", "refused"),
    [
        (SiteUnclear("dc2 map: begins at offset 1"), "dc2 map: begins at offset 1"),
        (LogUnavailable("dc2 map-0: LEADER_NOT_AVAILABLE"), None),
        (RequestTimedOut("gone"), None),
    ],
)
async def test_a_map_of_which_nothing_is_believed_is_told_before_a_promotion_begins(
    monkeypatch: pytest.MonkeyPatch, fault: NetworkFault, refused: str | None
) -> None:
    assert (await seen(monkeypatch, 0, fault)).refused == refused


def always(_: str) -> bool:
    return True


@pytest.mark.parametrize(
    ("closed", "named"),
    [
        (("orders",), None),
        (("orders", "theirs"), "dc1 is closed for writes to theirs as well"),
        (tuple("bcdefgh"), "dc1 is closed for writes to b, c, d, e, f, and 2 more as well"),
        ((), None),
    ],
)
async def test_what_another_pair_has_closed_on_a_shared_cluster_is_named(
    monkeypatch: pytest.MonkeyPatch, closed: tuple[str, ...], named: str | None
) -> None:
    async def read_fence(_: object) -> Fence:
        return Fence(topics=closed)

    monkeypatch.setattr(failover.view.snapshot, "read_fence", read_fence)
    site = Site(name="dc1", cluster=cast("Cluster", None))
    there = replace(AWAY, fault=None)
    said = await _others_closed(site, {"dc1": there}, ORDERS_ALONE, has=always)
    assert (said or "").startswith(named or "")
    assert (said is None) == (named is None)
    assert await _others_closed(site, {"dc1": AWAY}, ORDERS_ALONE, has=always) is None
    nothing = await _others_closed(site, {"dc1": there}, ORDERS_ALONE, has=lambda _: False)
    assert nothing is None


async def test_a_look_names_what_the_target_does_not_get_of_the_sources_rules() -> None:
    nobody = Right(name="orders", principal="User:*", host="*", operation=READ, permission=DENY)
    async with two_fakes() as (dc1, dc2, links):
        FakeRights(dc1, nobody)
        FakeRights(dc2)
        ends = Ends(
            flow=replace(FLOW, acls=AclSync.DOWNGRADED),
            source=Site(name="dc1", cluster=links.source_admin),
            target=Site(name="dc2", cluster=links.target_admin),
        )
        view = SiteView(name="dc1", fault=None, ends={TopicPartition("orders", 0): 5}, groups={})
        outlook = await _look_ahead(ends, {"dc1": view, "dc2": replace(view, name="dc2")})
    assert outlook is not None
    assert outlook.withheld == (nobody,)
    said = "dc2 does not get the DENY of READ to User:* of topic orders: it would shut out the mir"
    assert any(line.startswith(said) for line in outlook.lines())

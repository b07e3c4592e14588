"""Topics that one direction moves and the other leaves out."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

import failover.sites.one_way_topics
from failover.sites.fence import Fence
from failover.sites.one_way_topics import find_one_way_topics
from failover.sites.opening import Ends
from failover.sites.site import Site
from runtime.configuration.config import FlowConfig, PatternSet
from tests.failover.plans import FLOW
from tests.mirror.two_fakes import two_fakes
from wire.net import Cluster, RequestTimedOut


def moving(source: str, target: str, pattern: str) -> FlowConfig:
    topics = PatternSet(include=(re.compile(pattern),), exclude=())
    return replace(FLOW, source=source, target=target, topics=topics)


HOME = moving("dc2", "dc1", "clicks")
OUT = moving("dc1", "dc2", "orders|clicks|gone")


@contextmanager
def closed(patch: pytest.MonkeyPatch, *topics: str) -> Iterator[None]:
    async def read_fence(_: object) -> Fence:
        return Fence(topics=topics)

    with patch.context() as patched:
        patched.setattr(failover.sites.one_way_topics, "read_fence", read_fence)
        yield


async def found(
    back: FlowConfig | None, *, has: str = "", is_source_there: bool
) -> tuple[str, ...] | None:
    async with two_fakes() as (dc2, _, links):
        for topic in ("clicks", "orders", "theirs"):
            dc2.create_topic(topic, 0)
        ends = Ends(
            flow=HOME,
            source=Site(name="dc2", cluster=links.source_admin),
            target=Site(name="dc1", cluster=links.target_admin),
        )
        return await find_one_way_topics(
            ends, back, has=lambda topic: has in topic, is_source_there=is_source_there
        )


async def test_what_the_flow_home_leaves_out_of_a_closed_site_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with closed(monkeypatch, "clicks", "gone", "orders", "theirs"):
        assert await found(OUT, is_source_there=True) == ("orders",)
        assert await found(OUT, is_source_there=False) == ("gone", "orders")
        assert await found(OUT, has="of another set", is_source_there=True) == ()


async def test_without_a_flow_out_nothing_of_this_pair_has_closed_the_site(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with closed(monkeypatch, "clicks", "orders"):
        assert await found(None, is_source_there=True) == ()
        assert await found(replace(OUT, is_active_active=True), is_source_there=True) == ()


async def test_of_a_target_that_does_not_tell_its_fence_nothing_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def read_fence(_: Cluster) -> Fence:
        raise RequestTimedOut("gone")

    monkeypatch.setattr(failover.sites.one_way_topics, "read_fence", read_fence)
    assert await found(OUT, is_source_there=True) is None

# ruff: noqa: ARG001 - asking for the clock is what makes it jump
"""What a look at both sites takes, and what it must not take for silence."""

from collections.abc import Iterable
from typing import cast

import pytest
import trio
from trio.testing import MockClock

import failover.view.snapshot
from failover.planning.plan import SiteView
from failover.sites.site import Site
from failover.view.snapshot import MAP_TIMEOUT_S, Ends, _read_mirrored
from runtime.configuration.config import FlowConfig
from tests.doubles.map_writers import MemoryWriters
from wire.net import NetworkFault
from wire.net.errors import RequestTimedOut
from wire.topic_partition import TopicPartition


class SlowMap:
    """A map that takes its time."""

    takes_s = 0.0
    fault: NetworkFault | None = None
    partitions = (("orders", 0), ("orders", 1))

    def __init__(self, *_: object) -> None:
        pass

    async def refresh(self, _: Iterable[TopicPartition] | None = None) -> None:
        await trio.sleep(self.takes_s)
        if self.fault is not None:
            raise self.fault

    def mirrored_end(self, partition: TopicPartition) -> int | None:
        return 7 if partition == ("orders", 0) else None


AWAY = SiteView(name="dc1", fault="refused", ends={}, groups={})


class Flow:
    source = "dc1"


async def reached(patch: pytest.MonkeyPatch, takes_s: float, fault: NetworkFault | None) -> object:
    patch.setattr(SlowMap, "takes_s", takes_s)
    patch.setattr(SlowMap, "fault", fault)
    patch.setattr(failover.view.snapshot, "MapFollower", SlowMap)
    site = cast("Site", None)
    ends = Ends(flow=cast("FlowConfig", Flow()), source=site, target=site)
    return (await _read_mirrored(ends, AWAY, MemoryWriters())).ends


async def test_a_map_of_many_holes_may_take_longer_than_a_site_that_answers(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    assert await reached(monkeypatch, MAP_TIMEOUT_S - 1, None) == {("orders", 0): 7}
    assert await reached(monkeypatch, MAP_TIMEOUT_S + 1, None) == {}


async def test_of_a_target_that_stops_answering_nothing_is_known(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    assert await reached(monkeypatch, 1, RequestTimedOut("gone")) == {}

"""No promotion waits for what only somebody's decision lets go on."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from typing import cast

import pytest
import trio
from trio.testing import MockClock

from failover.journal.execute import StepFailed
from failover.moving.drain import SourceLogs, wait_close_behind, wait_drained
from failover.moving.flow import FlowControl
from failover.moving.standstill import find_standstill
from failover.sites.map_follower import MapFollower
from failover.sites.site import Site
from runtime.coordination.standstill import TELL_WITHIN_S, Standstill
from runtime.coordination.witness import WitnessPaths
from runtime.coordination.zookeeper import ZooKeeper
from tests.doubles.fake_cluster import FakeCluster, run_fake_cluster
from tests.doubles.map_writers import MemoryWriters
from tests.doubles.memory_nodes import MemoryNodes
from tests.failover.plans import FLOW
from tests.failover.standing import standing, watch_of
from wire.net import open_cluster
from wire.topic_partition import TopicPartition

ORDERS = TopicPartition("orders", 0)
TOLD = "orders-0 stands still: target diverged: why; `mirror restart x` (1 of 1 partitions)"


async def test_what_stood_still_for_as_long_as_workers_take_to_tell_is_named(
    autojump_clock: MockClock,
) -> None:
    async def look(_: Collection[TopicPartition]) -> Mapping[TopicPartition, Standstill]:
        return standing(ORDERS)

    assert await find_standstill(look, [ORDERS]) == TOLD
    assert autojump_clock.current_time() == TELL_WITHIN_S


async def test_what_was_told_to_go_on_just_now_holds_nothing_up(
    autojump_clock: MockClock,
) -> None:
    async def look(_: Collection[TopicPartition]) -> Mapping[TopicPartition, Standstill]:
        return standing(ORDERS) if autojump_clock.current_time() < 1 else {}

    assert await find_standstill(look, [ORDERS]) is None
    assert autojump_clock.current_time() == 1


async def test_where_nothing_stands_still_nothing_is_waited_for(
    autojump_clock: MockClock,
) -> None:
    async def look(_: Collection[TopicPartition]) -> Mapping[TopicPartition, Standstill]:
        return {}

    assert await find_standstill(look, [ORDERS]) is None
    assert autojump_clock.current_time() == 0


class Nodes(MemoryNodes):
    """A witness whose workers are these nodes."""

    async def children(self, path: str) -> list[str]:
        return [one.rpartition("/")[2] for one in self.nodes if one.startswith(f"{path}/")]


@pytest.mark.parametrize(
    ("node", "remedy"),
    [("orders", "delete the node"), ("workers/1", "start the mirror anew that wrote it")],
)
async def test_a_node_that_is_not_understood_may_tell_of_each_partition(
    node: str, remedy: str
) -> None:
    """A paused partition would hold the drain up, and the source be closed for as long."""
    nodes, paths = Nodes(), WitnessPaths(root="/dr")
    where = f"/dr/mirror/dc1-dc2/{node}"
    nodes.nodes[where] = (b"{garbage", 0)
    control = FlowControl(cast("ZooKeeper", nodes), paths, FLOW)
    found = await control.standing([ORDERS])
    assert found[ORDERS].remedy.startswith(remedy)
    assert where in str(found[ORDERS])
    del nodes.nodes[where]
    assert await control.standing([ORDERS]) == {}


def two_records(cluster: FakeCluster) -> None:
    cluster.create_topic("orders", 0).partitions[0].end = 2


@pytest.mark.parametrize("is_closed", [False, True], ids=["before the fence", "behind it"])
async def test_a_wait_ends_at_once_where_a_partition_stands_still(*, is_closed: bool) -> None:
    async with run_fake_cluster() as dc1, run_fake_cluster() as dc2:
        two_records(dc1)
        dc2.create_topic("orders", 0)
        async with (
            open_cluster(dc1.bootstrap, client_id="failover") as here,
            open_cluster(dc2.bootstrap, client_id="failover") as there,
        ):
            site = Site(name="dc1", cluster=here)
            follower = MapFollower(Site(name="dc2", cluster=there), "dc1", MemoryWriters())
            logs = SourceLogs(starts={ORDERS: 0}, ends={ORDERS: 2})
            waits: dict[bool, Callable[..., Awaitable[object]]] = {
                False: partial(wait_close_behind, site, (ORDERS,), max_lag=100),
                True: partial(wait_drained, site, logs),
            }
            wait = waits[is_closed]
            with trio.fail_after(10), pytest.raises(StepFailed) as failed:
                await wait(follower=follower, standstills=watch_of(ORDERS), timeout_ms=60_000)
    assert str(failed.value) == TOLD


async def test_a_topic_that_the_target_lacks_is_waited_for_before_the_source_is_closed() -> None:
    async with run_fake_cluster() as dc1, run_fake_cluster() as dc2:
        dc1.create_topic("orders", 0)
        async with (
            open_cluster(dc1.bootstrap, client_id="failover") as here,
            open_cluster(dc2.bootstrap, client_id="failover") as there,
        ):
            site = Site(name="dc1", cluster=here)
            follower = MapFollower(Site(name="dc2", cluster=there), "dc1", MemoryWriters())
            waiting = wait_close_behind(
                site, (ORDERS,), follower, watch_of(), max_lag=100, timeout_ms=300
            )
            with pytest.raises(StepFailed, match=r"^orders-0 was not made on dc2 within 0.3 s"):
                await waiting

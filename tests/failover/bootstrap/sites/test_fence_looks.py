"""What an endpoint sees of a fence by rights, and what it says where it may not look."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from failover.bootstrap.sites.fence_looks import FenceLooks
from failover.sites.fence import Fence, set_fence
from runtime.configuration.config import load
from runtime.rights.closing import barring, closing
from tests.dc_yaml import dc_yaml, flow
from tests.doubles.fake_cluster import run_fake_cluster
from tests.doubles.fake_rights import FakeRights
from wire.errors import ErrorCode
from wire.messages.describe_acls import DescribeAclsRequest
from wire.net import Cluster, open_cluster
from wire.net.rights import Right

FENCE = Fence(topics=("orders", "payments"), allowed_clients=("mirror",), bars=frozenset())
CLOSED = frozenset({closing("orders"), closing("payments")})


@asynccontextmanager
async def looks(
    folder: Path, brokers: int = 1, topic_set: str | None = None
) -> AsyncIterator[tuple[FenceLooks, Cluster, FakeRights, list[int]]]:
    """What looks at dc1, which has an authorizer; the brokers that were asked are listed."""
    sets = {"sets": {"paying": {"topics": ["payments"]}}} if topic_set else {}
    file = folder / "dc.yaml"
    file.write_text(dc_yaml(flow("dc1", "dc2", ".*"), failover={"initial_active": "dc1", **sets}))
    configuration = load(file)
    asked: list[int] = []
    async with run_fake_cluster(brokers) as fake:
        rights = FakeRights(fake)
        for broker in fake.brokers.values():
            describe = broker.scripts[DescribeAclsRequest.API_KEY]

            async def noted(
                *said: object, node: int = broker.node_id, by: object = describe
            ) -> object:
                asked.append(node)
                return await by(*said)  # type: ignore[operator]

            broker.scripts[DescribeAclsRequest.API_KEY] = noted
        async with open_cluster(fake.bootstrap, client_id="endpoint") as cluster:
            own = configuration.of_set(topic_set) if topic_set else configuration
            yield FenceLooks(own, {"dc1": cluster}), cluster, rights, asked


async def test_a_fence_is_seen_while_any_broker_goes_by_it(tmp_path: Path) -> None:
    async with looks(tmp_path, brokers=2) as (seen, cluster, rights, _):
        assert await seen.closed("dc1") == frozenset()
        await set_fence(cluster, FENCE)
        assert await seen.closed("dc1") == CLOSED
        rights.deaf[1] = set(rights.rights)
        await set_fence(cluster, Fence())
        assert await seen.closed("dc1") == CLOSED
        del rights.deaf[1]
        assert await seen.closed("dc1") == frozenset()


async def test_what_somebody_else_denies_is_no_fence(tmp_path: Path) -> None:
    async with looks(tmp_path) as (seen, _, rights, _):
        rights.rights |= {closing("orders"), barring("orders")}
        assert await seen.closed("dc1") == frozenset()


async def test_topics_that_another_set_has_closed_are_not_seen(tmp_path: Path) -> None:
    async with looks(tmp_path, topic_set="paying") as (seen, cluster, _, _):
        await set_fence(cluster, FENCE)
        assert await seen.closed("dc1") == frozenset({closing("payments")})


async def test_where_it_may_not_look_it_says_what_it_needs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with looks(tmp_path) as (seen, _, rights, _):
        rights.error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert await seen.closed("dc1") is None
        assert "this program's user needs DESCRIBE on the cluster" in caplog.text
        rights.error = ErrorCode.SECURITY_DISABLED
        assert await seen.closed("dc1") == frozenset()


async def test_all_who_wait_are_served_by_the_next_look(tmp_path: Path) -> None:
    found: list[frozenset[Right] | None] = []
    async with looks(tmp_path) as (seen, _, _, asked):

        async def look() -> None:
            found.append(await seen.closed("dc1"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(look)
            while not asked:
                await trio.lowlevel.checkpoint()
            for _ in range(19):
                nursery.start_soon(look)
        assert found == [frozenset()] * 20
        assert len(asked) == 2, "one that was under way, and the next"

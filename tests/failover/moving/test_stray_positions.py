"""Groups that stand behind the end of a target's log, behind a source that was lost."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from failover.moving.stray_positions import pull_back_stray
from failover.sites.site import Site
from tests.doubles.fake_cluster import FakeCluster, run_fake_cluster
from tests.mirror.whole_flow import EVERYTHING
from wire.errors import ErrorCode
from wire.headers import RequestHeader
from wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from wire.net import open_cluster
from wire.topic_partition import TopicPartition

ORDERS, OTHERS = TopicPartition("orders", 0), TopicPartition("others", 0)
ENDS = {ORDERS: 10}


@asynccontextmanager
async def target() -> AsyncIterator[tuple[FakeCluster, Site]]:
    async with run_fake_cluster() as fake:
        for topic, _ in (ORDERS, OTHERS):
            fake.create_topic(topic, 0).partitions[0].end = 10
        async with open_cluster(fake.bootstrap, client_id="failover") as cluster:
            yield fake, Site(name="dc2", cluster=cluster)


@pytest.mark.parametrize(("stood", "stands"), [(11, 10), (10**6, 10), (10, 10), (7, 7)])
async def test_a_group_behind_the_end_of_a_log_goes_on_at_the_end(stood: int, stands: int) -> None:
    async with target() as (fake, site):
        fake.offsets["g"] = {ORDERS: stood, OTHERS: 99}
        found: Any = await pull_back_stray(site, EVERYTHING, ENDS)
        assert fake.offsets["g"] == {ORDERS: stands, OTHERS: 99}
        assert [*found["stray"]] == (["g"] if stood != stands else [])
        if stood != stands:
            assert f"it stood at {stood} in orders-0, which ends at 10" in found["stray"]["g"]


async def test_a_site_that_does_not_tell_its_groups_holds_no_disaster_up() -> None:
    async def refuse(_: RequestHeader, __: ListGroupsRequest) -> ListGroupsResponse:
        return ListGroupsResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED, groups=())

    async with target() as (fake, site):
        fake.brokers[0].scripts[ListGroupsRequest.API_KEY] = refuse
        found = await pull_back_stray(site, EVERYTHING, ENDS)
    assert "GROUP_AUTHORIZATION_FAILED" in str(found["stray_unknown"])

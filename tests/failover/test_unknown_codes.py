"""Codes of brokers to come, which have no name in this version, are answers like any other."""

import pytest

from failover.sites.map_follower import MapFollower
from failover.sites.probe import probe
from failover.sites.site import SiteUnclear
from tests.doubles.fake_cluster import FakeCluster
from tests.doubles.map_writers import MemoryWriters
from tests.failover.maps import MAP, ORDERS, target_with_a_map
from wire.errors import ErrorCode
from wire.headers import RequestHeader
from wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)

NAMELESS = 999


def refuse_with(cluster: FakeCluster, code: int) -> None:
    async def produce(_: RequestHeader, request: ProduceRequest) -> ProduceResponse:
        refused = PartitionProduceResponse(index=0, error_code=code, base_offset=-1)
        [topic] = request.topic_data
        named = TopicProduceResponse(name=topic.name, partition_responses=(refused,))
        return ProduceResponse(responses=(named,))

    cluster.brokers[0].scripts[ProduceRequest.API_KEY] = produce


async def test_a_seal_refused_with_a_code_without_a_name_is_unclear() -> None:
    async with target_with_a_map(7) as (cluster, site):
        refuse_with(cluster, NAMELESS)
        with pytest.raises(SiteUnclear, match=f"^dc2 {MAP}-0: error {NAMELESS}$"):
            await MapFollower(site, "dc1", MemoryWriters()).seal({ORDERS: (7, 7)})


async def test_a_probe_answered_with_a_code_without_a_name_tells_no_fence() -> None:
    async with target_with_a_map(7) as (cluster, site):
        refuse_with(cluster, NAMELESS)
        assert await probe(site.cluster, [ORDERS]) == {ORDERS: ErrorCode.UNKNOWN_SERVER_ERROR}

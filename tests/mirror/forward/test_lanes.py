"""Over how many connections a broker is spoken to."""

from uuid import UUID

import pytest
import trio
from trio.testing import MockClock

from mirror.forward.lanes import (
    MAX_LANES,
    Lane,
    lane_of,
    lanes_for,
    lanes_to_broker,
    measure_round_trip,
)
from mirror.state.partition import MirroredPartition
from offset_translation.offset_map import OffsetMap
from tests.doubles.fake_cluster import FakeBroker, FakeCluster
from tests.doubles.memory_transport import memory_transport
from wire.headers import RequestHeader
from wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from wire.net.connecting import ConnectionSettings, connect
from wire.net.transport import Address, Transport

WHOLE, EACH = 64 << 20, 8 << 20


def partition(topic: str, index: int) -> MirroredPartition:
    return MirroredPartition(topic, index, topic_id=UUID(int=1), offset_map=OffsetMap(), now_ms=0)


@pytest.mark.parametrize(
    ("round_trip_s", "lanes"), [(0.0, 1), (0.029, 1), (0.045, 5), (0.08, 8), (9.0, MAX_LANES)]
)
def test_a_longer_way_takes_more_connections(round_trip_s: float, lanes: int) -> None:
    assert lanes_for(round_trip_s) == lanes


def test_every_partition_goes_exactly_one_lane_and_a_topic_is_spread_over_all() -> None:
    lanes = lanes_to_broker(4)
    for index in range(12):
        one = partition("orders", index)
        assert [lane.number for lane in lanes if lane.carries(one)] == [lane_of(one, 4)]
    assert {lane_of(partition("orders", index), 4) for index in range(4)} == set(range(4))
    assert Lane().carries(partition("orders", 7))


def test_what_lanes_ask_for_goes_by_how_many_of_their_partitions_are_behind() -> None:
    lanes, behind = lanes_to_broker(8), [2, 2, 2, 2, 1, 1, 1, 1]
    for one, many in zip(lanes, behind, strict=True):
        one.share(many, WHOLE, EACH)
    shares = [one.share(many, WHOLE, EACH) for one, many in zip(lanes, behind, strict=True)]
    assert {(most // many, each) for (most, each), many in zip(shares, behind, strict=True)} == {
        (WHOLE // 12, WHOLE // 12)
    }
    assert sum(most for most, _ in shares) <= WHOLE


def test_a_lane_with_nothing_behind_asks_as_if_one_were_and_takes_no_more_from_the_others() -> None:
    busy, *idle = lanes_to_broker(4)
    for one in idle:
        assert one.share(0, WHOLE, EACH) == (WHOLE // 4, EACH)
    assert busy.share(5, WHOLE, EACH) == (WHOLE * 5 // 8, WHOLE // 8)
    assert idle[0].share(0, WHOLE, EACH) == (WHOLE // 8, WHOLE // 8)


@pytest.mark.parametrize(
    ("waits", "round_trip_s", "asked"),
    [
        ([0.5, 0.02, 0.3, 0.4], 0.02, 4),
        ([0.5, 0.08, 0.3, 0.4, 0.09, 0.6, 0.08, 0.5], 0.08, 8),
        ([0.5, 0.2, 0.3, 0.4, 0.09, 0.001], 0.001, 6),
    ],
    ids=["near", "far", "near, seen from a busy start"],
)
async def test_the_round_trip_is_that_of_the_quickest_answer(
    autojump_clock: MockClock, waits: list[float], round_trip_s: float, asked: int
) -> None:
    cluster = FakeCluster()
    cluster.brokers[0] = broker = FakeBroker(cluster, 0)
    transport, far_end = memory_transport()
    to_come = [0.0, *waits]  # the first is asked for as it connects

    async def slowly(_: RequestHeader, __: ApiVersionsRequest) -> ApiVersionsResponse:
        await trio.sleep(to_come.pop(0))
        keys = (ApiVersion(api_key=18, min_version=0, max_version=3),)
        return ApiVersionsResponse(error_code=0, api_keys=keys)

    async def dial(_: Address) -> Transport:
        return transport

    broker.scripts[ApiVersionsRequest.API_KEY] = slowly
    async with trio.open_nursery() as nursery:
        nursery.start_soon(broker.serve, far_end)
        settings = ConnectionSettings(client_id="test", dial=dial)
        connection = await connect(nursery, ("memory", 0), settings)
        assert await measure_round_trip(connection) == pytest.approx(round_trip_s)
        assert len(waits) - len(to_come) == asked
        nursery.cancel_scope.cancel()
    assert autojump_clock.current_time() > 0

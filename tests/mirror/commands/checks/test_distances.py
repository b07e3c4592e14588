"""What `mirror check` says of brokers that are far away."""

from typing import Any

import pytest
import trio

from mirror.commands.checks.distances import (
    RECEIVE,
    SEND,
    Distance,
    measure_distances,
    told_distances,
)
from mirror.forward.lanes import NEAR_S
from tests.doubles.fake_cluster import run_fake_cluster
from wire.errors import ErrorCode
from wire.headers import RequestHeader
from wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from wire.net import open_cluster

KAFKAS = 100 * 1024


def distance(round_trip_s: float, **buffers: int) -> Distance:
    by_setting = {SEND: buffers.get("send", -1), RECEIVE: buffers.get("receive", -1)}
    return Distance(node=1, round_trip_s=round_trip_s, buffers=by_setting)


def test_nothing_is_said_of_brokers_nearby() -> None:
    assert told_distances("dc1", [distance(NEAR_S, send=KAFKAS)], SEND) == []


def test_a_far_broker_whose_buffer_is_small_is_warned_of() -> None:
    far = distance(0.08, send=KAFKAS, receive=KAFKAS)
    [told] = told_distances("dc1", [far], SEND)
    assert told.startswith(f"warning: dc1: broker 1 is 80 ms away: its {SEND}=102400 lets about 20")
    assert "about 10 MB/s" in told_distances("dc2", [far], RECEIVE)[0]


@pytest.mark.parametrize("send", [-1, 4 * 1024 * 1024])
def test_a_far_broker_whose_buffer_is_no_limit_is_only_named(send: int) -> None:
    told = told_distances("dc1", [distance(0.08, send=send)], SEND)
    assert told == ["dc1: broker 1 is 80 ms away"]


def test_what_a_broker_would_not_say_is_no_limit() -> None:
    [told] = told_distances("dc1", [Distance(node=1, round_trip_s=0.05, buffers={})], SEND)
    assert told == "dc1: broker 1 is 50 ms away"


@pytest.mark.parametrize(
    ("code", "buffers"),
    [(ErrorCode.NONE, {SEND: KAFKAS}), (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, {})],
)
async def test_only_a_far_broker_is_asked_for_its_buffers(
    code: ErrorCode, buffers: dict[str, int]
) -> None:
    async def slowly(_: RequestHeader, __: Any) -> ApiVersionsResponse:
        await trio.sleep(NEAR_S * 1.5)
        spoken = {**kafka.versions, DescribeConfigsRequest.API_KEY: range(1, 5)}
        return ApiVersionsResponse(
            error_code=0,
            api_keys=tuple(
                ApiVersion(api_key=key, min_version=versions.start, max_version=versions.stop - 1)
                for key, versions in spoken.items()
            ),
        )

    async def settings(_: RequestHeader, asked: DescribeConfigsRequest) -> DescribeConfigsResponse:
        [resource] = asked.resources
        found = {SEND: str(KAFKAS), "num.io.threads": "8"} if code is ErrorCode.NONE else {}
        configs = tuple(
            DescribeConfigsResourceResult(
                name=name, value=value, read_only=True, is_sensitive=False
            )
            for name, value in found.items()
        )
        one = DescribeConfigsResult(
            error_code=code,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            configs=configs,
        )
        return DescribeConfigsResponse(results=(one,))

    async with run_fake_cluster(2) as kafka:
        near, far = kafka.brokers.values()
        far.scripts[ApiVersionsRequest.API_KEY] = slowly
        far.scripts[DescribeConfigsRequest.API_KEY] = settings
        async with open_cluster(kafka.bootstrap, client_id="test") as cluster:
            found = await measure_distances(cluster, [near.node_id, far.node_id])
        assert [dict(one.buffers) for one in found] == [{}, buffers]
        assert found[0].round_trip_s < NEAR_S < found[1].round_trip_s
        described = DescribeConfigsRequest.API_KEY
        assert not any(header.api_key == described for header, _ in near.asked)

"""Brokers that cannot be reached, or are none."""

from functools import partial

import pytest
import trio

from tests.doubles.fake_cluster import run_fake_cluster
from wire.headers import RequestHeader
from wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from wire.net.connecting import ConnectionSettings, connect
from wire.net.errors import BrokerUnreachable

SETTINGS = ConnectionSettings(client_id="test")


async def test_nobody_listening_is_unreachable() -> None:
    async with run_fake_cluster() as cluster:
        address = cluster.brokers[0].address
    async with trio.open_nursery() as nursery:
        with pytest.raises(BrokerUnreachable, match=f"{address[0]}:{address[1]}"):
            await connect(nursery, address, SETTINGS)


async def test_a_host_without_a_name_is_unreachable() -> None:
    async with trio.open_nursery() as nursery:
        with pytest.raises(BrokerUnreachable, match=r"no-such-host\.invalid:9092"):
            await connect(nursery, ("no-such-host.invalid", 9092), SETTINGS)


async def test_a_refused_handshake_is_unreachable_and_leaves_no_connection() -> None:
    async with run_fake_cluster() as cluster, trio.open_nursery() as nursery:
        broker = cluster.brokers[0]

        async def refuse(_: RequestHeader, __: object) -> ApiVersionsResponse:
            api = ApiVersion(api_key=3, min_version=0, max_version=1)
            return ApiVersionsResponse(error_code=58, api_keys=(api,))

        broker.scripts[18] = refuse
        with pytest.raises(BrokerUnreachable, match="ApiVersions: error 58"):
            await connect(nursery, broker.address, SETTINGS)


async def test_a_peer_that_is_no_broker_is_unreachable() -> None:
    async def greet(stream: trio.SocketStream) -> None:
        await stream.send_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await stream.receive_some()

    async with trio.open_nursery() as nursery:
        serve = partial(trio.serve_tcp, greet, 0, host="127.0.0.1")
        (listener,) = await nursery.start(serve)
        port = listener.socket.getsockname()[1]
        with pytest.raises(BrokerUnreachable, match="a frame of 1213486160 bytes"):
            await connect(nursery, ("127.0.0.1", port), SETTINGS)
        nursery.cancel_scope.cancel()

"""A fake broker behind TLS."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import trio

from tests.doubles.fake_cluster import FakeBroker, FakeCluster


@asynccontextmanager
async def broker_behind(context: ssl.SSLContext) -> AsyncIterator[FakeBroker]:
    """Run a fake broker behind TLS."""
    cluster = FakeCluster()
    broker = cluster.brokers[0] = FakeBroker(cluster, 0)

    async def serve(stream: trio.SSLStream[trio.SocketStream]) -> None:
        try:
            await stream.do_handshake()
        except trio.BrokenResourceError:
            return
        await broker.serve(stream)

    async with trio.open_nursery() as nursery:
        start = partial(trio.serve_ssl_over_tcp, serve, 0, context, host="127.0.0.1")
        (listener,) = await nursery.start(start)
        broker.address = listener.transport_listener.socket.getsockname()
        yield broker
        nursery.cancel_scope.cancel()

"""A pool of connections to a broker in memory that asks for SASL."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from tests.doubles.fake_cluster import FakeBroker, FakeCluster
from tests.doubles.memory_transport import memory_transport
from tests.doubles.sasl_broker import SaslScripts
from wire.messages.metadata import MetadataRequest
from wire.net.connecting import ConnectionSettings
from wire.net.pool import ConnectionPool
from wire.net.security import AnySasl
from wire.net.transport import Address, Transport

PLACE: Address = ("memory", 1)
METADATA = MetadataRequest(topics=())


@asynccontextmanager
async def pool_with(
    sasl: AnySasl, scripts: SaslScripts
) -> AsyncIterator[tuple[ConnectionPool, FakeBroker]]:
    """Give a pool whose only broker asks for SASL."""
    cluster = FakeCluster()
    broker = cluster.brokers[0] = FakeBroker(cluster, 0)
    scripts.install(broker)
    async with trio.open_nursery() as nursery:

        async def dial(_: Address) -> Transport:
            transport, far_end = memory_transport()
            nursery.start_soon(broker.serve, far_end)
            return transport

        settings = ConnectionSettings(client_id="test", cluster_name="dc2", sasl=sasl, dial=dial)
        yield ConnectionPool(nursery, settings), broker
        nursery.cancel_scope.cancel()

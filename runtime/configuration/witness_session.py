"""A session with the witness, as the configuration has it: the one way in for all programs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from runtime.configuration.coordination_section import CoordinationConfig
from runtime.coordination.zookeeper import ZooKeeper, open_zookeeper


@asynccontextmanager
async def open_witness(
    coordination: CoordinationConfig, *, start_timeout_ms: int = 10_000
) -> AsyncIterator[ZooKeeper]:
    """Open a session until the block ends; raises ZooKeeperUnreachable naming the servers."""
    async with open_zookeeper(
        coordination.zookeeper,
        session_timeout_ms=coordination.session_timeout_ms,
        start_timeout_ms=start_timeout_ms,
        access=coordination.access,
    ) as zookeeper:
        yield zookeeper

"""The registries of map writers, as the commands beside the daemon ask them."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Final, Protocol

from runtime.configuration.config import Configuration
from runtime.configuration.witness_session import open_witness
from runtime.coordination.map_registry import Anybody, WitnessWriters
from runtime.coordination.map_writers import Writers
from runtime.coordination.zookeeper import ZooKeeperFault
from runtime.process.output import complain

PATIENCE_MS: Final = 5_000


class WritersOf(Protocol):
    """Returns who may write the map, or the checkpoints, of the flow from a source to a target."""

    def __call__(self, source: str, target: str, /, *, of_checkpoints: bool = False) -> Writers:
        """Return the registry."""


@asynccontextmanager
async def open_writers(
    configuration: Configuration, *, says_so: bool = True
) -> AsyncIterator[WritersOf]:
    """Yield the registries in the witness.

    The commands are for the day on which everything is broken: without a witness they believe all
    that the map holds, and say so, unless the caller has named the witness already.
    """
    coordination = configuration.coordination
    paths = coordination.paths
    async with AsyncExitStack() as stack:
        try:
            zookeeper = await stack.enter_async_context(
                open_witness(coordination, start_timeout_ms=PATIENCE_MS)
            )
        except ZooKeeperFault as fault:
            reason = f"the witness does not say who may write the map: {fault}"
            if says_so:
                complain("mirror", f"{reason}: all that it holds is believed")
            yield lambda *_, **__: Anybody(reason)
        else:
            yield partial(WitnessWriters, zookeeper, paths)

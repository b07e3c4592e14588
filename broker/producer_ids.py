"""The producer ids that this broker gives, none of which any producer of its logs has.

ZooKeeper keeps the last one that was taken by any broker. Where it was set back to an old copy, it
would have ids given again whose batches lie in the logs, and a new producer's records would be
taken for duplicates, or for another's. So each broker raises the number above what its logs know,
whenever it has a new session: ZooKeeper is set back only while it is down.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Protocol

import trio

from broker.log.partition_log import PartitionLog
from broker.zookeeper.tree import MalformedNode, ProducerIdBlock
from runtime.coordination.zookeeper import SessionState, ZooKeeperFault

_LOG = logging.getLogger(__name__)

RETRY_S: Final = 0.5
HIGHEST: Final = 1 << 30
"""A client may write any id into its batches, and mirrors and clients of a forwarding endpoint have
ids that no broker gives out (`runtime.producer_ids`): these raise nothing, so some are left."""


class Blocks(Protocol):
    """ZooKeeper's account of producer ids, which all brokers share."""

    async def allocate_producer_ids(self, broker_id: int, above: int) -> ProducerIdBlock:
        """Take a block of ids above this one."""

    async def last_producer_id(self) -> int:
        """Return the last id that was taken, -1 for none."""


class ProducerIds:
    """Gives producer ids, one by one, from blocks of a thousand."""

    def __init__(
        self, broker_id: int, blocks: Blocks, logs: Callable[[], Iterable[PartitionLog]]
    ) -> None:
        self._broker_id = broker_id
        self._blocks = blocks
        self._logs = logs
        self._left: Iterator[int] = iter(())
        self._taken_to = -1
        self._turn = trio.Lock()

    async def next(self) -> int:
        """Return an id that nobody has; raises ZooKeeperFault and MalformedNode."""
        async with self._turn:
            producer_id = next(self._left, None)
            if producer_id is None:
                await self._take()
                producer_id = next(self._left)
            return producer_id

    async def _take(self) -> None:
        block = await self._blocks.allocate_producer_ids(self._broker_id, self._highest())
        self._left = iter(range(block.first, block.last + 1))
        self._taken_to = block.last

    def _highest(self) -> int:
        """Return the highest id that this broker has taken, or finds in its logs."""
        known = (log.highest_producer_id(below=HIGHEST) for log in self._logs())
        return max([self._taken_to, *known])

    async def follow(self, states: trio.MemoryReceiveChannel[SessionState]) -> None:
        """Raise the number again in each session; waits where ZooKeeper does not answer."""
        async for state in states:
            while state is SessionState.CONNECTED:
                try:
                    await self._raise()
                except (ZooKeeperFault, MalformedNode) as fault:
                    _LOG.warning("producer ids are not looked after: %s; trying again", fault)
                    await trio.sleep(RETRY_S)
                else:
                    break

    async def _raise(self) -> None:
        async with self._turn:
            highest, last = self._highest(), await self._blocks.last_producer_id()
            if last < highest:
                _LOG.warning(
                    "ZooKeeper says that producer id %s is the last one, and %s was given: it was"
                    " set back; it is raised",
                    last,
                    highest,
                )
                await self._take()

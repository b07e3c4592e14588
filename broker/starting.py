"""The steps of a start that need ZooKeeper: repeated when the connection is lost meanwhile.

Apache Kafka's ZooKeeperClient repeats a request that a lost connection interrupted, at the start
too: a broker that ended instead would stay down after a restart at a bad moment.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import trio

from runtime.coordination.zookeeper import ZooKeeper, ZooKeeperUnreachable

_LOG = logging.getLogger(__name__)
_T = TypeVar("_T")

AGAIN_AFTER_S: Final = 0.1


async def retried(zookeeper: ZooKeeper, timeout_s: float, step: Callable[[], Awaitable[_T]]) -> _T:
    """Return what the step returns; one that may be repeated without harm.

    Raises ZooKeeperUnreachable when the connection does not last for it within `timeout_s`.
    """
    deadline = trio.current_time() + timeout_s
    while True:
        try:
            return await step()
        except ZooKeeperUnreachable as fault:
            if trio.current_time() >= deadline:
                raise
            _LOG.warning("%s; trying again", fault)
        await trio.sleep(AGAIN_AFTER_S)
        with trio.move_on_at(deadline):
            await zookeeper.wait_connected()

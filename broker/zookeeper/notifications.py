"""Numbered notifications of one folder: each is followed once, and none is missed.

Brokers tidy old notifications away, so a gap means that something was missed, and everything is
read anew. No order of the numbers is believed: whoever may write there can make one of any number.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

import trio

from broker.zookeeper.store import NO_CHANGE, change_number
from runtime.coordination.zookeeper import ZooKeeperFault

_LOG = logging.getLogger(__name__)

RETRY_S: Final = 0.1


class Notifications:
    """The notifications that were followed, by number.

    apply    follows one; False when it has been tidied away since it was listed
    reload   reads everything, and says by `cover` which notifications it had listed before
    done     is called after some were followed one by one
    """

    def __init__(
        self,
        apply: Callable[[int], Awaitable[bool]],
        reload: Callable[[], Awaitable[None]],
        done: Callable[[], None] = lambda: None,
    ) -> None:
        self._apply = apply
        self._reload = reload
        self._done = done
        self._known: frozenset[int] = frozenset()

    def cover(self, names: Iterable[str]) -> None:
        """Take these notifications for followed: all that they tell of has been read after them."""
        self._known = frozenset(map(change_number, names))

    async def catch_up(self, names: Iterable[str]) -> None:
        """Follow what is new, however often ZooKeeper has to be asked."""
        listed = frozenset(map(change_number, names)) - {NO_CHANGE}
        while fresh := sorted(listed - self._known):
            try:
                await self._follow(fresh)
            except ZooKeeperFault as fault:
                _LOG.warning("what has changed cannot be read: %s", fault)
                await trio.sleep(RETRY_S)
            else:
                self._known = listed.union(fresh)  # those that were tidied away come no more
                return

    async def _follow(self, fresh: list[int]) -> None:
        if fresh[0] > 0 and fresh[0] - 1 not in self._known:
            await self._reload()  # notifications were tidied away before we saw them
            return
        for number in fresh:
            if not await self._apply(number):
                await self._reload()
                return
        self._known = self._known.union(fresh)
        self._done()

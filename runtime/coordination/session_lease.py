"""The right to write to a cluster, which ends before the session with the witness can be over.

    asked the witness              answered                      asked + session timeout
    |------------------------------|----------------------------|
      the session counts from here, or later                     before this it is not given up

A process that takes our work over (a mirror's partitions, the target, an unfinished promotion)
first waits until our session is gone. A process that was stopped, or cut off, for longer sends
nothing more when it wakes up: it asks right before each system call, in the middle of a request
too. The kernel drops what it had taken by then after half the timeout, unless the host it goes to
has acknowledged it. Two cases are left: bytes that this host, or a box on the way, holds unread,
and a stop between the question and the call.

A mirror's request that comes so late lands behind a promotion's seal where its sequence is still
the next one and nobody has written there. Audit and promotion do not tell it from an application's
records. If the source was compacted just then, it may differ from what a successor sends under the
same sequence: it is refused unless it begins exactly where the successor has ended, and then the
successor's next batch may be taken for a repetition. The audit names what is missing then.
Partitions have no epoch as a fence, because a first batch of a new epoch is taken at any log end
and could double what came late.
"""

from collections.abc import Callable
from typing import Final, Protocol

import trio

from runtime.coordination.zookeeper import ZooKeeperFault
from runtime.process.clock import uptime_ms

ASKS_PER_TIMEOUT: Final = 6
NO_SESSION: Final = 0


class SessionReplaced(Exception):
    """The session that the lease goes with is over, and another one is there."""


class Witness(Protocol):
    """The part of a ZooKeeper session that a lease needs."""

    @property
    def session_id(self) -> int: ...

    @property
    def session_timeout_ms(self) -> int: ...

    async def sync(self) -> None: ...


class SessionLease:
    """The right to write that goes with one session."""

    def __init__(
        self,
        witness: Witness,
        clock_ms: Callable[[], int] = uptime_ms,
        *,
        session_id: int | None = None,
    ) -> None:
        """Make a lease that is not held until `confirm`. `clock_ms` counts suspended time too.

        `session_id` is the session it goes with, the present one by default.
        """
        self._witness = witness
        self._session_id = witness.session_id if session_id is None else session_id
        self._clock_ms = clock_ms
        self._until_ms = clock_ms()

    @property
    def undelivered_ms(self) -> int:
        """Return after how long the system is to take back what was written in time.

        A stopped process cannot take it back itself, and the network may be back when others have
        gone on. The session is confirmed often, so it lasts for longer than this behind any stop.
        """
        return self._witness.session_timeout_ms // 2

    def is_held(self) -> bool:
        """Return whether the session is certainly ours still."""
        return self._clock_ms() < self._until_ms

    async def confirm(self) -> None:
        """Ask the witness; raises ZooKeeperFault. A later session confirms nothing.

        `sync` asks the leading server: a server that is cut off from it answers reads for a while,
        although the leader may have ended the session.
        """
        asked_ms = self._clock_ms()
        await self._witness.sync()
        if self._witness.session_id == self._session_id:
            self._until_ms = asked_ms + self._witness.session_timeout_ms

    async def keep(self) -> None:
        """Confirm again and again until it cannot be held again; raises SessionReplaced."""
        while True:
            await trio.sleep(self._witness.session_timeout_ms / ASKS_PER_TIMEOUT / 1000)
            try:
                await self.confirm()
            except ZooKeeperFault:
                continue  # it runs out, unless the witness answers in time
            if self._witness.session_id not in {NO_SESSION, self._session_id}:
                self._until_ms = self._clock_ms()
                raise SessionReplaced("the session with the witness is another than before")

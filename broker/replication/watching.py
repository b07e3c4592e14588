"""Waiting for a partition to move."""

from typing import Protocol

import trio


class Watcher(Protocol):
    """Told at once, in the middle of the change: must not block, nor change the partition."""

    def grown(self) -> None:
        """Note that the log has grown."""

    def committed(self) -> None:
        """Note that the high watermark or the log's start has moved."""

    def changed(self) -> None:
        """Note that leadership has changed, or that the log was cut."""


class Waiter:
    """Somebody who waits for any of several partitions to commit or change; good for one task."""

    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event = trio.Event()

    def grown(self) -> None:
        """Sleep on: nothing is committed by growing."""

    def committed(self) -> None:
        self._event.set()

    def changed(self) -> None:
        self._event.set()

    def wake(self) -> None:
        """Wake who waits."""
        self._event.set()

    async def wait(self) -> None:
        """Wait until woken since the last wait."""
        await self._event.wait()
        self._event = trio.Event()

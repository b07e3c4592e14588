"""The partitions that have batches to send to one target broker over one connection. No I/O."""

from collections import deque
from collections.abc import Iterator

import trio

from mirror.state.partition import MirroredPartition


class ReadyLine:
    """Partitions in the order in which their next batches go."""

    __slots__ = ("_event", "_node", "line")

    def __init__(self, node: int) -> None:
        self._node = node
        self._event = trio.Event()
        self.line: deque[MirroredPartition] = deque()

    def put(self, partition: MirroredPartition) -> None:
        """Take a partition with batches in its queue into the line, if it is not in it."""
        if partition.in_flight.line_up(self._node):
            self.line.append(partition)
            self._event.set()

    async def wait(self) -> None:
        """Return when a partition has come, or was there."""
        await self._event.wait()

    async def wait_more(self) -> None:
        """Return when another partition comes; the caller has sent those that were there."""
        self._event = trio.Event()
        await self._event.wait()

    def clear(self) -> Iterator[MirroredPartition]:
        """Send all away; yield those that have batches in their queues."""
        while self.line:
            partition = self.line.popleft()
            if partition.in_flight.queued_at != self._node:
                continue
            partition.in_flight.leave_line()
            if partition.in_flight.queue:
                yield partition
        self._event = trio.Event()

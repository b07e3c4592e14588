"""Places for connections of browsers and scrapers, of which one is always being made free."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import trio

REQUEST_TIMEOUT_S: Final = 10
STREAM_S: Final = 900.0
"""A stream of events ends after so long; a browser opens the next one by itself."""
MAX_CONNECTIONS: Final = 128
MAX_STREAMS: Final = 64
"""Half of the places stay for pages, metrics and health."""


class HeldPlace:
    """A connection's place, and the time that it has left."""

    def __init__(self, room: "ConnectionPlaces", scope: trio.CancelScope) -> None:
        self._room = room
        self._scope = scope

    def note_request(self) -> None:
        """Note that the request has arrived."""
        self._room.silent.pop(self._scope, None)
        self._room.answered[self._scope] = None

    def may_stream(self) -> bool:
        """Take a stream's time; False where there are as many streams as there may be."""
        if len(self._room.streams) >= MAX_STREAMS:
            return False
        self._room.answered.pop(self._scope, None)
        self._room.streams[self._scope] = None
        self._scope.deadline = trio.current_time() + STREAM_S
        return True


class ConnectionPlaces:
    """Places for MAX_CONNECTIONS connections.

    A connection that has sent no request gives its place up first, the oldest before all others;
    then a stream, which its browser opens anew. So the next request is read, whoever holds
    connections open and says nothing.
    """

    def __init__(self) -> None:
        self._free = trio.Semaphore(MAX_CONNECTIONS)
        self.silent: dict[trio.CancelScope, None] = {}
        self.streams: dict[trio.CancelScope, None] = {}
        self.answered: dict[trio.CancelScope, None] = {}

    async def wait_free(self) -> None:
        """Take a place, from the oldest silent connection if there is none."""
        if not self._free.value:
            oldest = next(iter(self.silent or self.streams or self.answered), None)
            if oldest is not None:
                oldest.cancel()
        await self._free.acquire()

    def free(self) -> None:
        """Give a place back that no connection uses."""
        self._free.release()

    @contextmanager
    def hold(self) -> Iterator[HeldPlace]:
        """Limit a connection's time."""
        with trio.move_on_after(REQUEST_TIMEOUT_S) as scope:
            self.silent[scope] = None
            try:
                yield HeldPlace(self, scope)
            finally:
                for places in (self.silent, self.streams, self.answered):
                    places.pop(scope, None)

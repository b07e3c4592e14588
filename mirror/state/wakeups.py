"""What the tasks of a flow wait for: its wake-ups, each by its name, and its gate."""

from typing import Final

import trio

SETTLE_LOOK_S: Final = 0.5
"""Whoever waits until nothing is under way looks at least so often."""


class Wakeup:
    """Wakes the tasks that wait at this moment; without one nothing is kept."""

    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event: trio.Event | None = None

    def wake(self) -> None:
        """Wake all who wait."""
        if self._event is not None:
            self._event.set()
            self._event = None

    async def wait(self, at_most_s: float) -> None:
        """Wait for the next wake, or as long as said."""
        if self._event is None:
            self._event = trio.Event()
        event = self._event
        with trio.move_on_after(at_most_s):
            await event.wait()


class KeptWakeup:
    """Wakes one waiter, now or when it next waits."""

    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event = trio.Event()

    def wake(self) -> None:
        """Ask for it; asking again before it is answered changes nothing."""
        self._event.set()

    async def wait(self, at_most_s: float) -> None:
        """Wait until it is asked for, or as long as said."""
        with trio.move_on_after(at_most_s):
            await self._event.wait()
        self._event = trio.Event()


class FlowWakeups:
    """The wake-ups of one flow."""

    __slots__ = ("fetch_changes", "fetch_more", "position_more", "refresh", "settled")

    def __init__(self) -> None:
        self.fetch_more: Final = Wakeup()
        """Room in flight: fetchers go on."""
        self.position_more: Final = Wakeup()
        """A partition is settled after an interruption, or discovered."""
        self.settled: Final = Wakeup()
        """Something under way was answered; for who waits until all is."""
        self.refresh: Final = KeptWakeup()
        """Leaders or topics may have changed: discovery looks again."""
        self.fetch_changes = 0
        """Grows with what others than fetchers change of what is to be fetched."""

    def fetch_anew(self) -> None:
        """Have fetchers look at all: a partition was positioned, its leader moved, or the like.

        A task that changes from elsewhere what is to be fetched calls this, or waits five seconds:
        looking at each of 10,000 partitions each second would keep a mirror at rest busy.
        """
        self.fetch_changes += 1
        self.fetch_more.wake()


class FlowGate:
    """Says whether the flow goes on; it is closed while the flow drains or has no witness.

    Behind a closed gate nothing is fetched, positioned, sent or committed.
    """

    __slots__ = ("_wakeups", "is_open")

    def __init__(self, wakeups: FlowWakeups) -> None:
        self._wakeups = wakeups
        self.is_open = True

    def close(self) -> None:
        """Ask the source for nothing more until the gate is opened."""
        self.is_open = False

    def open(self) -> None:
        """Ask the source again, once partitions are positioned."""
        self.is_open = True
        self._wakeups.position_more.wake()

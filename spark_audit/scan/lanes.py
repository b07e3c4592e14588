"""Several fetches of one log under way: a site that is far away answers at its line's rate.

    log    |=======|=======|=======|=======|==      an answer each; where a batch ends, nobody knows
    lanes  |------>|                                fetched first, and gives the pace
           .       |------->|------->|------->      side by side, each from a guessed offset on

A guess may lead into a batch: the answer then begins with that whole batch, which was taken already
and is left out. It may fall short: what lies before the next lane is fetched alone.
"""

from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

import trio

from wire.messages.fetch import FetchPartitionData
from wire.record_batch import Buffer, iterate_batches

FETCH_BYTES: Final = 4 * 1024 * 1024
LEAST_FETCH_BYTES: Final = 256 * 1024
MOST_LANES: Final = 4
"""16 MiB are as much as a line of 200 MB/s holds that is 80 ms long."""

Fetch: TypeAlias = Callable[[int, int], Awaitable[FetchPartitionData | None]]
"""Asks from an offset on for so many bytes; None if the log does not have it, or LogUnreadable."""


class LogUnreadable(Exception):
    """The stretch cannot be read to its end; says why in one line."""


@dataclass(slots=True)
class OffsetDensity:
    """How many bytes the offsets of a log take, as far as it has been read.

    An answer that reaches far behind a stretch is read in vain: over the line between two sites
    that costs more than one more question.
    """

    seen_bytes: int = 0
    seen_offsets: int = 0

    def note(self, fetched_bytes: int, offsets: int) -> None:
        """Take one answer."""
        self.seen_bytes += fetched_bytes
        self.seen_offsets += offsets

    def bytes_for(self, offsets: int) -> int:
        """Return how many bytes to ask for where so many offsets are left."""
        if not self.seen_offsets:
            return FETCH_BYTES
        expected = offsets * self.seen_bytes * 9 // (self.seen_offsets * 8)
        return min(max(expected, LEAST_FETCH_BYTES), FETCH_BYTES)

    def offsets_a_fetch(self) -> int | None:
        """Return of how many offsets an answer is expected; None before the first one."""
        if not self.seen_offsets or not self.seen_bytes:
            return None
        return max(1, FETCH_BYTES * 8 * self.seen_offsets // (9 * self.seen_bytes))


@dataclass(slots=True)
class _Lane:
    start: int
    stop: int
    is_done: trio.Event = field(default_factory=trio.Event)
    answer: FetchPartitionData | None = None
    failure: LogUnreadable | None = None


class Lanes:
    """Fetches the stretch of one log, in order."""

    def __init__(self, nursery: trio.Nursery, fetch: Fetch, stop: int, most: int) -> None:
        """Ask for `most` answers at a time, of which none begins at or behind `stop`."""
        self._nursery = nursery
        self._fetch = fetch
        self._stop = stop
        self._most = min(most, MOST_LANES)
        self._pace = OffsetDensity()
        self._lanes: deque[_Lane] = deque()
        self._behind = 0
        """How much was asked for last of what lies behind the stretch."""

    async def answer(self, position: int) -> FetchPartitionData | None:
        """Return an answer whose first batch has this offset, or lies behind it.

        None if the log does not have it; raises LogUnreadable. Positions only grow.
        """
        self._set_out(position)
        while self._lanes and self._lanes[0].start <= position:
            lane = self._lanes.popleft()
            if position < lane.stop:
                await lane.is_done.wait()
                if lane.failure is not None:
                    raise lane.failure
                rest = None if lane.answer is None else _from(lane.answer, position)
                if rest is not None:
                    return rest
        if position < self._stop:
            return await self._fetch(position, self._pace.bytes_for(self._stop - position))
        # Where the last range ends, nobody knows: a few questions find out, wherever it is.
        self._behind = min(2 * self._behind, FETCH_BYTES) or LEAST_FETCH_BYTES
        return await self._fetch(position, self._behind)

    def note(self, fetched_bytes: int, offsets: int) -> None:
        """Take note of how far an answer has come."""
        self._pace.note(fetched_bytes, offsets)

    def _set_out(self, position: int) -> None:
        """Send what may be under way; with one at a time an answer is asked for when it is due."""
        each = self._pace.offsets_a_fetch()
        if each is None or self._most == 1:
            return
        start = max(position, self._lanes[-1].stop if self._lanes else position)
        while len(self._lanes) < self._most and start < self._stop:
            lane = _Lane(start, min(start + each, self._stop))
            self._lanes.append(lane)
            self._nursery.start_soon(self._go, lane)
            start = lane.stop

    async def _go(self, lane: _Lane) -> None:
        try:
            most_bytes = self._pace.bytes_for(lane.stop - lane.start)
            lane.answer = await self._fetch(lane.start, most_bytes)
        except LogUnreadable as failure:
            lane.failure = failure
        lane.is_done.set()


def _from(answer: FetchPartitionData, position: int) -> FetchPartitionData | None:
    """Return an answer without the batches before a position; None if none is left."""
    assert isinstance(answer.records, Buffer), "an answer's records are one view into it"
    records = memoryview(answer.records)
    begin = 0
    for header, batch in iterate_batches(records):
        if header.next_offset > position:
            return replace(answer, records=records[begin:]) if begin else answer
        begin += len(batch)
    return None

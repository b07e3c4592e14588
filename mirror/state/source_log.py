"""A partition's log on the source: its end as last heard, and the lag of the mirror behind it.

No clock here: times are arguments, wall clock in milliseconds. ``mirrored`` is the source offset
before which everything has been mirrored, None while that is unknown.
"""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

FRESH_MS: Final = 10_000
"""News of the source that are older count as unknown."""
FALLEN_BEHIND_MS: Final = 3_000
"""A partition that is not at the source's end for so long is not called streaming."""


@dataclass(slots=True)
class _Goal:
    """Once everything before ``offset`` is mirrored, the partition was level at ``time_ms``."""

    offset: int
    time_ms: int


class Level:
    """The last moment known at which everything before some end was mirrored."""

    __slots__ = ("goal", "level_ms")

    def __init__(self) -> None:
        self.level_ms: int | None = None
        self.goal: _Goal | None = None
        """While something is missing: what must be mirrored for the next moment to be known."""

    def hear(self, end: int, mirrored: int | None, now_ms: int) -> None:
        """Take note of where the end is now."""
        if mirrored is not None and mirrored >= end:
            self.level_ms = now_ms
            self.goal = None
        elif self.goal is None:
            self.goal = _Goal(end, now_ms)

    def reach(self, mirrored: int) -> None:
        """Take note of how far the mirror has come."""
        if self.goal is not None and mirrored >= self.goal.offset:
            self.level_ms = self.goal.time_ms
            self.goal = None


class SourceLog:
    """One partition's log on the source, as last heard of."""

    __slots__ = ("_readable", "_whole", "end", "heard_ms", "next_look", "readable_end", "topic_id")

    def __init__(self, topic_id: UUID) -> None:
        self.topic_id = topic_id
        """The topic as last seen, where brokers tell."""
        self.end: int | None = None
        """The high watermark; None before anything was heard."""
        self.readable_end: int | None = None
        """The last stable offset: open transactions lie behind it."""
        self.heard_ms = 0
        """When the end was last heard of."""
        self._readable = Level()
        self._whole = Level()
        """Open transactions included: their records wait as well."""
        self.next_look = 0
        """Before this source offset is mirrored, progress changes neither state nor lag time."""

    @property
    def level_ms(self) -> int | None:
        """The last moment known at which everything then readable was mirrored."""
        return self._readable.level_ms

    def meet_topic(self, topic_id: UUID) -> None:
        """Note the id of the topic that the source has by that name now."""
        self.topic_id = topic_id

    def hear(self, end: int, readable_end: int, mirrored: int | None, now_ms: int) -> None:
        """Take note of where the source says that its log ends."""
        self.end, self.readable_end, self.heard_ms = end, readable_end, now_ms
        self._readable.hear(readable_end, mirrored, now_ms)
        self._whole.hear(end, mirrored, now_ms)

    def reach(self, mirrored: int | None) -> bool | None:
        """Note how far the mirror has come; return whether that is level with the end.

        None while either is unknown.
        """
        self.next_look = 0
        if mirrored is None or self.readable_end is None:
            return None
        self._readable.reach(mirrored)
        self._whole.reach(mirrored)
        if self.end is not None:
            self._whole.hear(self.end, mirrored, self.heard_ms)
        is_level = mirrored >= self.readable_end
        if not is_level:
            goals = [level.goal.offset for level in (self._readable, self._whole) if level.goal]
            self.next_look = min([*goals, self.readable_end]) if self._readable.goal else 0
        return is_level

    def has_fallen_behind(self, now_ms: int) -> bool:
        """Whether the mirror has not been level for longer than passes by itself."""
        return self.level_ms is None or now_ms - self.level_ms > FALLEN_BEHIND_MS

    def lag_records(self, mirrored: int | None, now_ms: int) -> int | None:
        """Return the source offsets not yet mirrored; None while unknown, which is not zero.

        The lag counts as unknown once the source has not been heard of for FRESH_MS.
        """
        is_stale = now_ms - self.heard_ms > FRESH_MS
        if self.end is None or mirrored is None or is_stale:
            return None
        return max(0, self.end - mirrored)

    def since_level_ms(self, now_ms: int) -> int | None:
        """Return the time since everything was last mirrored; None if it never was.

        Records of open transactions count, and those behind them, which wait for their end.
        """
        level_ms = self._whole.level_ms
        return None if level_ms is None else max(0, now_ms - level_ms)

    def held_since_ms(self, mirrored: int | None) -> int | None:
        """Return since when an open transaction holds records back, None if none does.

        That is so where all that is readable is mirrored, and the log goes on behind it.
        """
        if self.end is None or self.readable_end is None or mirrored is None:
            return None
        is_held = self.readable_end < self.end and mirrored >= self.readable_end
        return self._whole.goal.time_ms if is_held and self._whole.goal else None

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


class SourceLog:
    """One partition's log on the source, as last heard of."""

    __slots__ = ("_goal", "end", "heard_ms", "level_ms", "next_look", "readable_end", "topic_id")

    def __init__(self, topic_id: UUID) -> None:
        self.topic_id = topic_id
        """The topic as last seen, where brokers tell."""
        self.end: int | None = None
        """The high watermark; None before anything was heard."""
        self.readable_end: int | None = None
        """The last stable offset: open transactions lie behind it."""
        self.heard_ms = 0
        """When the end was last heard of."""
        self.level_ms: int | None = None
        """The last moment known at which everything then readable was mirrored."""
        self.next_look = 0
        """Before this source offset is mirrored, progress changes neither state nor lag time."""
        self._goal: _Goal | None = None

    def meet_topic(self, topic_id: UUID) -> None:
        """Note the id of the topic that the source has by that name now."""
        self.topic_id = topic_id

    def hear(self, end: int, readable_end: int, mirrored: int | None, now_ms: int) -> None:
        """Take note of where the source says that its log ends."""
        self.end, self.readable_end, self.heard_ms = end, readable_end, now_ms
        if mirrored is not None and mirrored >= readable_end:
            self.level_ms = now_ms
            self._goal = None
        elif self._goal is None:
            self._goal = _Goal(readable_end, now_ms)

    def reach(self, mirrored: int | None) -> bool | None:
        """Note how far the mirror has come; return whether that is level with the end.

        None while either is unknown.
        """
        self.next_look = 0
        if mirrored is None or self.readable_end is None:
            return None
        goal = self._goal
        if goal is not None and mirrored >= goal.offset:
            self.level_ms = goal.time_ms
            self._goal = goal = None
        is_level = mirrored >= self.readable_end
        if not is_level:
            self.next_look = 0 if goal is None else min(goal.offset, self.readable_end)
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
        """Return the time since the mirror was last level; None if it never was."""
        return None if self.level_ms is None else max(0, now_ms - self.level_ms)

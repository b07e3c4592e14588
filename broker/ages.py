"""The time by which stamped things grow old: as the wall clock is set, but not by a sudden leap.

    wall clock    10:00  10:05 | 3 days later  +5 min  ...  +60 min | a day back
    ages          10:00  10:05 | 10:10         10:15   ...  as it   | as it

What records and commits are stamped with is a time of day, so their age must be counted by one. Yet
somebody who sets a clock forward by mistake would have all of them deleted at the next look, and no
clock set right again brings them back. Apache Kafka does that.
"""

import logging
from dataclasses import dataclass
from typing import Final

_LOG: Final = logging.getLogger(__name__)

LEAP_MS: Final = 60_000
"""A clock that is put right gains less between two looks; nothing is kept for so short a time."""
BELIEVED_AFTER_MS: Final = 3_600_000
"""Enough to see the warning and to set the clock right; a delay that no retention minds."""


@dataclass(slots=True)
class Ages:
    """Told both clocks at each look. Times are milliseconds; `now_ms` is one that nobody sets."""

    _ahead_ms: int = 0
    """By how much the wall clock may be before `now_ms`: the two begin alike."""
    _leap_ms: int = 0
    _leapt_at_ms: int | None = None

    def at(self, now_ms: int, wall_ms: int) -> int:
        """Return the wall clock's time, without a leap forward that is not an hour old yet."""
        leap_ms = wall_ms - now_ms - self._ahead_ms
        if leap_ms >= LEAP_MS and not self._has_lasted(leap_ms, now_ms):
            return now_ms + self._ahead_ms
        self._ahead_ms = wall_ms - now_ms
        self._leapt_at_ms = None
        return wall_ms

    def _has_lasted(self, leap_ms: int, now_ms: int) -> bool:
        if self._leapt_at_ms is None or abs(leap_ms - self._leap_ms) >= LEAP_MS:
            self._leap_ms, self._leapt_at_ms = leap_ms, now_ms
            _LOG.warning(
                "the clock was set forward by %s s: ages are counted by it in %s s, if it stays",
                leap_ms // 1_000,
                BELIEVED_AFTER_MS // 1_000,
            )
        return now_ms - self._leapt_at_ms >= BELIEVED_AFTER_MS

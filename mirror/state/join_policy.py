"""Joining of small batches: forbidden for a while after joined ones were refused."""

from dataclasses import dataclass
from typing import Final

FIRST_ALONE_MS: Final = 600_000
"""A batch that was refused for one record is behind by then, as a rule."""
MOST_ALONE_MS: Final = 86_400_000
"""A limit of the target's topic that joined batches pass is met again each time."""


@dataclass(slots=True)
class Joins:
    """The joins of one partition. A refusal costs an interruption, so tries become ever rarer."""

    _alone_until_ms: int = 0
    _alone_ms: int = FIRST_ALONE_MS

    def refuse(self, now_ms: int) -> None:
        """Note that the target has refused batches that had been joined."""
        self._alone_until_ms = now_ms + self._alone_ms
        self._alone_ms = min(2 * self._alone_ms, MOST_ALONE_MS)

    def are_allowed(self, now_ms: int) -> bool:
        """Whether small batches may go on as one."""
        return now_ms >= self._alone_until_ms

"""How many lines a flood of bad requests may write: a burst, then so many a second. Pure.

Without it any client that can open a connection could fill the disk that the records need.
"""

from dataclasses import dataclass
from typing import Final

BURST_LINES: Final = 50
LINES_PER_S: Final = 5
LONGEST_LINE: Final = 1_000
"""Characters of what a line quotes: a client's string may have 32,767."""


@dataclass(slots=True)
class LineBudget:
    """Spent by one line, refilled by time; counts the lines that were not written."""

    left: float = BURST_LINES
    counted_at_s: float = 0.0
    left_out: int = 0

    def line(self, text: str, now_s: float) -> str | None:
        """Return what may be written now, None for nothing; `now_s` never goes back."""
        refilled = self.left + (now_s - self.counted_at_s) * LINES_PER_S
        self.left, self.counted_at_s = min(BURST_LINES, refilled), now_s
        if self.left < 1:
            self.left_out += 1
            return None
        self.left -= 1
        left_out, self.left_out = self.left_out, 0
        shown = text if len(text) <= LONGEST_LINE else f"{text[:LONGEST_LINE]}..."
        return f"{shown} ({left_out} more before it not logged)" if left_out else shown

"""A clock that a test moves by hand."""

from dataclasses import dataclass

from tests.broker.rig import NOW_MS


@dataclass(slots=True)
class HandClock:
    """The clocks; they go only where a test puts them."""

    passed_ms: int = 0
    set_by_ms: int = 0
    """By how much somebody has set the wall clock."""

    def now_ms(self) -> int:
        return NOW_MS + self.passed_ms

    def wall_ms(self) -> int:
        return self.now_ms() + self.set_by_ms

    def monotonic_ms(self) -> int:
        return self.passed_ms

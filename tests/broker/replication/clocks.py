"""A clock that a test moves by hand."""

from dataclasses import dataclass

from tests.broker.rig import NOW_MS


@dataclass(slots=True)
class HandClock:
    """Both clocks; they go only where a test puts them."""

    passed_ms: int = 0

    def now_ms(self) -> int:
        return NOW_MS + self.passed_ms

    def monotonic_ms(self) -> int:
        return self.passed_ms

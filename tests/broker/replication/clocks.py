"""A clock that a test moves by hand."""

from dataclasses import dataclass, field

from broker.ages import Ages
from tests.broker.rig import NOW_MS


@dataclass(slots=True)
class HandClock:
    """The clocks; they go only where a test puts them."""

    passed_ms: int = 0
    set_by_ms: int = 0
    """By how much somebody has set the wall clock."""
    ages: Ages = field(default_factory=Ages)

    def now_ms(self) -> int:
        return NOW_MS + self.passed_ms

    def wall_ms(self) -> int:
        return self.now_ms() + self.set_by_ms

    def age_ms(self) -> int:
        return self.ages.at(self.now_ms(), self.wall_ms())

    def monotonic_ms(self) -> int:
        return self.passed_ms

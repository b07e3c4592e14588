"""The clocks of a broker, and what each of them is for."""

from typing import Protocol


class Clock(Protocol):
    """The clocks, read at the edge and handed to decisions as arguments."""

    def now_ms(self) -> int:
        """Return milliseconds since the epoch, as the wall clock was set at the start: for ages."""

    def wall_ms(self) -> int:
        """Return the wall clock as it is set now: for stamps, and checks of them."""

    def age_ms(self) -> int:
        """Return the time of day by which stamped things grow old: a leap forward counts late."""

    def monotonic_ms(self) -> int:
        """Return a clock in milliseconds that never goes back, on the scale of trio's clock."""

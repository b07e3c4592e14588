"""How long to leave a broker alone after it could not be reached. Pure."""

from dataclasses import dataclass
from typing import Final

FIRST_DELAY_S: Final = 0.05
"""Kafka's reconnect.backoff.ms."""
LONGEST_DELAY_S: Final = 1.0
"""Kafka's reconnect.backoff.max.ms."""
FIRST_REFUSED_DELAY_S: Final = 1.0
LONGEST_REFUSED_DELAY_S: Final = 30.0
"""After refused credentials: brokers count them, and some lock the account."""
_SPREAD: Final = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Failures in a row and the moment, in seconds of the caller's clock, of the next attempt."""

    failures: int = 0
    not_before: float = float("-inf")

    def after_failure(self, now: float, luck: float, *, was_refused: bool = False) -> "Backoff":
        """Return the state after one more failure; `luck` in [0, 1) spreads clients by +-20 %."""
        first = FIRST_REFUSED_DELAY_S if was_refused else FIRST_DELAY_S
        longest = LONGEST_REFUSED_DELAY_S if was_refused else LONGEST_DELAY_S
        # The exponent is bounded: a broker may be away for weeks.
        delay = min(first * 2 ** min(self.failures, 16), longest)
        delay *= 1 - _SPREAD + 2 * _SPREAD * luck
        return Backoff(failures=self.failures + 1, not_before=now + delay)

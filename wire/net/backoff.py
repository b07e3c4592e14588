"""How long to leave a broker alone after it could not be reached. Pure."""

from dataclasses import replace
from typing import Final

from wire.net.client_settings import UNSET, Growing
from wire.values import frozen

REFUSED: Final = Growing(first_ms=1_000, longest_ms=30_000)
"""After refused credentials: brokers count them, and some lock the account."""
_SPREAD: Final = 0.2


@frozen
class Backoff:
    """Failures in a row and the moment, in seconds of the caller's clock, of the next attempt."""

    failures: int = 0
    not_before: float = float("-inf")
    pauses: Growing = UNSET.reconnect
    """Between attempts that nobody refused."""

    def after_failure(self, now: float, luck: float, *, was_refused: bool = False) -> "Backoff":
        """Return the state after one more failure; `luck` in [0, 1) spreads clients by +-20 %."""
        delay = (REFUSED if was_refused else self.pauses).after_s(self.failures + 1)
        delay *= 1 - _SPREAD + 2 * _SPREAD * luck
        return replace(self, failures=self.failures + 1, not_before=now + delay)

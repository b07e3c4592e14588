"""One token for all connections of a process, for as long as most of its life lasts."""

import threading
from collections.abc import Callable
from typing import Final

from runtime.process.clock import uptime_ms, wall_ms
from wire.net.errors import TokenUnavailable
from wire.net.security import Token
from wire.values import frozen

KEPT_FOR: Final = 0.7
"""The part of a token's life after which another one is asked for. Sessions are renewed after 85 %
of theirs (`wire.net.sasl`), and so always with a token that is newer. See `librdkafka` too."""
LIFE_UNKNOWN_MS: Final = 60_000
"""For how long a token is shown that does not say when it ends."""
FAILURE_KEPT_MS: Final = 1_000
"""For so long all who ask are told the same failure, so that an issuer is not stormed."""


def kept_until(token: Token, asked_at_ms: int) -> int:
    """Return until when a token that was asked for then is shown to brokers."""
    if token.expires_at_ms is None:
        return asked_at_ms + LIFE_UNKNOWN_MS
    return asked_at_ms + int((token.expires_at_ms - asked_at_ms) * KEPT_FOR)


@frozen(kw_only=False)
class _Outcome:
    what: Token | str
    until_uptime_ms: int


class HeldToken:
    """The token that a source has given last, or its failure. Any thread may ask.

    One asks the source at a time; the others wait for what it says.
    """

    def __init__(self) -> None:
        self._one_at_a_time = threading.Lock()
        self._last: _Outcome | None = None

    def __reduce__(self) -> tuple[type["HeldToken"], tuple[()]]:
        """Travel to another process without the token, which asks for its own there."""
        return HeldToken, ()

    def token(self, ask: Callable[[], Token]) -> Token:
        """Return the token, of `ask` if none is held. Raises TokenUnavailable."""
        with self._one_at_a_time:
            now = uptime_ms()
            last = self._last
            if last is None or now >= last.until_uptime_ms:
                last = self._last = _ask(ask, now)
        if isinstance(last.what, str):
            raise TokenUnavailable(last.what)
        return last.what

    def forget(self, token: Token) -> None:
        """Ask for another one, if this is the one that is held.

        It waits for nobody, since an event loop calls it. A newer token that comes at this moment
        may be forgotten too, and is asked for once more.
        """
        last = self._last
        if last is not None and last.what == token:
            self._last = None


def _ask(ask: Callable[[], Token], now_uptime_ms: int) -> _Outcome:
    asked_at_ms = wall_ms()
    try:
        token = ask()
    except TokenUnavailable as reason:
        return _Outcome(str(reason), uptime_ms() + FAILURE_KEPT_MS)
    return _Outcome(token, now_uptime_ms + kept_until(token, asked_at_ms) - asked_at_ms)

"""Tokens for librdkafka, which asks for the next one after four fifths of a token's life.

It looks once a second whether it is time, and renews a session after nine tenths of it with the
token that it has by then. A token of 10 s would be shown twice, the second time just before its
end. So librdkafka is told an earlier end, and asks after 72 % of what is left.

It asks at no other time, not even after a broker has refused the token. So of a token that lasts
long it is told an end that is near, and gets the same token again while nobody has refused it.
"""

from dataclasses import dataclass, field
from typing import Final, TypeAlias

from runtime.process.clock import wall_ms
from runtime.tokens.held_token import LIFE_UNKNOWN_MS
from wire.net.errors import TokenUnavailable
from wire.net.security import Token, TokenSource

SAID_OF_LIFE: Final = 0.9
"""The part of what is left of a token that librdkafka is told of. Four fifths of it are more than
`held_token.KEPT_FOR`, so what librdkafka gets then is another token."""
LASTS_LONG_MS: Final = 150_000
"""With so much left, a token is asked for again well before a session has to be renewed."""
SAID_OF_LONG_MS: Final = 30_000
"""What librdkafka is told of such a token: it asks again after 24 s."""

TokenOfLibrdkafka: TypeAlias = tuple[str, float]
"""The token, and its end in seconds since the epoch."""


@dataclass(slots=True)
class TokenCallback:
    """confluent-kafka's `oauth_cb` of one client, called in a thread of librdkafka's."""

    source: TokenSource
    failure: str = ""
    """Why there was no token when librdkafka asked last; it keeps no text of ours."""
    _given: Token | None = field(default=None, repr=False)

    def __call__(self, _: str) -> TokenOfLibrdkafka:
        """Return a token. Raises TokenUnavailable: librdkafka asks again after 10 s."""
        try:
            token = self._given = self.source.token()
        except TokenUnavailable as problem:
            self.failure = str(problem)
            raise
        self.failure = ""
        now_ms, ends_ms = wall_ms(), token.expires_at_ms
        left_ms = LIFE_UNKNOWN_MS if ends_ms is None else ends_ms - now_ms
        said_ms = SAID_OF_LONG_MS if left_ms > LASTS_LONG_MS else left_ms * SAID_OF_LIFE
        return token.text, (now_ms + said_ms) / 1_000

    def note_refused(self) -> None:
        """Show a broker another token than the last one, which it has refused."""
        if self._given is not None:
            self.source.forget(self._given)

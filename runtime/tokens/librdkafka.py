"""Tokens for librdkafka, which asks for the next one after four fifths of a token's life.

It looks once a second whether it is time, and renews a session after nine tenths of it with the
token that it has by then. A token of 10 s would be shown twice, the second time just before its
end. So librdkafka is told an earlier end, and asks after 72 % of what is left.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

from runtime.process.clock import wall_ms
from runtime.tokens.held_token import LIFE_UNKNOWN_MS
from wire.net.security import TokenSource

SAID_OF_LIFE: Final = 0.9
"""The part of what is left of a token that librdkafka is told of. Four fifths of it are more than
`held_token.KEPT_FOR`, so what librdkafka gets then is another token."""

TokenOfLibrdkafka: TypeAlias = tuple[str, float]
"""The token, and its end in seconds since the epoch."""


def oauth_callback(source: TokenSource) -> Callable[[str], TokenOfLibrdkafka]:
    """Return confluent-kafka's `oauth_cb`. Its TokenUnavailable has librdkafka ask again later."""

    def ask(_: str) -> TokenOfLibrdkafka:
        token = source.token()
        now_ms, ends_ms = wall_ms(), token.expires_at_ms
        left_ms = LIFE_UNKNOWN_MS if ends_ms is None else ends_ms - now_ms
        return token.text, (now_ms + left_ms * SAID_OF_LIFE) / 1_000

    return ask

"""Tokens for librdkafka, which asks for the next one after four fifths of a token's life."""

from collections.abc import Callable
from typing import TypeAlias

from runtime.clock import wall_ms
from runtime.tokens.held_token import LIFE_UNKNOWN_MS
from wire.net.security import TokenSource

TokenOfLibrdkafka: TypeAlias = tuple[str, float]
"""The token, and its end in seconds since the epoch."""


def oauth_callback(source: TokenSource) -> Callable[[str], TokenOfLibrdkafka]:
    """Return confluent-kafka's `oauth_cb`. Its TokenUnavailable has librdkafka ask again later."""

    def ask(_: str) -> TokenOfLibrdkafka:
        token = source.token()
        ends_ms = token.expires_at_ms
        return token.text, (wall_ms() + LIFE_UNKNOWN_MS if ends_ms is None else ends_ms) / 1_000

    return ask

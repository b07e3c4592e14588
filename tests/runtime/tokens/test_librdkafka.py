"""What librdkafka is told of a token, so that it gets another one before it renews a session."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.tokens import librdkafka
from runtime.tokens.held_token import LIFE_UNKNOWN_MS, kept_until
from runtime.tokens.librdkafka import oauth_callback
from wire.net.security import Token

NOW_MS = 1_800_000_000_000
REFRESHED_AFTER = 0.8
"""Of what is left of a token (rd_kafka_oauthbearer_set_token0 of librdkafka 2.16)."""


@dataclass
class Held:
    """Gives one token."""

    given: Token

    def token(self) -> Token:
        return self.given

    def forget(self, token: Token) -> None:
        raise AssertionError(token)


def told_ms(token: Token) -> float:
    """Return for how long librdkafka takes the token that it gets now."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(librdkafka, "wall_ms", lambda: NOW_MS)
        text, ends_s = oauth_callback(Held(token))("")
    assert text == token.text
    return ends_s * 1_000 - NOW_MS


@given(st.integers(1_000, 86_400_000), st.floats(0, 0.69))
def test_librdkafka_asks_again_only_when_there_is_another_token(life_ms: int, age: float) -> None:
    asked_at_ms = NOW_MS - int(life_ms * age)
    token = Token(text="t", expires_at_ms=asked_at_ms + life_ms)
    asks_again_at_ms = NOW_MS + told_ms(token) * REFRESHED_AFTER
    assert asks_again_at_ms >= kept_until(token, asked_at_ms) - 2
    assert asks_again_at_ms < asked_at_ms + life_ms


def test_a_token_of_unknown_life_is_asked_for_again_within_a_minute() -> None:
    assert told_ms(Token(text="t")) * REFRESHED_AFTER < LIFE_UNKNOWN_MS

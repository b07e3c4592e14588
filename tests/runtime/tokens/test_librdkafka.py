"""What librdkafka is told of a token, so that it gets another one before it renews a session."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.tokens import librdkafka
from runtime.tokens.held_token import LIFE_UNKNOWN_MS, kept_until
from runtime.tokens.librdkafka import LASTS_LONG_MS, TokenCallback
from wire.net.errors import TokenUnavailable
from wire.net.security import Token

NOW_MS = 1_800_000_000_000
REFRESHED_AFTER = 0.8
"""Of what is left of a token (rd_kafka_oauthbearer_set_token0 of librdkafka 2.16)."""


@dataclass
class Held:
    """Gives one token."""

    given: Token
    key: str = "sasl.token_file"
    origin: str = "sasl.token_file: token"

    def token(self) -> Token:
        return self.given

    refused: list[Token] = field(default_factory=list)

    def forget(self, token: Token) -> None:
        self.refused.append(token)


def told_ms(token: Token) -> float:
    """Return for how long librdkafka takes the token that it gets now."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(librdkafka, "wall_ms", lambda: NOW_MS)
        text, ends_s = TokenCallback(Held(token))("")
    assert text == token.text
    return ends_s * 1_000 - NOW_MS


@given(st.integers(1_000, LASTS_LONG_MS), st.floats(0, 0.69))
def test_librdkafka_asks_again_only_when_there_is_another_token(life_ms: int, age: float) -> None:
    asked_at_ms = NOW_MS - int(life_ms * age)
    token = Token(text="t", expires_at_ms=asked_at_ms + life_ms)
    asks_again_at_ms = NOW_MS + told_ms(token) * REFRESHED_AFTER
    assert asks_again_at_ms >= kept_until(token, asked_at_ms) - 2
    assert asks_again_at_ms < asked_at_ms + life_ms


def test_a_token_of_unknown_life_is_asked_for_again_within_a_minute() -> None:
    assert told_ms(Token(text="t")) * REFRESHED_AFTER < LIFE_UNKNOWN_MS


SESSION_RENEWED_AFTER = 0.9
"""Of what a broker says a session lasts, which is what is left of the token at a login."""


@given(st.integers(LASTS_LONG_MS + 1, 86_400_000), st.floats(0, 0.69))
def test_a_session_of_a_long_token_is_renewed_with_another_one(life_ms: int, age: float) -> None:
    asked_at_ms = NOW_MS - int(life_ms * age)
    left_ms = asked_at_ms + life_ms - NOW_MS
    held_until_ms = kept_until(Token(text="t", expires_at_ms=asked_at_ms + life_ms), asked_at_ms)
    asks_each_ms = told_ms(Token(text="t", expires_at_ms=NOW_MS + left_ms)) * REFRESHED_AFTER
    if left_ms > LASTS_LONG_MS:
        assert asks_each_ms <= 24_000, "what a broker refuses is soon replaced"
        assert held_until_ms + asks_each_ms < NOW_MS + left_ms * SESSION_RENEWED_AFTER


def test_a_refused_token_is_forgotten_by_its_source() -> None:
    token = Token(text="t", expires_at_ms=NOW_MS + 3_600_000)
    source = Held(token)
    callback = TokenCallback(source)
    callback.note_refused()
    assert source.refused == [], "none has been shown"
    callback("")
    callback.note_refused()
    assert source.refused == [token]


def test_why_there_is_no_token_is_kept_until_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Held(Token(text="t"))
    callback = TokenCallback(source)

    def fail() -> Token:
        raise TokenUnavailable("sasl.token_file: /t: is empty")

    with monkeypatch.context() as patched:
        patched.setattr(source, "token", fail)
        with pytest.raises(TokenUnavailable):
            callback("")
    assert callback.failure == "sasl.token_file: /t: is empty"
    callback("")
    assert callback.failure == ""

"""One token for all who ask, a new one in time, and no storm on an issuer that is away."""

import pickle

import pytest

from runtime.tokens import held_token
from runtime.tokens.held_token import HeldToken
from wire.net.errors import TokenUnavailable
from wire.net.security import Token

NOW_MS = 1_800_000_000_000


class Clocks:
    """Both clocks of the module, which the test moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.passed_ms = 0
        monkeypatch.setattr(held_token, "uptime_ms", lambda: self.passed_ms)
        monkeypatch.setattr(held_token, "wall_ms", lambda: NOW_MS + self.passed_ms)


class Issuer:
    """Counts its tokens, which live for 20 s or say nothing of it."""

    def __init__(self, clocks: Clocks, life_ms: int | None = 20_000) -> None:
        self.clocks = clocks
        self.life_ms = life_ms
        self.is_away = False
        self.asked = 0

    def __call__(self) -> Token:
        self.asked += 1
        if self.is_away:
            raise TokenUnavailable("it is away")
        ends_ms = None if self.life_ms is None else NOW_MS + self.clocks.passed_ms + self.life_ms
        return Token(text=f"token-{self.asked}", expires_at_ms=ends_ms)


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    return Clocks(monkeypatch)


@pytest.mark.parametrize(("life_ms", "kept_ms"), [(20_000, 14_000), (None, 60_000)])
def test_a_token_is_kept_for_most_of_its_life(
    clocks: Clocks, life_ms: int | None, kept_ms: int
) -> None:
    held, issuer = HeldToken(), Issuer(clocks, life_ms)
    assert held.token(issuer).text == "token-1"
    clocks.passed_ms = kept_ms - 1
    assert held.token(issuer).text == "token-1"
    clocks.passed_ms = kept_ms
    assert held.token(issuer).text == "token-2"


def test_a_failure_is_told_to_all_who_ask_within_a_second(clocks: Clocks) -> None:
    held, issuer = HeldToken(), Issuer(clocks)
    issuer.is_away = True
    for _ in range(10):
        with pytest.raises(TokenUnavailable, match="it is away"):
            held.token(issuer)
    assert issuer.asked == 1
    issuer.is_away = False
    clocks.passed_ms = 1_000
    assert held.token(issuer).text == "token-2"


def test_a_token_that_a_broker_has_refused_is_not_shown_again(clocks: Clocks) -> None:
    held, issuer = HeldToken(), Issuer(clocks)
    first = held.token(issuer)
    held.forget(Token(text="of another time"))
    assert held.token(issuer) is first
    held.forget(first)
    assert held.token(issuer).text == "token-2"


def test_no_token_travels_to_another_process(clocks: Clocks) -> None:
    held, issuer = HeldToken(), Issuer(clocks)
    held.token(issuer)
    sent = pickle.dumps(held)
    assert b"token-1" not in sent
    assert pickle.loads(sent).token(issuer).text == "token-2"  # noqa: S301 - our own

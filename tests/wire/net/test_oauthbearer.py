"""Logins by tokens: what is said, what is refused, and that a session goes on with the next one.

The clock moves by hand: one that jumps when all tasks wait would not wait for a thread.
"""

from dataclasses import dataclass, field
from threading import Event

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from tests.doubles.sasl_broker import SaslScripts
from tests.wire.net.sasl_pool import METADATA, PLACE, pool_with
from wire.net import AuthenticationFailed, ConnectionClosed
from wire.net.errors import TokenUnavailable
from wire.net.oauthbearer import MOST_TOKEN_BYTES, client_first, is_token
from wire.net.security import BearerSasl, Token

FIRST = "eyJhbGciOiJub25lIn0.first-token.x"
LIFETIME_MS = 20_000


@dataclass
class Tokens:
    """Gives one token after the other; None stands for an issuer that is away."""

    given: list[str | None]
    key: str = "clusters.dc2.sasl.token_command"
    forgotten: list[Token] = field(default_factory=list)

    @property
    def origin(self) -> str:
        return f"{self.key}: aws"

    def token(self) -> Token:
        text = self.given.pop(0) if len(self.given) > 1 else self.given[0]
        if text is None:
            raise TokenUnavailable("clusters.dc2.sasl.token_command: aws: ended with status 1")
        return Token(text=text)

    def forget(self, token: Token) -> None:
        self.forgotten.append(token)


class SlowTokens(Tokens):
    """Waits with a token until it may go on."""

    def __init__(self, given: list[str | None]) -> None:
        super().__init__(given)
        self.was_asked, self.may_go_on = Event(), Event()
        self.may_go_on.set()

    def token(self) -> Token:
        self.was_asked.set()
        assert self.may_go_on.wait(60)
        return super().token()


def sasl_of(*given: str | None) -> tuple[BearerSasl, Tokens]:
    tokens = Tokens(list(given))
    return BearerSasl(source=tokens), tokens


@given(st.text(max_size=50))
def test_what_is_shown_as_a_token_cannot_end_the_message_early(text: str) -> None:
    if is_token(text):
        message = client_first(text)
        assert message == b"n,,\x01auth=Bearer " + text.encode("ascii") + b"\x01\x01"
        assert message.count(b"\x01") == 3
    else:
        assert not text or not text.isascii() or not text.rstrip("=").isalnum()


def test_a_token_has_a_limit() -> None:
    assert is_token("x" * MOST_TOKEN_BYTES)
    assert not is_token("x" * (MOST_TOKEN_BYTES + 1))


async def test_a_token_lets_us_in() -> None:
    sasl, _ = sasl_of(FIRST)
    scripts = SaslScripts(tokens={FIRST})
    async with pool_with(sasl, scripts) as (pool, _):
        connection = await pool.connection(PLACE)
        assert (await connection.request(METADATA)).topics == ()
    assert scripts.messages == [client_first(FIRST)]


async def test_a_refused_token_is_heard_out_forgotten_and_not_shown() -> None:
    sasl, tokens = sasl_of(FIRST)
    scripts = SaslScripts(tokens={"another"})
    async with pool_with(sasl, scripts) as (pool, _):
        with pytest.raises(AuthenticationFailed) as caught:
            await pool.connection(PLACE)
    assert scripts.messages == [client_first(FIRST), b"\x01"], "else no broker says why"
    assert str(caught.value).startswith("dc2: memory:1: SASL authentication failed: Authentication")
    assert tokens.forgotten == [Token(text=FIRST)]
    for shown in (str(caught.value), repr(tokens.forgotten)):
        assert FIRST not in shown


async def test_without_a_token_the_broker_is_told_nothing_and_not_asked_all_the_time(
    mock_clock: MockClock,  # noqa: ARG001
) -> None:
    sasl, _ = sasl_of(None)
    scripts = SaslScripts()
    async with pool_with(sasl, scripts) as (pool, _):
        with pytest.raises(AuthenticationFailed, match=r"dc2: memory:1: .*token_command: aws: "):
            await pool.connection(PLACE)
        sasl.source.token = pytest.fail  # type: ignore[method-assign]
        with pytest.raises(AuthenticationFailed, match="token_command"):
            await pool.connection(PLACE)
    assert scripts.attempts == 0


async def test_a_session_goes_on_with_the_next_token_on_the_same_connection(
    mock_clock: MockClock,
) -> None:
    every = [f"token-{number}" for number in range(40)]
    sasl, _ = sasl_of(*every)
    scripts = SaslScripts(tokens={*every}, lifetime_ms=LIFETIME_MS)
    async with pool_with(sasl, scripts) as (pool, _):
        connection = await pool.connection(PLACE)
        for _ in range(600):  # ten minutes
            await connection.request(METADATA)
            mock_clock.jump(1)
        assert await pool.connection(PLACE) is connection
    shown = scripts.messages
    assert 600 / 19 - 1 <= len(shown) <= 600 / 17 + 1
    assert shown == [client_first(token) for token in every[: len(shown)]]


@pytest.mark.parametrize("renewed_from", [0.85, 0.95])
async def test_an_issuer_that_is_away_for_a_moment_ends_no_session(
    mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch, renewed_from: float
) -> None:
    monkeypatch.setattr("wire.net.sasl.RENEWED_FROM", renewed_from)
    monkeypatch.setattr("wire.net.sasl.RENEWED_WITHIN", 0.0)
    sasl, _ = sasl_of("a", None, "b")
    scripts = SaslScripts(tokens={"a", "b"}, lifetime_ms=LIFETIME_MS)
    async with pool_with(sasl, scripts) as (pool, _):
        connection = await pool.connection(PLACE)
        for _ in range(80):
            await connection.request(METADATA)
            mock_clock.jump(0.25)
        assert scripts.messages == [client_first("a"), client_first("b")]


async def test_a_caller_that_gives_up_while_a_token_is_fetched_ends_no_session(
    mock_clock: MockClock,
) -> None:
    tokens = SlowTokens(["a", "b"])
    scripts = SaslScripts(tokens={"a", "b"}, lifetime_ms=LIFETIME_MS)
    async with pool_with(BearerSasl(source=tokens), scripts) as (pool, _):
        connection = await pool.connection(PLACE)
        mock_clock.jump(19.5)
        tokens.may_go_on.clear()
        tokens.was_asked.clear()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(connection.request, METADATA)
            assert await trio.to_thread.run_sync(tokens.was_asked.wait, 60)
            nursery.cancel_scope.cancel()
        tokens.may_go_on.set()
        await connection.request(METADATA)
    assert len(scripts.messages) == 2


async def test_an_issuer_that_stays_away_ends_the_session_in_words(
    mock_clock: MockClock,
) -> None:
    sasl, _ = sasl_of("a", None)
    scripts = SaslScripts(tokens={"a"}, lifetime_ms=LIFETIME_MS)
    served_s = 0
    async with pool_with(sasl, scripts) as (pool, _):
        connection = await pool.connection(PLACE)
        while connection.is_open:
            mock_clock.jump(1)
            try:
                await connection.request(METADATA)
            except ConnectionClosed as fault:
                assert "token_command: aws: ended with status 1" in str(fault)  # noqa: PT017
            else:
                served_s += 1
        assert 17 <= served_s <= 20


async def test_an_issuer_that_hangs_keeps_no_other_cluster_from_its_tokens() -> None:
    hanging = SlowTokens([FIRST])
    hanging.may_go_on.clear()
    prompt = Tokens([FIRST], key="clusters.dc1.sasl.token_endpoint")

    async def log_in(tokens: Tokens) -> None:
        sasl, scripts = BearerSasl(source=tokens), SaslScripts(tokens={FIRST})
        async with pool_with(sasl, scripts) as (pool, _):
            assert (await pool.connection(PLACE)).is_open

    async with trio.open_nursery() as nursery:
        for _ in range(8):
            nursery.start_soon(log_in, hanging)
        await trio.testing.wait_all_tasks_blocked()
        try:
            with trio.fail_after(10):
                await log_in(prompt)
        finally:
            hanging.may_go_on.set()

"""SASL on a connection: the exchange that begins it, and its renewal in time (KIP-152, KIP-368)."""

import random
import secrets
from collections.abc import Awaitable
from functools import partial
from typing import Final, assert_never

import trio

from wire.errors import ErrorCode
from wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from wire.messages.sasl_handshake import SaslHandshakeRequest
from wire.net.connection import Connection
from wire.net.errors import (
    AuthenticationFailed,
    ConnectionClosed,
    NetworkFault,
    TokenUnavailable,
)
from wire.net.kerberos import KerberosExchange, KerberosRefused
from wire.net.oauthbearer import HEARD
from wire.net.oauthbearer import client_first as bearer_first
from wire.net.retries import code_of
from wire.net.scram import ScramRefused, client_final, client_first, verify_server
from wire.net.security import (
    AnySasl,
    BearerSasl,
    KerberosSasl,
    Mechanism,
    Sasl,
    Token,
    reveal,
)

RENEWED_FROM: Final = 0.85
RENEWED_WITHIN: Final = 0.1
"""Kafka's own clients renew after 85 to 95 % of the lifetime (KIP-368)."""
TOKEN_AGAIN_S: Final = 1.0
"""After a token could not be had, for as long as the session still holds."""
TOKEN_AGAIN_LEAST_S: Final = 0.1
"""A session that is nearly over asks again sooner, after half of what is left of it, at least."""
_NONCE_BYTES: Final = 24
_AT_ONCE: Final = 4
"""Threads that wait for what one login shows; more would take those that look up addresses."""
_WAITING: Final[dict[str, trio.CapacityLimiter]] = {}
"""By the setting that names the login: an issuer that hangs keeps nobody from another one."""


async def authenticate(connection: Connection, sasl: AnySasl, host: str) -> int:
    """Return for how long, in milliseconds, the broker takes our word; 0 for ever.

    Raises AuthenticationFailed, and what `Connection.exchange` raises. TokenUnavailable comes
    before the broker has been told anything: the connection is as it was.
    """
    return await (await _ready(connection, sasl, host))


async def _ready(connection: Connection, sasl: AnySasl, host: str) -> Awaitable[int]:
    """Get what is to be shown, and return the exchange that shows it.

    Raises TokenUnavailable, and then the broker has been told nothing.
    """
    match sasl:
        case BearerSasl():
            return _named(sasl, _bearer(connection, sasl, await _token(connection, sasl)))
        case KerberosSasl():
            return _named(sasl, _kerberos(connection, await _ticket(connection, sasl, host)))
        case Sasl():
            return _named(sasl, _by_password(connection, sasl))
        case _:
            assert_never(sasl)


async def _named(sasl: AnySasl, exchange: Awaitable[int]) -> int:
    """Have a refusal say whose credentials are refused, so that a person finds them."""
    try:
        return await exchange
    except AuthenticationFailed as fault:
        raise AuthenticationFailed(f"{fault} ({sasl.origin})") from fault


async def _by_password(connection: Connection, sasl: Sasl) -> int:
    await _shake_hands(connection, sasl.mechanism)
    if sasl.mechanism is Mechanism.PLAIN:
        message = f"\0{sasl.username}\0{reveal(sasl.password)}".encode()
        return (await _step(connection, message)).session_lifetime_ms
    try:
        return await _scram(connection, sasl)
    except ScramRefused as refused:
        raise _failed(connection, str(refused)) from refused


async def _shake_hands(connection: Connection, mechanism: Mechanism) -> None:
    answer = await connection.exchange(SaslHandshakeRequest(mechanism=mechanism.value))
    if answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        offered = ", ".join(answer.mechanisms) or "none"
        raise _failed(connection, f"{mechanism.value} is not enabled there, only {offered}")
    if answer.error_code == ErrorCode.ILLEGAL_SASL_STATE:
        raise _failed(connection, "this listener does not ask for SASL")
    if answer.error_code != ErrorCode.NONE:
        raise _failed(connection, code_of(answer.error_code).name)


def _limiter(key: str) -> trio.CapacityLimiter:
    return _WAITING.setdefault(key, trio.CapacityLimiter(_AT_ONCE))


async def _token(connection: Connection, sasl: BearerSasl) -> Token:
    try:
        return await trio.to_thread.run_sync(
            sasl.source.token, abandon_on_cancel=True, limiter=_limiter(sasl.source.key)
        )
    except TokenUnavailable as reason:
        raise TokenUnavailable(f"{connection.name}: {reason}") from None


async def _bearer(connection: Connection, sasl: BearerSasl, token: Token) -> int:
    await _shake_hands(connection, sasl.mechanism)
    try:
        answer = await _step(connection, bearer_first(token.text))
        if answer.auth_bytes:  # a refusal, behind which the broker says why
            await _step(connection, HEARD)
            raise _failed(connection, "the token is refused")
    except AuthenticationFailed:
        sasl.source.forget(token)
        raise
    return answer.session_lifetime_ms


async def _ticket(connection: Connection, sasl: KerberosSasl, host: str) -> KerberosExchange:
    begin = partial(KerberosExchange.begin, sasl, host)
    try:
        return await trio.to_thread.run_sync(
            begin, abandon_on_cancel=True, limiter=_limiter(sasl.key)
        )
    except TokenUnavailable as reason:
        raise TokenUnavailable(f"{connection.name}: {reason}") from None


async def _kerberos(connection: Connection, exchange: KerberosExchange) -> int:
    await _shake_hands(connection, Mechanism.GSSAPI)
    message: bytes | None = exchange.first
    try:
        while message is not None:
            answer = await _step(connection, message)
            message = exchange.answer(bytes(answer.auth_bytes))
    except KerberosRefused as refused:
        raise _failed(connection, str(refused)) from refused
    return answer.session_lifetime_ms


async def _scram(connection: Connection, sasl: Sasl) -> int:
    nonce = secrets.token_urlsafe(_NONCE_BYTES)
    first = await _step(connection, client_first(sasl.username, nonce))
    final = client_final(
        sasl.mechanism, sasl.username, reveal(sasl.password), nonce, bytes(first.auth_bytes)
    )
    last = await _step(connection, final.message)
    verify_server(final, bytes(last.auth_bytes))
    return last.session_lifetime_ms


async def _step(connection: Connection, token: bytes) -> SaslAuthenticateResponse:
    answer = await connection.exchange(SaslAuthenticateRequest(auth_bytes=token))
    if answer.error_code != ErrorCode.NONE:
        code = code_of(answer.error_code)
        raise _failed(connection, answer.error_message or code.name)
    return answer


def _failed(connection: Connection, why: str) -> AuthenticationFailed:
    return AuthenticationFailed(f"{connection.name}: SASL authentication failed: {why}")


class RenewedSession:
    """Authenticates a connection again when its time is nearly over, before the next request.

    A connection that nobody uses is left alone: a broker looks at the time when it is asked.
    """

    def __init__(self, connection: Connection, sasl: AnySasl, host: str, lifetime_ms: int) -> None:
        """Begin with a session of the broker on this host that lasts so long."""
        self._connection = connection
        self._sasl = sasl
        self._host = host
        self._one_at_a_time = trio.Lock()
        self._renew_at, self._ends_at = _renewal(lifetime_ms)

    async def wait_fresh(self) -> None:
        """Return once nobody has to authenticate; raises ConnectionClosed when that failed.

        While one task renews, all others wait here: in between the broker takes nothing else.
        """
        while trio.current_time() >= self._renew_at:
            async with self._one_at_a_time:
                if trio.current_time() >= self._renew_at:
                    await self._renew()

    async def _renew(self) -> None:
        try:
            # A caller that gives up meanwhile leaves the connection as it was.
            exchange = await _ready(self._connection, self._sasl, self._host)
        except TokenUnavailable as fault:
            # The issuer may be back before the session is over; so long the broker serves us.
            self._renew_at = _token_again(trio.current_time(), self._ends_at)
            if self._renew_at < self._ends_at:
                return
            self._connection.close(f"not authenticated again: {fault}")
            raise ConnectionClosed(str(fault)) from fault
        await self._exchange(exchange)

    async def _exchange(self, exchange: Awaitable[int]) -> None:
        """Have the broker told; once that has begun, it has to come to its end."""
        try:
            lifetime_ms = await exchange
        except NetworkFault as fault:
            self._connection.close(f"not authenticated again: {fault}")
            raise ConnectionClosed(str(fault)) from fault
        except BaseException:
            self._connection.close("authenticating again was given up")
            raise
        self._renew_at, self._ends_at = _renewal(lifetime_ms)


def _renewal(lifetime_ms: int) -> tuple[float, float]:
    """Return when, by trio's clock, a session that begins now is to be renewed, and its end."""
    if lifetime_ms <= 0:
        return float("inf"), float("inf")
    spread = random.random() * RENEWED_WITHIN  # noqa: S311 - spreads clients, keeps no secret
    now, lifetime_s = trio.current_time(), lifetime_ms / 1_000
    return now + lifetime_s * (RENEWED_FROM + spread), now + lifetime_s


def _token_again(now: float, ends_at: float) -> float:
    """Return when to ask for a token again; at or behind the session's end it is too late."""
    return now + min(TOKEN_AGAIN_S, max((ends_at - now) / 2, TOKEN_AGAIN_LEAST_S))

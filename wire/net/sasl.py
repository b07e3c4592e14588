"""SASL on a connection: the exchange that begins it, and its renewal in time (KIP-152, KIP-368)."""

import random
import secrets
from typing import Final

import trio

from wire.errors import ErrorCode
from wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from wire.messages.sasl_handshake import SaslHandshakeRequest
from wire.net.connection import Connection
from wire.net.errors import AuthenticationFailed, ConnectionClosed, NetworkFault
from wire.net.retries import code_of
from wire.net.scram import ScramRefused, client_final, client_first, verify_server
from wire.net.security import Mechanism, Sasl, reveal

RENEWED_FROM: Final = 0.85
RENEWED_WITHIN: Final = 0.1
"""Kafka's own clients renew after 85 to 95 % of the lifetime (KIP-368)."""
_NONCE_BYTES: Final = 24


async def authenticate(connection: Connection, sasl: Sasl) -> int:
    """Return for how long, in milliseconds, the broker takes our word; 0 for ever.

    Raises AuthenticationFailed, and what `Connection.exchange` raises.
    """
    answer = await connection.exchange(SaslHandshakeRequest(mechanism=sasl.mechanism.value))
    if answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        offered = ", ".join(answer.mechanisms) or "none"
        raise _failed(connection, f"{sasl.mechanism.value} is not enabled there, only {offered}")
    if answer.error_code == ErrorCode.ILLEGAL_SASL_STATE:
        raise _failed(connection, "this listener does not ask for SASL")
    if answer.error_code != ErrorCode.NONE:
        raise _failed(connection, code_of(answer.error_code).name)
    if sasl.mechanism is Mechanism.PLAIN:
        token = f"\0{sasl.username}\0{reveal(sasl.password)}".encode()
        return (await _step(connection, token)).session_lifetime_ms
    try:
        return await _scram(connection, sasl)
    except ScramRefused as refused:
        raise _failed(connection, str(refused)) from refused


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

    def __init__(self, connection: Connection, sasl: Sasl, lifetime_ms: int) -> None:
        self._connection = connection
        self._sasl = sasl
        self._one_at_a_time = trio.Lock()
        self._renew_at = _renewal(lifetime_ms)

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
            lifetime_ms = await authenticate(self._connection, self._sasl)
        except NetworkFault as fault:
            self._connection.close(f"not authenticated again: {fault}")
            raise ConnectionClosed(str(fault)) from fault
        except BaseException:
            self._connection.close("authenticating again was given up")
            raise
        self._renew_at = _renewal(lifetime_ms)


def _renewal(lifetime_ms: int) -> float:
    """Return when, by trio's clock, a session that begins now is to be renewed."""
    if lifetime_ms <= 0:
        return float("inf")
    spread = random.random() * RENEWED_WITHIN  # noqa: S311 - spreads clients, keeps no secret
    return trio.current_time() + lifetime_ms / 1_000 * (RENEWED_FROM + spread)

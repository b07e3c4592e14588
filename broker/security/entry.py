"""How a connection comes in: over TLS or not, by SASL or not, as the listener asks it."""

import math
import socket
from typing import Final

import trio

from broker.listeners import Listener
from broker.security.credentials import ScramUsers
from broker.security.gate import ANONYMOUS, Gate, Passage
from broker.security.settings import ListenerSecurity
from broker.security.tls import HandshakeFailed, TlsPeer, renewed_context
from runtime.process.clock import wall_ms
from wire.values import frozen

AUTHENTICATE_WITHIN_S: Final = 30.0
"""From being accepted to being known. Kafka has no such limit, only the one of idle connections,
and a stranger who says a little now and then would never be one."""


@frozen
class IncomingConnection:
    """A connection that came in.

    principal   who it is so far: of a certificate, or Kafka's `User:ANONYMOUS`
    passage     what it still has to say, None where nothing is asked
    deadline    by when it has to be said, on trio's clock
    """

    listener: str = "PLAINTEXT"
    tls: TlsPeer | None = None
    principal: str = ANONYMOUS
    passage: Passage | None = None
    deadline: float = math.inf


class Entrance:
    """The steps of one listener with a connection before its first request."""

    def __init__(
        self,
        listener: Listener,
        security: ListenerSecurity,
        users: ScramUsers,
        for_brokers: Gate | None = None,
    ) -> None:
        """Read the files of TLS. Raises OSError, of which ssl.SSLError is one."""
        self.listener = listener
        self._tls = security.tls
        self._context = None if security.tls is None else renewed_context(security.tls)
        self._gate = for_brokers if security.logins is None else _gate(security, users)

    async def admit(self, peer_socket: socket.socket) -> IncomingConnection | None:
        """Return how it came in, None when it left at once. Raises HandshakeFailed and OSError."""
        name = self.listener.name
        passage = None if self._gate is None else Passage(self._gate)
        is_demanded = passage is not None and passage.is_demanded
        deadline = trio.current_time() + AUTHENTICATE_WITHIN_S
        tls = None
        if self._context is not None:
            tls = TlsPeer(peer_socket, self._context.current())
            if not await _shake_hands(tls, deadline):
                return None
        return IncomingConnection(
            listener=name,
            tls=tls,
            principal=ANONYMOUS if tls is None else self._principal(tls),
            passage=passage,
            deadline=deadline if is_demanded else math.inf,
        )

    def _principal(self, tls: TlsPeer) -> str:
        """Return who a certificate's owner is. Raises HandshakeFailed where no rule says so."""
        subject = tls.principal()
        if subject is None or self._tls is None:
            return ANONYMOUS
        name = self._tls.principals.name(subject)
        if name is None:
            raise HandshakeFailed(f"no rule of ssl.principal.mapping.rules fits {subject!r:.200}")
        return f"User:{name}"


def _gate(security: ListenerSecurity, users: ScramUsers) -> Gate:
    assert security.logins is not None, "the listener asks for SASL"
    tokens = None
    if security.tokens is not None:
        # Half a second and 20 MiB of libraries, which brokers without tokens are spared.
        from broker.security.token_users import JwksUsers  # noqa: PLC0415

        tokens = JwksUsers(security.tokens, wall_ms)
    return Gate(security.logins, users, security.session_lifetime_ms, tokens=tokens)


async def _shake_hands(tls: TlsPeer, deadline: float) -> bool:
    with trio.CancelScope(deadline=deadline):
        return await tls.handshake()
    raise HandshakeFailed(f"it was not complete within {AUTHENTICATE_WITHIN_S:.0f} s")

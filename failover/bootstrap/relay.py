"""One client's connection, carried to a broker of the active site until that is another one.

    client ──► head of each request looked at ──► broker
           ◄──────────── bytes as they come ◄────

Nothing is decoded but the first eight bytes of each request, and nothing is kept: a peer that does
not read holds up its own connection alone. SASL passes through, so that a client is at the broker
whoever it is there. TLS ends here and begins anew, without a certificate of ours: the broker must
not take a client for this program.
"""

import ssl
from collections.abc import Callable, Iterable
from typing import Final

import trio

from failover.bootstrap.the_way import HEAD, request_bytes
from runtime.process.tasks import background_tasks
from wire.net.errors import AuthenticationFailed, BrokerUnreachable
from wire.net.tls import tls_name
from wire.net.tls_context import reason_of
from wire.net.transport import Address, connect_socket
from wire.values import frozen

CONNECT_TIMEOUT_S: Final = 3.0
"""For one broker: a lost site's addresses may swallow what is sent to them."""


@frozen(kw_only=False)
class IdleLimits:
    """How long a connection may be silent, in either direction."""

    idle_s: float = 60.0
    """A client that knows its brokers has no use for this connection any more."""
    first_s: float = 10.0
    """Until the client's first request."""


async def reach_broker(
    addresses: Iterable[Address], context: ssl.SSLContext | None
) -> trio.abc.Stream:
    """Return a connection to the first broker that answers.

    Raises BrokerUnreachable, with the reason of each, and AuthenticationFailed for a certificate
    that is not trusted.
    """
    reasons: list[str] = []
    for host, port in addresses:
        where = f"{host}:{port}"
        try:
            with trio.fail_after(CONNECT_TIMEOUT_S):
                connected = await connect_socket((host, port))
                stream = trio.SocketStream(trio.socket.from_stdlib_socket(connected))
                return stream if context is None else await _encrypted(stream, context, host)
        except BrokerUnreachable as fault:
            reasons.append(str(fault))
        except trio.TooSlowError:
            reasons.append(f"{where}: no answer within {CONNECT_TIMEOUT_S:g} s")
        except trio.BrokenResourceError as error:
            cause = error.__cause__
            if isinstance(cause, ssl.SSLCertVerificationError):
                why = f"the broker's certificate is not trusted: {reason_of(cause)}"
                raise AuthenticationFailed(f"{where}: {why}") from error
            reasons.append(f"{where}: TLS: {cause or error}")
    raise BrokerUnreachable("; ".join(reasons))


async def _encrypted(
    stream: trio.abc.Stream, context: ssl.SSLContext, host: str
) -> trio.abc.Stream:
    encrypted = trio.SSLStream(
        stream, context, server_hostname=tls_name(host), https_compatible=True
    )
    try:
        await encrypted.do_handshake()
    except BaseException:
        await trio.aclose_forcefully(encrypted)
        raise
    return encrypted


async def carry(
    client: trio.abc.Stream,
    broker: trio.abc.Stream,
    patience: IdleLimits,
    note_movement: Callable[[], None] = lambda: None,
) -> None:
    """Carry both ways until a side leaves or is silent for too long. Raises NotTheWay.

    `note_movement` is called whenever bytes move.
    """
    with trio.CancelScope(deadline=trio.current_time() + patience.first_s) as scope:
        async with background_tasks() as tasks:
            carrying = _Carrying(scope, patience, note_movement)
            tasks.start_soon(carrying.answers, broker, client)
            await carrying.requests(client, broker)


class _Carrying:
    """One connection under way; its scope ends when nothing has moved for too long."""

    def __init__(
        self, scope: trio.CancelScope, patience: IdleLimits, note_movement: Callable[[], None]
    ) -> None:
        self._scope = scope
        self._idle_s = patience.idle_s
        self._note_movement = note_movement

    def _moved(self) -> None:
        self._scope.deadline = trio.current_time() + self._idle_s
        self._note_movement()

    async def requests(self, client: trio.abc.Stream, broker: trio.abc.Stream) -> None:
        """Pass requests on as they come, each once its head is here."""
        held = bytearray()
        left = 0
        """What is still to come of a request that has been looked at."""
        async for chunk in client:
            held += chunk
            passing = 0
            while passing < len(held):
                if left:
                    taken = min(left, len(held) - passing)
                    passing, left = passing + taken, left - taken
                elif len(held) - passing >= HEAD.size:
                    left = request_bytes(memoryview(held)[passing:])
                else:
                    break
            if passing:
                self._moved()
                await broker.send_all(bytes(held[:passing]))
                self._moved()
                del held[:passing]

    async def answers(self, broker: trio.abc.Stream, client: trio.abc.Stream) -> None:
        """Pass answers on as they come; when a side leaves, the other is let go."""
        try:
            async for chunk in broker:
                self._moved()
                await client.send_all(chunk)
                self._moved()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # as if it had ended in order
        self._scope.cancel()

"""From an address to a connection that knows what the broker speaks."""

from dataclasses import field
from typing import Final

import trio

from wire.errors import ErrorCode
from wire.messages.api_versions import ApiVersionsRequest
from wire.net.backoff import Backoff
from wire.net.buffers import BufferPool
from wire.net.connection import DEFAULT_REQUEST_TIMEOUT_MS, Connection, MaySend, always
from wire.net.errors import AuthenticationFailed, BrokerUnreachable, NetworkFault
from wire.net.frames import MAX_RESPONSE_BYTES
from wire.net.sasl import RenewedSession, authenticate
from wire.net.security import AnySasl
from wire.net.tls import TlsTransport
from wire.net.transport import Address, Dial, dial_tcp
from wire.primitives import pack_int16
from wire.values import frozen

NEGOTIATED_IN: Final = 3
"""The version of ApiVersions that is tried first; a broker that lacks it knows version 0."""
WHO_WE_ARE: Final = ApiVersionsRequest(
    client_software_name="kafka-disaster-recovery", client_software_version="0.4.0"
)

_CODE_AT: Final = slice(4, 6)
_UNSUPPORTED: Final = pack_int16(ErrorCode.UNSUPPORTED_VERSION)


@frozen
class ConnectionSettings:
    """The settings that all connections of a client have in common."""

    client_id: str
    cluster_name: str = ""
    """Put before the address in what connections and faults say."""
    sasl: AnySasl | None = None
    request_timeout_ms: int = DEFAULT_REQUEST_TIMEOUT_MS
    max_response_bytes: int = MAX_RESPONSE_BYTES
    dial: Dial = dial_tcp
    buffers: BufferPool = field(default_factory=BufferPool)
    may_send: MaySend = always
    backoff: Backoff = field(default_factory=Backoff)
    """Of a broker that has not failed yet."""


async def connect(
    nursery: trio.Nursery, address: Address, settings: ConnectionSettings
) -> Connection:
    """Return a connection whose tasks run in `nursery`.

    Raises BrokerUnreachable if that cannot be, AuthenticationFailed if it must not be.
    """
    name = f"{address[0]}:{address[1]}"
    transport = await settings.dial(address)
    connection = Connection(
        transport,
        name=name,
        client_id=settings.client_id,
        request_timeout_ms=settings.request_timeout_ms,
        max_response_bytes=settings.max_response_bytes,
        buffers=settings.buffers,
    )
    connection.may_send = settings.may_send
    connection.start(nursery)
    try:
        await _negotiate(connection)
        if settings.sasl is not None:
            await _begin_session(connection, settings.sasl, address[0])
    except AuthenticationFailed:
        connection.close("not authenticated")
        raise
    except NetworkFault as fault:
        connection.close("the handshake failed")
        # A broker that wants a client certificate says so after TLS itself has succeeded.
        if isinstance(transport, TlsTransport) and transport.refusal is not None:
            raise AuthenticationFailed(f"{name}: TLS: {transport.refusal}") from fault
        raise BrokerUnreachable(f"{name}: handshake: {fault}") from fault
    except BaseException:
        connection.close("the handshake was given up")
        raise
    if settings.cluster_name:
        connection.name = f"{settings.cluster_name}: {name}"
    return connection


async def _begin_session(connection: Connection, sasl: AnySasl, host: str) -> None:
    lifetime_ms = await authenticate(connection, sasl, host)
    if lifetime_ms > 0:
        connection.session = RenewedSession(connection, sasl, host, lifetime_ms)


async def _negotiate(connection: Connection) -> None:
    pending = await connection.send(WHO_WE_ARE, version=NEGOTIATED_IN)
    frame = memoryview(await pending.wait_frame())
    # Of an answer that says "unsupported" only the code is looked at: its body is version 0 from
    # a broker, and something else from librdkafka's mock broker.
    if frame[_CODE_AT].tobytes() == _UNSUPPORTED:
        answer = await connection.request(ApiVersionsRequest(), version=0)
    else:
        answer = pending.decode(frame)
    if answer.error_code != ErrorCode.NONE:
        raise BrokerUnreachable(f"{connection.name}: ApiVersions: error {answer.error_code}")
    connection.learn_versions(
        {api.api_key: range(api.min_version, api.max_version + 1) for api in answer.api_keys}
    )

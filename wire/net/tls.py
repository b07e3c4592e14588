"""TLS as another `Dial`: encryption in memory, so that parts are gathered and sent in one go.

    parts ─► SSLObject ─► outgoing ─► socket          what the socket does not take at once stays
    buffer ◄─ SSLObject ◄─ incoming ◄─ socket         here, and is reported as not yet taken

`send_now` says that bytes went only when their ciphertext has. The caller offers the rest again,
beginning with the same bytes, which is what `Connection` does; they are skipped then.
"""

import socket
import ssl
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Final

import trio

from wire.net.ciphertext import Ciphertext
from wire.net.client_settings import ORDINARY, SocketSettings
from wire.net.errors import AuthenticationFailed, BrokerUnreachable
from wire.net.security import Tls
from wire.net.tls_context import RenewedContext, reason_of, renewed_client_context
from wire.net.transport import (
    MAX_PARTS_AT_ONCE,
    Address,
    Transport,
    close_socket,
    connect_socket,
    waiting_in,
)
from wire.primitives import Buffer

SMALL_BYTES: Final = 8 * 1024
"""Parts below are joined: each write is a TLS record, and a record costs as much as a few KiB."""
PIECE_BYTES: Final = 256 * 1024
RECEIVE_BYTES: Final = 128 * 1024


class TlsTransport:
    """TLS over a connected socket; `handshake` comes first."""

    __slots__ = (
        "_closed",
        "_incoming",
        "_is_agreed",
        "_outgoing",
        "_promised",
        "_received",
        "_shown",
        "_socket",
        "_tls",
        "refusal",
    )
    waits_for_least: ClassVar = False

    def __init__(
        self, connected: socket.socket, context: ssl.SSLContext, host: str, shown: str = ""
    ) -> None:
        """Have `shown` say of which certificate of ours a refusal is."""
        self._shown = shown
        connected.settimeout(0)
        self._socket = connected
        self._incoming = ssl.MemoryBIO()
        self._outgoing = Ciphertext(connected)
        self._tls = context.wrap_bio(
            self._incoming, self._outgoing.bio, server_hostname=tls_name(host)
        )
        self._received = memoryview(bytearray(RECEIVE_BYTES))
        self._promised = 0
        """Bytes that are encrypted and not sent: the next `send_now` begins with them."""
        self._closed = False
        self._is_agreed = False
        self.refusal: str | None = None
        """Why the broker ended it, where it has said so: a client certificate, mostly."""

    async def handshake(self) -> None:
        """Agree on keys and verify the broker; ssl.SSLError and OSError as they come."""
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._flush_all()
            except ssl.SSLError:
                self._outgoing.flush()  # tells the broker what is wrong
                raise
            else:
                await self._flush_all()
                self._is_agreed = True
                return
            if not await self._feed():
                raise ConnectionResetError("closed by the broker: does it speak TLS on this port?")

    def send_now(self, parts: Sequence[Buffer]) -> int:
        self._check_open()
        if not self._outgoing.flush():
            return 0
        taken, self._promised = self._promised, 0
        for piece in _pieces(parts[:MAX_PARTS_AT_ONCE], skip=taken):
            self._encrypt(piece)
            if self._outgoing.bio.pending >= PIECE_BYTES:
                if not self._outgoing.flush():
                    return taken
                taken, self._promised = taken + self._promised, 0
        if self._outgoing.flush():
            taken, self._promised = taken + self._promised, 0
        return taken

    async def wait_sendable(self) -> None:
        self._check_open()
        await trio.lowlevel.wait_writable(self._socket)

    async def receive_into(self, buffer: memoryview, least: int = 1) -> int:  # noqa: ARG002
        filled = 0
        while filled < len(buffer):
            self._check_open()
            try:
                # The annotation of `read` knows only of the call without a buffer.
                size: Any = self._tls.read(len(buffer) - filled, buffer[filled:])
            except ssl.SSLWantReadError:
                if filled:
                    break
                await self._feed()
                continue
            except ssl.SSLEOFError:
                break
            except ssl.SSLError as fault:
                self.refusal = f"{reason_of(fault)} ({self._shown})"
                raise
            if not size:
                break
            filled += size
        if self._outgoing.bio.pending:  # an answer to a change of keys
            self._outgoing.flush()
        return filled

    def waiting_bytes(self) -> tuple[int, int]:
        return (0, 0) if self._closed else waiting_in(self._socket)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            # An alert that says what is wrong with the broker may still be under way.
            close_socket(self._socket, discards=self._is_agreed)

    def _check_open(self) -> None:
        if self._closed:
            raise trio.ClosedResourceError

    async def _feed(self) -> int:
        """Wait for ciphertext and pass it in; return how much there was, 0 at the end."""
        while True:
            self._check_open()
            await trio.lowlevel.wait_readable(self._socket)
            try:
                size = self._socket.recv_into(self._received)
            except BlockingIOError:
                continue
            if size:
                self._incoming.write(self._received[:size])
            else:
                self._incoming.write_eof()
            return size

    def _encrypt(self, piece: memoryview) -> None:
        self._promised += len(piece)
        while piece:
            piece = piece[self._tls.write(piece) :]

    async def _flush_all(self) -> None:
        while not self._outgoing.flush():
            await self.wait_sendable()


def tls_name(host: str) -> str:
    """Return the name that is sent (SNI) and held against certificates: without a dot at its end.

    Neither of them has it (RFC 6066, 3).
    """
    return host.removesuffix(".")


def _pieces(parts: Sequence[Buffer], *, skip: int) -> Iterator[memoryview]:
    """Yield the bytes behind the first ``skip``: small parts joined, large ones in slices."""
    small: list[memoryview] = []
    for part in parts:
        view = memoryview(part)
        if skip >= len(view):
            skip -= len(view)
            continue
        view, skip = view[skip:], 0
        if len(view) < SMALL_BYTES:
            small.append(view)
            continue
        if small:
            yield memoryview(b"".join(small))
            small.clear()
        for start in range(0, len(view), PIECE_BYTES):
            yield view[start : start + PIECE_BYTES]
    if small:
        yield memoryview(b"".join(small))


class TlsDial:
    """Connects with TLS. Files that were changed, as certificates are renewed, are read again.

    While they cannot be used, what they held last holds.
    """

    def __init__(self, tls: Tls, settings: SocketSettings = ORDINARY) -> None:
        """Read nothing yet."""
        self._tls = tls
        self._settings = settings
        self._renewed: RenewedContext | None = None

    async def __call__(self, address: Address) -> Transport:
        """Connect and shake hands; AuthenticationFailed where certificates are the reason."""
        host, port = address
        where = f"{host}:{port}"
        try:
            context = await self._current_context()
        except OSError as fault:
            why = reason_of(fault) if isinstance(fault, ssl.SSLError) else fault.strerror
            named = f"{self._tls.trusted}; {self._tls.shown}"
            raise AuthenticationFailed(f"{where}: TLS files: {why} ({named})") from fault
        connected = await connect_socket(address, self._settings)
        transport = TlsTransport(connected, context, host, self._tls.shown)
        try:
            with trio.fail_after(self._settings.connect_timeout_s):
                await transport.handshake()
        except BaseException as fault:
            transport.close()
            if isinstance(fault, ssl.SSLCertVerificationError):
                why = f"the broker's certificate is not trusted: {reason_of(fault)}"
                raise AuthenticationFailed(f"{where}: {why} ({self._tls.trusted})") from fault
            if isinstance(fault, ssl.SSLError):
                why = f"{reason_of(fault)} ({self._tls.shown})"
                raise AuthenticationFailed(f"{where}: TLS handshake: {why}") from fault
            if isinstance(fault, OSError):
                raise BrokerUnreachable(f"{where}: TLS handshake: {fault}") from fault
            if isinstance(fault, trio.TooSlowError):
                waited_s = self._settings.connect_timeout_s
                late = f"no answer within {waited_s:g} s: does it speak TLS there?"
                raise BrokerUnreachable(f"{where}: TLS handshake: {late}") from fault
            raise
        return transport

    async def _current_context(self) -> ssl.SSLContext:
        if self._renewed is not None and not self._tls.store_files:
            return self._renewed.current()
        # The key that a store is encrypted with takes long to derive from its password.
        ask = self._begin if self._renewed is None else self._renewed.current
        return await trio.to_thread.run_sync(ask) if self._tls.store_files else ask()

    def _begin(self) -> ssl.SSLContext:
        renewed = self._renewed = renewed_client_context(self._tls)
        return renewed.current()

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
from wire.net.errors import AuthenticationFailed, BrokerUnreachable
from wire.net.secret_file import FileSecret
from wire.net.security import Tls, reveal
from wire.net.transport import (
    CONNECT_TIMEOUT_S,
    MAX_PARTS_AT_ONCE,
    SYSTEMS_OWN,
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
        "_socket",
        "_tls",
        "refusal",
    )
    waits_for_least: ClassVar = False

    def __init__(self, connected: socket.socket, context: ssl.SSLContext, host: str) -> None:
        connected.settimeout(0)
        self._socket = connected
        self._incoming = ssl.MemoryBIO()
        self._outgoing = Ciphertext(connected)
        self._tls = context.wrap_bio(self._incoming, self._outgoing.bio, server_hostname=host)
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
                self.refusal = reason_of(fault)
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


def make_context(tls: Tls) -> ssl.SSLContext:
    """Read the files. Raises OSError, of which ssl.SSLError is one, without a file's name."""
    context = ssl.create_default_context(cafile=tls.ca)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = tls.checks_hostname
    if tls.certificate is not None:
        # Without a password OpenSSL would ask the terminal for one.
        password = reveal(tls.key_password or "")
        context.load_cert_chain(tls.certificate, tls.key, password)
    return context


def reason_of(fault: ssl.SSLError) -> str:
    """Return what went wrong in words, without OpenSSL's file and line."""
    if isinstance(fault, ssl.SSLCertVerificationError):
        return fault.verify_message
    return (fault.reason or str(fault)).lower().replace("_", " ")


class TlsDial:
    """Connects with TLS. Files that were changed, as certificates are renewed, are read again."""

    def __init__(self, tls: Tls, undelivered_ms: int = SYSTEMS_OWN) -> None:
        """Read nothing yet; `undelivered_ms` is as `connect_socket` has it."""
        self._tls = tls
        self._undelivered_ms = undelivered_ms
        self._context: ssl.SSLContext | None = None
        self._read_from: tuple[int, ...] = ()

    async def __call__(self, address: Address) -> Transport:
        """Connect and shake hands; AuthenticationFailed where certificates are the reason."""
        host, port = address
        where = f"{host}:{port}"
        try:
            context = self._current_context()
        except OSError as fault:
            why = reason_of(fault) if isinstance(fault, ssl.SSLError) else str(fault)
            raise AuthenticationFailed(f"{where}: TLS files: {why}") from fault
        connected = await connect_socket(address, self._undelivered_ms)
        transport = TlsTransport(connected, context, host)
        try:
            with trio.fail_after(CONNECT_TIMEOUT_S):
                await transport.handshake()
        except BaseException as fault:
            transport.close()
            if isinstance(fault, ssl.SSLCertVerificationError):
                why = f"the broker's certificate is not trusted: {reason_of(fault)}"
                raise AuthenticationFailed(f"{where}: {why}") from fault
            if isinstance(fault, ssl.SSLError):
                raise AuthenticationFailed(f"{where}: TLS handshake: {reason_of(fault)}") from fault
            if isinstance(fault, OSError):
                raise BrokerUnreachable(f"{where}: TLS handshake: {fault}") from fault
            if isinstance(fault, trio.TooSlowError):
                late = f"no answer within {CONNECT_TIMEOUT_S:.0f} s: does it speak TLS there?"
                raise BrokerUnreachable(f"{where}: TLS handshake: {late}") from fault
            raise
        return transport

    def _current_context(self) -> ssl.SSLContext:
        secret = self._tls.key_password
        password = secret.file if isinstance(secret, FileSecret) and secret.file.exists() else None
        files = (self._tls.ca, self._tls.certificate, self._tls.key, password)
        changed = tuple(file.stat().st_mtime_ns for file in files if file is not None)
        if self._context is None or changed != self._read_from:
            self._context = make_context(self._tls)
            self._read_from = changed
        return self._context

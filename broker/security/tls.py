"""TLS on an accepted connection: encryption in memory over the plain socket, which never blocks.

frames ◄─ SSLObject ◄─ incoming ◄─ socket
parts  ─► SSLObject ─► outgoing ─► socket      parts of files are read first: no sendfile here
"""

import socket
import ssl
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

import trio

from broker.log.results import FileSlice
from broker.security.settings import ServerTls
from broker.sending import Part, PeerGone, read_whole
from wire.net.ciphertext import Ciphertext
from wire.net.tls_context import RenewedContext

HANDSHAKE_RECORD: Final = 0x16
"""The first byte of every TLS conversation."""
SMALL_BYTES: Final = 8 * 1024
"""Parts below are joined: each write is a TLS record, and a record costs as much as a few KiB."""
PIECE_BYTES: Final = 128 * 1024
LINGER_S: Final = 1.0

_SCRATCH: Final = memoryview(bytearray(PIECE_BYTES))
"""Ciphertext between a socket and its SSLObject; nobody else runs in between."""
_CLIENT_AUTH: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
_SHORT_NAMES: Final = {
    "commonName": "CN",
    "organizationalUnitName": "OU",
    "organizationName": "O",
    "localityName": "L",
    "stateOrProvinceName": "ST",
    "countryName": "C",
    "domainComponent": "DC",
    "userId": "UID",
    "streetAddress": "STREET",
}
_TO_ESCAPE: Final = frozenset(',+"\\<>;')


class HandshakeFailed(Exception):
    """There will be no TLS with this peer; the message says why."""


class TlsPeer:
    """TLS over an accepted socket; `handshake` comes first."""

    __slots__ = ("_has_ended", "_incoming", "_outgoing", "_socket", "_tls")

    def __init__(self, peer_socket: socket.socket, context: ssl.SSLContext) -> None:
        self._socket = peer_socket
        self._incoming = ssl.MemoryBIO()
        self._outgoing = Ciphertext(peer_socket)
        self._tls = context.wrap_bio(self._incoming, self._outgoing.bio, server_side=True)
        self._has_ended = False

    async def handshake(self) -> bool:
        """Agree on keys; False when the peer left at once. Raises HandshakeFailed, OSError."""
        has_spoken = False
        while True:
            await trio.lowlevel.wait_readable(self._socket)
            size = self._feed()
            if size == 0:
                if not has_spoken:
                    return False
                raise HandshakeFailed("the client closed the connection in the middle of it")
            if size is not None and not has_spoken and _SCRATCH[0] != HANDSHAKE_RECORD:
                raise HandshakeFailed("the client does not speak TLS")
            has_spoken = has_spoken or size is not None
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._flush_all(LINGER_S)
            except ssl.SSLError as fault:
                await self._say_why()
                raise HandshakeFailed(reason_of(fault)) from fault
            else:
                await self._flush_all(LINGER_S)
                return True

    def principal(self) -> str | None:
        """Return the subject of the client's certificate as Java writes it, None without one."""
        certificate: Any = self._tls.getpeercert()  # its parts have several shapes
        return distinguished_name(certificate["subject"]) if certificate else None

    def recv_into(self, buffer: memoryview) -> int:
        """Receive as a socket that does not block: BlockingIOError for nothing, 0 for the end."""
        filled = 0
        while filled < len(buffer) and not self._has_ended:
            try:
                # The annotation of `read` knows only of the call without a buffer.
                size: Any = self._tls.read(len(buffer) - filled, buffer[filled:])
            except ssl.SSLWantReadError:
                if self._feed() is None:
                    break
                continue
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                size = 0
            self._has_ended = not size
            filled += size
        if self._outgoing.bio.pending:  # an answer to a change of keys
            self._outgoing.flush()
        if not filled and not self._has_ended:
            raise BlockingIOError
        return filled

    async def send_parts(self, parts: Sequence[Part], timeout_s: float) -> int:
        """Send everything in order; raises as `broker.sending.send_parts` does."""
        sent = 0
        for piece in _pieces(parts):
            sent += len(piece)
            self._encrypt(piece)
            if self._outgoing.bio.pending >= PIECE_BYTES:
                await self._flush_all(timeout_s)
                await trio.lowlevel.checkpoint()  # a reader of much leaves the others their turn
        await self._flush_all(timeout_s)
        return sent

    def say_goodbye(self) -> None:
        """Tell the peer that nothing was cut off, if that can be said at once."""
        with suppress(OSError):  # it is gone already
            with suppress(ssl.SSLWantReadError):  # for the peer's own goodbye, which nobody needs
                self._tls.unwrap()
            self._outgoing.flush()

    def _encrypt(self, piece: memoryview) -> None:
        while piece:
            piece = piece[self._tls.write(piece) :]

    async def _say_why(self) -> None:
        """Let the alert arrive: closing with bytes unread would take it back (a TCP reset)."""
        with trio.move_on_after(LINGER_S):
            try:
                await self._flush_all(LINGER_S)
                self._socket.shutdown(socket.SHUT_WR)
                while self._feed() != 0:
                    await trio.lowlevel.wait_readable(self._socket)
            except (OSError, PeerGone):
                return  # nobody is there to hear it

    def _feed(self) -> int | None:
        """Pass in the ciphertext that is there: how much, 0 at the end, None for nothing yet."""
        try:
            size = self._socket.recv_into(_SCRATCH)
        except BlockingIOError:
            return None
        if size:
            self._incoming.write(_SCRATCH[:size])
        else:
            self._incoming.write_eof()
        return size

    async def _flush_all(self, timeout_s: float) -> None:
        while not self._outgoing.flush():
            with trio.move_on_after(timeout_s) as waiting:
                await trio.lowlevel.wait_writable(self._socket)
            if waiting.cancelled_caught:
                raise PeerGone(f"it took no answers for {timeout_s:.0f} s")


def _pieces(parts: Sequence[Part]) -> Iterator[memoryview]:
    """Yield what is to be written at a time: small parts joined, files and large parts sliced."""
    small: list[memoryview] = []
    held = 0
    for part in parts:
        for piece in _slices(part):
            if held + len(piece) > PIECE_BYTES or len(piece) >= SMALL_BYTES:
                if small:
                    yield memoryview(b"".join(small))
                small, held = [], 0
            if len(piece) >= SMALL_BYTES:
                yield piece
            else:
                small.append(piece)
                held += len(piece)
    if small:
        yield memoryview(b"".join(small))


def _slices(part: Part) -> Iterator[memoryview]:
    if isinstance(part, FileSlice):
        for start in range(0, part.length, PIECE_BYTES):
            length = min(PIECE_BYTES, part.length - start)
            yield memoryview(read_whole(part.file, part.position + start, length))
        return
    view = memoryview(part)
    for start in range(0, len(view), PIECE_BYTES):
        yield view[start : start + PIECE_BYTES]


def renewed_context(tls: ServerTls) -> RenewedContext:
    """Return a listener's keys. Raises OSError, of which ssl.SSLError is one."""
    return RenewedContext(partial(make_context, tls), tls.keystore, tls.truststore)


def make_context(tls: ServerTls) -> ssl.SSLContext:
    """Read the files. Raises OSError, of which ssl.SSLError is one, without a file's name."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    # Without a password OpenSSL would ask the terminal for one.
    context.load_cert_chain(tls.keystore, password=tls.key_password or "")
    if tls.truststore is not None:
        context.load_verify_locations(tls.truststore)
    context.verify_mode = _CLIENT_AUTH[tls.client_auth]
    return context


def reason_of(fault: ssl.SSLError) -> str:
    """Return what went wrong in words, without OpenSSL's file and line."""
    if isinstance(fault, ssl.SSLCertVerificationError):
        return f"the client's certificate is not trusted: {fault.verify_message}"
    return (fault.reason or str(fault)).lower().replace("_", " ")


def distinguished_name(subject: Sequence[Sequence[tuple[str, str]]]) -> str:
    """Return a subject as RFC 2253 and Kafka's default principal write it: the last part first."""
    return ",".join(
        "+".join(f"{_SHORT_NAMES.get(name, name)}={_escaped(value)}" for name, value in part)
        for part in reversed(subject)
    )


def _escaped(value: str) -> str:
    text = "".join(f"\\{letter}" if letter in _TO_ESCAPE else letter for letter in value)
    return f"\\{text}" if text[:1] in {"#", " "} else text

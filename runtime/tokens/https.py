"""One POST over HTTPS, within a deadline and a limit of bytes. It blocks."""

import socket
import ssl
from time import monotonic
from typing import Final

import h11

from runtime.tokens.answers import MOST_ANSWER_BYTES
from runtime.tokens.https_address import HttpsAddress, Silent

_CHUNK_BYTES: Final = 16 * 1024


def post(
    address: HttpsAddress,
    context: ssl.SSLContext,
    headers: list[tuple[str, str]],
    body: bytes,
    *,
    deadline_s: float,
    wants_body: bool = True,
) -> tuple[int, bytes]:
    """Return the status and the body of the answer; a redirection is an answer like others.

    Unless the body is wanted none is read: the status is all of the answer, whatever follows.
    Raises TimeoutError, OSError, ssl.SSLError, and Silent for what is no answer of HTTP.
    """
    deadline = monotonic() + deadline_s
    plain = socket.create_connection((address.host, address.port), _left(deadline))
    with plain, context.wrap_socket(plain, server_hostname=address.host) as encrypted:
        http = h11.Connection(h11.CLIENT)
        request = h11.Request(
            method="POST",
            target=address.target,
            headers=[
                ("Host", address.authority),
                *headers,
                ("Content-Length", f"{len(body)}"),
                ("Connection", "close"),
            ],
        )
        for event in (request, h11.Data(data=body), h11.EndOfMessage()):
            encrypted.settimeout(_left(deadline))
            encrypted.sendall(http.send(event) or b"")
        try:
            return _answer(http, encrypted, deadline, wants_body=wants_body)
        except h11.RemoteProtocolError:
            raise Silent("what it answers is not HTTP, or is cut off") from None


def _answer(
    http: h11.Connection, encrypted: ssl.SSLSocket, deadline: float, *, wants_body: bool
) -> tuple[int, bytes]:
    status, body = 0, bytearray()
    while True:
        event = http.next_event()
        if event is h11.NEED_DATA:
            encrypted.settimeout(_left(deadline))
            http.receive_data(encrypted.recv(_CHUNK_BYTES))
        elif isinstance(event, h11.Response):
            status = event.status_code
            if not wants_body:
                return status, b""
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > MOST_ANSWER_BYTES:
                raise Silent(f"answers more than {MOST_ANSWER_BYTES} bytes")
        elif isinstance(event, h11.EndOfMessage):
            return status, bytes(body)
        elif isinstance(event, h11.ConnectionClosed):
            raise Silent("closed the connection without an answer")


def _left(deadline: float) -> float:
    """Return the seconds that are left. Raises TimeoutError when there are none."""
    left = deadline - monotonic()
    if left <= 0:
        raise TimeoutError
    return left

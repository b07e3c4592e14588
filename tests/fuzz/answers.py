"""What comes back for a thrown frame: nothing, or answers that a client can read."""

from struct import Struct
from typing import Final

from wire.headers import RequestHeader, decode_response
from wire.messages.table import APIS
from wire.primitives import MalformedMessage
from wire.request_headers import decode_request_header

SIZE: Final = Struct(">i")


def header_of(frame: bytes) -> RequestHeader | None:
    """Return the header of a frame, None where the broker cannot read it either."""
    (size,) = SIZE.unpack_from(frame)
    try:
        return decode_request_header(frame[SIZE.size : SIZE.size + max(size, 0)])[0]
    except MalformedMessage:
        return None


def unreadable(frame: bytes, received: bytes) -> str | None:
    """Return what is wrong with the answer to the first request of `frame`, None if nothing is."""
    if not received:
        return None
    header = header_of(frame)
    if header is None:
        return "an answer to what nobody can read"
    (size,) = SIZE.unpack_from(received)
    answer = received[SIZE.size : SIZE.size + size]
    if len(answer) < size:
        return f"{len(answer)} bytes of an answer of {size}"
    if SIZE.unpack_from(answer)[0] != header.correlation_id:
        return "the answer to another request"
    try:
        decode_response(APIS[header.api_key].RESPONSE, answer, header.api_version)
    except (MalformedMessage, KeyError, ValueError) as fault:
        return f"{header}: {fault!r}"
    return None

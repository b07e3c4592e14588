"""The head of a message: its size, and the request or response header.

The header's version follows from the message's: tagged fields in it (request v2, response v1)
exactly where the message is flexible. Except that the answer to ApiVersions never has any, because
who reads it does not know yet what the broker speaks (KIP-511).

An ApiVersions request of a version that the broker does not know is answered with a v0 body and
UNSUPPORTED_VERSION, so its response may be decoded as v0 whatever was asked for.
"""

from struct import Struct
from typing import Any, Final, NamedTuple, TypeVar

from wire.errors import ErrorCode
from wire.primitives import (
    Buffer,
    MalformedMessage,
    pack_int32,
    pack_nullable_string,
    read_int16,
    read_int32,
    skip_tagged_fields,
)
from wire.schema import ApiMessage, Piece, Request, decode_prefix, merge, pieces

SIZE_BYTES: Final = 4
LEAST_ANSWER_BYTES: Final = 8
"""The size and the correlation id."""
API_VERSIONS_KEY: Final = 18
_NO_TAGGED_FIELDS: Final = b"\x00"
START: Final = Struct(">hhi")
"""The part that the headers of all requests share: key, version and correlation id."""

Response = TypeVar("Response", bound=ApiMessage)


class RequestHeader(NamedTuple):
    """Which API and version a request is for, and how its answer is told from others.

    A named tuple, because one is made for every request that comes.
    """

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


def encode_request(header: RequestHeader, message: Request[Any]) -> list[Piece]:
    """Return a whole request as parts to be sent one after the other, the 4-byte size first.

    Records stay views. Raises Unencodable and UnsupportedVersion, and ValueError for a client id
    beyond 32,767 bytes.
    """
    assert header.api_key == message.API_KEY
    start = START.pack(header.api_key, header.api_version, header.correlation_id)
    # The client id keeps its old form in header v2 as well (KIP-482).
    parts: list[Piece] = [start + pack_nullable_string(header.client_id)]
    if header.api_version >= message.FLEXIBLE_SINCE:
        parts.append(_NO_TAGGED_FIELDS)
    return _framed(parts + pieces(message, header.api_version))


def encode_response(correlation_id: int, message: ApiMessage, version: int) -> list[Piece]:
    """Return a whole response as parts to be sent one after the other, the 4-byte size first.

    Records stay views. Raises Unencodable and UnsupportedVersion.
    """
    parts: list[Piece] = [pack_int32(correlation_id)]
    if _response_header_is_flexible(message, version):
        parts.append(_NO_TAGGED_FIELDS)
    return _framed(parts + pieces(message, version))


def _framed(parts: list[Piece]) -> list[Piece]:
    first, *others = merge(parts)  # a few where there were many
    size = sum(len(part) if isinstance(part, bytes) else part.nbytes for part in (first, *others))
    return [pack_int32(size) + first, *others]


def _response_header_is_flexible(message: ApiMessage | type[ApiMessage], version: int) -> bool:
    return message.API_KEY != API_VERSIONS_KEY and version >= message.FLEXIBLE_SINCE


def correlation_id_of(buffer: Buffer) -> int:
    """Return the number that tells which request a response (without its size) answers."""
    try:
        return read_int32(memoryview(buffer), 0)[0]
    except MalformedMessage as fault:
        raise in_header(fault) from None


def decode_response(cls: type[Response], buffer: Buffer, version: int) -> Response:
    """Return the message of a response without its size; records are views into `buffer`.

    Raises MalformedMessage and UnsupportedVersion.
    """
    view = memoryview(buffer)
    try:
        _, position = read_int32(view, 0)
        if _response_header_is_flexible(cls, version):
            _, position = skip_tagged_fields(view, position)
        if cls.API_KEY == API_VERSIONS_KEY:
            error_code, _ = read_int16(view, position)
            version = 0 if error_code == ErrorCode.UNSUPPORTED_VERSION else version
    except MalformedMessage as fault:
        raise in_header(fault) from None
    return decode_prefix(cls, view, version, position)[0]


def in_header(fault: MalformedMessage) -> MalformedMessage:
    """Return the fault as one of the header, which every message has."""
    return MalformedMessage(fault.reason, position=fault.position, where="header")

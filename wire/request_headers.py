"""Reading the header of a request, as who answers does: it needs the table of all messages."""

from struct import error as StructError  # noqa: N812 - it is an exception

from wire.headers import START, RequestHeader, in_header
from wire.messages.table import APIS
from wire.primitives import (
    Buffer,
    MalformedMessage,
    read_nullable_string,
    skip_tagged_fields,
    truncated,
)


def decode_request_header(buffer: Buffer) -> tuple[RequestHeader, int]:
    """Return the header of a request without its size, and where the body begins.

    The version may be one that is not served. For an API unknown here only the part that all
    headers share is read. Raises MalformedMessage.
    """
    view = memoryview(buffer)
    try:
        api_key, api_version, correlation_id = START.unpack_from(view, 0)
    except StructError:
        raise in_header(truncated(START.size, view, 0)) from None
    request = APIS.get(api_key)
    try:
        client_id, position = read_nullable_string(view, START.size)
        if request is not None and api_version >= request.FLEXIBLE_SINCE:
            _, position = skip_tagged_fields(view, position)
    except MalformedMessage as fault:
        raise in_header(fault) from None
    return RequestHeader(api_key, api_version, correlation_id, client_id), position

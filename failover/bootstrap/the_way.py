"""Which requests ask for the way to a cluster, and the first bytes that tell. Pure.

0        4     6         8
| size   | key | version | correlation id, client id, body ...
"""

from struct import Struct
from struct import error as StructError  # noqa: N812 - it is an exception
from typing import Final

from wire.messages.api_versions import ApiVersionsRequest
from wire.messages.describe_cluster import DescribeClusterRequest
from wire.messages.find_coordinator import FindCoordinatorRequest
from wire.messages.metadata import MetadataRequest
from wire.messages.sasl_authenticate import SaslAuthenticateRequest
from wire.messages.sasl_handshake import SaslHandshakeRequest

HEAD: Final = Struct(">ihh")
_SIZE_BYTES: Final = 4
MOST_BYTES: Final = 1024 * 1024
"""Of one request: names of some ten thousand topics, or a token of SASL."""
_LEAST_BYTES: Final = 8
"""Key, version and correlation id."""
NAMES: Final = {
    request.API_KEY: request.__name__.removesuffix("Request")
    for request in (
        ApiVersionsRequest,
        DescribeClusterRequest,
        FindCoordinatorRequest,
        MetadataRequest,
        SaslAuthenticateRequest,
        SaslHandshakeRequest,
    )
}
"""By key, the APIs that a client needs to find its brokers, and to say who it is."""


class NotTheWay(ValueError):
    """A request that is not for this endpoint; the message says what to do."""


def request_bytes(head: bytes | bytearray | memoryview) -> int:
    """Return how long the request is with its size, by its first `HEAD.size` bytes.

    Raises NotTheWay for one that asks for something else than the way.
    """
    try:
        size, key, version = HEAD.unpack_from(head)
    except StructError:
        raise NotTheWay("less than the head of a request") from None
    if not _LEAST_BYTES <= size <= MOST_BYTES:
        raise NotTheWay(
            f"a request of {size} bytes, where {_LEAST_BYTES} to {MOST_BYTES} are expected: does "
            "the client speak TLS on a listener without it?"
        )
    if key not in NAMES:
        raise NotTheWay(
            f"a request of API {key}: only {', '.join(sorted(NAMES.values()))} are carried; "
            "the client must reach the brokers themselves"
        )
    if key == SaslHandshakeRequest.API_KEY and not version:
        raise NotTheWay("SaslHandshake version 0: its tokens have no heads; use a client of today")
    return int(size) + _SIZE_BYTES

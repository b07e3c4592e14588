"""SaslAuthenticate, key 36, v0-2: one step of authentication.

v1: response session_lifetime_ms (KIP-368)
v2: flexible
"""

from typing import ClassVar

from wire.schema import bytes_, int16, int64, message, nullable_string, since


@message
class SaslAuthenticateResponse:
    """Bytes of the mechanism, and how long the session may last."""

    API_KEY: ClassVar[int] = 36
    VERSIONS: ClassVar[range] = range(3)
    FLEXIBLE_SINCE: ClassVar[int] = 2

    error_code: int16
    error_message: nullable_string = None
    auth_bytes: bytes_
    session_lifetime_ms: int64 = since(1, default=0, ignorable=True)


@message
class SaslAuthenticateRequest:
    """Bytes of the mechanism."""

    API_KEY: ClassVar[int] = 36
    VERSIONS: ClassVar[range] = range(3)
    FLEXIBLE_SINCE: ClassVar[int] = 2
    RESPONSE: ClassVar[type[SaslAuthenticateResponse]] = SaslAuthenticateResponse

    auth_bytes: bytes_

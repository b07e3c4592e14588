"""SaslHandshake, key 17, v0-1: choose how to authenticate.

v1: authentication follows in SaslAuthenticate (KIP-152)
"""

from typing import ClassVar

from wire.schema import NEVER_FLEXIBLE, int16, message, string


@message
class SaslHandshakeResponse:
    """The mechanisms enabled."""

    API_KEY: ClassVar[int] = 17
    VERSIONS: ClassVar[range] = range(2)
    FLEXIBLE_SINCE: ClassVar[int] = NEVER_FLEXIBLE

    error_code: int16
    mechanisms: tuple[string, ...]


@message
class SaslHandshakeRequest:
    """The mechanism wanted."""

    API_KEY: ClassVar[int] = 17
    VERSIONS: ClassVar[range] = range(2)
    FLEXIBLE_SINCE: ClassVar[int] = NEVER_FLEXIBLE
    RESPONSE: ClassVar[type[SaslHandshakeResponse]] = SaslHandshakeResponse

    mechanism: string

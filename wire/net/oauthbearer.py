"""The messages of OAUTHBEARER (RFC 7628) as Kafka speaks it (KIP-255). Pure.

client first    n,,^Aauth=Bearer TOKEN^A^A         ^A is the byte 1
server          (empty)                            who shows the token is let in
                {"status":"invalid_token"}         or is not, and says that it has heard so:
client          ^A                                 now the broker says why
"""

import re
from typing import Final

MOST_TOKEN_BYTES: Final = 64 * 1024
"""Tokens with many groups in them take some ten thousand bytes."""
HEARD: Final = b"\x01"
"""The client's answer to a refusal (RFC 7628, 3.2.3)."""

_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*")


def is_token(text: str) -> bool:
    """Say whether a text can be shown as a bearer token (RFC 6750, 2.1)."""
    return len(text) <= MOST_TOKEN_BYTES and _TOKEN.fullmatch(text) is not None


def client_first(token: str) -> bytes:
    """Return the message that shows a token, of which `is_token` holds."""
    return f"n,,\x01auth=Bearer {token}\x01\x01".encode()

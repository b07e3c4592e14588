"""What a client of OAUTHBEARER says to a broker (RFC 7628, 3.1), and what is made of it. Pure."""

import re
from dataclasses import field
from typing import Final, Protocol

from wire.net.oauthbearer import MOST_TOKEN_BYTES, is_token
from wire.values import frozen

REFUSAL: Final = b'{"status":"invalid_token"}'
"""Kafka's answer. The client says that it has heard so, and is told why then."""

# n,a=NAME,^Akey=value^A...^A: the header of GS2 (RFC 5801) and pairs; Kafka takes others than auth.
_FIRST: Final = re.compile(
    r"n,(?:a=(?P<name>[^,\x01]*))?,\x01(?P<pairs>(?:[A-Za-z]+=[^\x01]*\x01)+)\x01"
)
_BEARER: Final = re.compile(r"bearer +(?P<token>\S+)", re.IGNORECASE)


class TokenRefused(Exception):
    """A token lets nobody in; the text says why, in one line, and does not show it."""


class GarbledBearer(ValueError):
    """A message that is none of OAUTHBEARER."""


@frozen
class ShownToken:
    """A client's first message."""

    text: str = field(repr=False)
    authorization_id: str


@frozen
class TokenOwner:
    """The owner of a token that holds.

    lasts_ms     until the token ends: the client is told to show another one by then
    served_ms    until requests are answered no more: later, by the skew that clocks may have
    """

    name: str
    lasts_ms: int
    served_ms: int


class TokenUsers(Protocol):
    """Who comes in by tokens at one listener."""

    def let_in(self, token: str) -> TokenOwner:
        """Return a token's owner. Raises TokenRefused."""


def parse_token_message(message: bytes) -> ShownToken:
    """Return what a client shows. Raises GarbledBearer, and TokenRefused for a token too long."""
    if len(message) > 2 * MOST_TOKEN_BYTES:
        raise TokenRefused(f"the token has more than {MOST_TOKEN_BYTES} bytes")
    try:
        found = _FIRST.fullmatch(message.decode())
    except UnicodeDecodeError:
        found = None
    if found is None:
        raise GarbledBearer("the message of OAUTHBEARER is garbled")
    pairs = dict(pair.split("=", 1) for pair in found["pairs"][:-1].split("\x01"))
    shown = _BEARER.fullmatch(pairs.get("auth", ""))
    if shown is None:
        raise GarbledBearer("the message of OAUTHBEARER has no bearer token")
    if len(shown["token"]) > MOST_TOKEN_BYTES:
        raise TokenRefused(f"the token has more than {MOST_TOKEN_BYTES} bytes")
    if not is_token(shown["token"]):
        raise GarbledBearer("the token of OAUTHBEARER has characters that none has")
    name = (found["name"] or "").replace("=2C", ",").replace("=3D", "=")
    return ShownToken(text=shown["token"], authorization_id=name)

"""The client's side of SCRAM (RFC 5802, 7677) as Kafka speaks it. Pure: the nonce is an argument.

    client first    n,,n=user,r=ours
    server first    r=oursTHEIRS,s=salt,i=4096
    client final    c=biws,r=oursTHEIRS,p=proof        proves that we know the password
    server final    v=signature                        proves that the broker does, too

Kafka leaves names and passwords as they are in UTF-8 (ScramFormatter.normalize), no SASLprep.
"""

import base64
import binascii
import hashlib
import hmac
import re
from dataclasses import field
from typing import Final

from wire.net.security import Mechanism
from wire.values import frozen

HASHES: Final = {Mechanism.SCRAM_SHA_256: "sha256", Mechanism.SCRAM_SHA_512: "sha512"}
LEAST_ITERATIONS: Final = 4_096
"""RFC 5802 and Kafka's ScramMechanism: fewer are refused, lest a server has us give it away."""
MOST_ITERATIONS: Final = 250_000
"""Kafka itself allows 16,384. More than this keep the processor busy on a stranger's word."""

_NO_CHANNEL_BINDING: Final = "n,,"
_SERVER_FIRST: Final = re.compile(
    r"(?:m=[^,]*,)?r=(?P<nonce>[!-+\--~]+),s=(?P<salt>[A-Za-z0-9+/=]+),i=(?P<count>[0-9]{1,9})(?:,.*)?"
)
_SERVER_FINAL: Final = re.compile(
    r"(?:e=(?P<error>[^,]*)|v=(?P<signature>[A-Za-z0-9+/=]+))(?:,.*)?"
)


class ScramRefused(ValueError):
    """The client cannot accept what the server said; the text says why, in one line."""


@frozen
class ClientFinal:
    """Our answer to the server's first message, and the signature that it must answer with."""

    message: bytes
    expected_signature: bytes = field(repr=False)


def client_first(username: str, nonce: str) -> bytes:
    """Return the message that begins; ``nonce`` is printable, random and without commas."""
    return f"{_NO_CHANNEL_BINDING}{_bare(username, nonce)}".encode()


def client_final(
    mechanism: Mechanism, username: str, password: str, nonce: str, server_first: bytes
) -> ClientFinal:
    """Return the proof. Raises ScramRefused for a message that is garbled or not for us."""
    text = _text(server_first)
    found = _SERVER_FIRST.fullmatch(text)
    if found is None or text.startswith("m="):
        raise ScramRefused("the broker's first SCRAM message is garbled")
    if not found["nonce"].startswith(nonce) or found["nonce"] == nonce:
        raise ScramRefused("the broker's nonce does not continue ours")
    iterations = int(found["count"])
    if not LEAST_ITERATIONS <= iterations <= MOST_ITERATIONS:
        raise ScramRefused(
            f"{iterations} iterations are not between {LEAST_ITERATIONS} and {MOST_ITERATIONS}"
        )
    name = HASHES[mechanism]
    salted = hashlib.pbkdf2_hmac(name, password.encode(), _decoded(found["salt"]), iterations)
    client_key = hmac.digest(salted, b"Client Key", name)
    stored_key = hashlib.new(name, client_key).digest()
    binding = base64.b64encode(_NO_CHANNEL_BINDING.encode()).decode()
    without_proof = f"c={binding},r={found['nonce']}"
    signed = f"{_bare(username, nonce)},{text},{without_proof}".encode()
    signature = hmac.digest(stored_key, signed, name)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    server_key = hmac.digest(salted, b"Server Key", name)
    return ClientFinal(
        message=f"{without_proof},p={base64.b64encode(proof).decode()}".encode(),
        expected_signature=hmac.digest(server_key, signed, name),
    )


def verify_server(sent: ClientFinal, server_final: bytes) -> None:
    """Return when the server has proved that it knows the password. Raises ScramRefused."""
    found = _SERVER_FINAL.fullmatch(_text(server_final))
    if found is None:
        raise ScramRefused("the broker's last SCRAM message is garbled")
    if found["error"] is not None:
        raise ScramRefused(f"the broker says {found['error']}")
    if not hmac.compare_digest(_decoded(found["signature"]), sent.expected_signature):
        raise ScramRefused("the broker does not know the password: it is not who it claims to be")


def _bare(username: str, nonce: str) -> str:
    escaped = username.replace("=", "=3D").replace(",", "=2C")
    return f"n={escaped},r={nonce}"


def _text(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise ScramRefused("the broker's SCRAM message is not UTF-8") from None


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ScramRefused("the broker's SCRAM message is not valid base64") from None

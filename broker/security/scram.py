"""The brokers' side of SCRAM (RFC 5802, 7677) as Kafka speaks it. Pure: nonces are arguments.

    client first    n,,n=user,r=theirs
    server first    r=theirsOURS,s=salt,i=4096
    client final    c=biws,r=theirsOURS,p=proof        proves that the client knows the password
    server final    v=signature                        proves that we know what the password makes

What is kept of a password (`ScramCredential`) does not give the password away, in Kafka's text:
`salt=...,stored_key=...,server_key=...,iterations=...`.
"""

import base64
import binascii
import hashlib
import hmac
import re
from dataclasses import field
from typing import Final

from wire.net.scram import HASHES, LEAST_ITERATIONS
from wire.net.security import Mechanism
from wire.values import frozen

MOST_ITERATIONS: Final = 16_384
"""Kafka's own limit (ScramMechanism, KIP-554)."""
MECHANISMS: Final = {1: Mechanism.SCRAM_SHA_256, 2: Mechanism.SCRAM_SHA_512}
"""By the numbers of AlterUserScramCredentials."""

_NAME: Final = r"(?:[^=,]|=2C|=3D)+"
_EXTENSIONS: Final = r"(?:,[A-Za-z]+=[^,]+)*"
_CLIENT_FIRST: Final = re.compile(
    rf"(?P<header>n,(?:a=(?P<authzid>{_NAME}))?,)"
    rf"(?P<bare>n=(?P<name>{_NAME}),r=(?P<nonce>[!-+\--~]+){_EXTENSIONS})"
)
_CLIENT_FINAL: Final = re.compile(
    rf"(?P<bare>c=(?P<binding>[A-Za-z0-9+/=]*),r=(?P<nonce>[!-+\--~]+){_EXTENSIONS})"
    r",p=(?P<proof>[A-Za-z0-9+/=]+)"
)
_CREDENTIAL: Final = re.compile(
    r"salt=(?P<salt>[A-Za-z0-9+/=]*),stored_key=(?P<stored>[A-Za-z0-9+/=]+),"
    r"server_key=(?P<server>[A-Za-z0-9+/=]+),iterations=(?P<iterations>[0-9]{1,9})"
)


class Garbled(ValueError):
    """A client's message, or a stored credential, is not of the right form."""


@frozen
class ScramCredential:
    """The credential that is kept of one password for one mechanism."""

    salt: bytes
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int

    def __str__(self) -> str:
        """Return Kafka's text of it (ScramCredentialUtils)."""
        salt, stored, server = map(_encoded, (self.salt, self.stored_key, self.server_key))
        return f"salt={salt},stored_key={stored},server_key={server},iterations={self.iterations}"


def parse_credential(text: str) -> ScramCredential:
    """Return what Kafka's text says. Raises Garbled, which does not quote it."""
    found = _CREDENTIAL.fullmatch(text)
    if found is None:
        raise Garbled("is not of the form salt=,stored_key=,server_key=,iterations=")
    return ScramCredential(
        salt=_decoded(found["salt"]),
        stored_key=_decoded(found["stored"]),
        server_key=_decoded(found["server"]),
        iterations=int(found["iterations"]),
    )


def credential_of(
    mechanism: Mechanism, password: str, salt: bytes, iterations: int = LEAST_ITERATIONS
) -> ScramCredential:
    """Return what is kept of a password; takes milliseconds, as it must."""
    name = HASHES[mechanism]
    salted = hashlib.pbkdf2_hmac(name, password.encode(), salt, iterations)
    return credential_of_salted(mechanism, salted, salt, iterations)


def credential_of_salted(
    mechanism: Mechanism, salted_password: bytes, salt: bytes, iterations: int
) -> ScramCredential:
    """Return what is kept of a password that a client has salted already (KIP-554)."""
    name = HASHES[mechanism]
    client_key = hmac.digest(salted_password, b"Client Key", name)
    return ScramCredential(
        salt=salt,
        stored_key=hashlib.new(name, client_key).digest(),
        server_key=hmac.digest(salted_password, b"Server Key", name),
        iterations=iterations,
    )


def nobody(mechanism: Mechanism, username: str, secret: bytes) -> ScramCredential:
    """Return a credential that no password fits, always the same for a name.

    So an unknown name is answered as a known one, and refused only with its proof.
    """
    name = HASHES[mechanism]
    return ScramCredential(
        salt=hmac.digest(secret, username.encode(), name)[:20],
        stored_key=hmac.digest(secret, b"stored" + username.encode(), name),
        server_key=hmac.digest(secret, b"server" + username.encode(), name),
        iterations=LEAST_ITERATIONS,
    )


@frozen
class ClientFirst:
    """How a client begins: who it wants to be, and its nonce."""

    username: str
    authorization_id: str | None
    nonce: str
    header: str
    bare: str


def parse_client_first(message: bytes) -> ClientFirst:
    """Return what the first message says; extensions are left aside. Raises Garbled."""
    found = _CLIENT_FIRST.fullmatch(_text(message))
    if found is None:
        raise Garbled("the client's first SCRAM message is garbled")
    authorization_id = found["authzid"]
    return ClientFirst(
        username=_unescaped(found["name"]),
        authorization_id=None if authorization_id is None else _unescaped(authorization_id),
        nonce=found["nonce"],
        header=found["header"],
        bare=found["bare"],
    )


@frozen
class Challenge:
    """Our answer to the first message, and what the proof is held against."""

    mechanism: Mechanism
    first: ClientFirst
    credential: ScramCredential
    nonce: str
    message: bytes


def challenge(
    mechanism: Mechanism, first: ClientFirst, credential: ScramCredential, our_nonce: str
) -> Challenge:
    """Return the server's first message; ``our_nonce`` is printable, random, without commas."""
    nonce = first.nonce + our_nonce
    salt = _encoded(credential.salt)
    return Challenge(
        mechanism=mechanism,
        first=first,
        credential=credential,
        nonce=nonce,
        message=f"r={nonce},s={salt},i={credential.iterations}".encode(),
    )


def finish(asked: Challenge, client_final: bytes) -> bytes | None:
    """Return the server's last message, None when the proof is wrong. Raises Garbled."""
    found = _CLIENT_FINAL.fullmatch(_text(client_final))
    if found is None:
        raise Garbled("the client's last SCRAM message is garbled")
    name = HASHES[asked.mechanism]
    signed = f"{asked.first.bare},{asked.message.decode()},{found['bare']}".encode()
    signature = hmac.digest(asked.credential.stored_key, signed, name)
    proof = _decoded(found["proof"])
    client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=False))
    is_proven = hmac.compare_digest(
        hashlib.new(name, client_key).digest(), asked.credential.stored_key
    )
    is_ours = hmac.compare_digest(found["nonce"], asked.nonce)
    is_bound = _decoded(found["binding"]) == asked.first.header.encode()
    if not (is_proven and is_ours and is_bound and len(proof) == len(signature)):
        return None
    server_signature = hmac.digest(asked.credential.server_key, signed, name)
    return f"v={_encoded(server_signature)}".encode()


def _unescaped(name: str) -> str:
    return name.replace("=2C", ",").replace("=3D", "=")


def _text(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise Garbled("a SCRAM message that is not UTF-8") from None


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise Garbled("not valid base64") from None

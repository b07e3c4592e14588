"""The brokers' side of SASL for a fake broker: PLAIN and SCRAM, written from the RFC."""

import base64
import hashlib
import hmac
import os
from dataclasses import dataclass, field
from typing import Any

from tests.doubles.fake_cluster import FakeBroker
from wire.headers import RequestHeader
from wire.messages.sasl_authenticate import SaslAuthenticateResponse
from wire.messages.sasl_handshake import SaslHandshakeResponse
from wire.net.scram import HASHES
from wire.net.security import Mechanism

RIGHT, WRONG = "pencil", "eraser"
HANDSHAKE, AUTHENTICATE = 17, 36
REFUSED = "Authentication failed during authentication due to invalid credentials"


@dataclass(slots=True, kw_only=True)
class ScramServer:
    """One exchange, from the client's first message to the signature."""

    mechanism: Mechanism
    password: str
    iterations: int = 4096
    salt: bytes = b"some salt"
    nonce: str = "theirs"
    knows_password: bool = True
    _first: str = ""
    _challenge: str = ""

    def challenge(self, first: bytes) -> bytes:
        """Answer the client's first message."""
        self._first = first.decode().removeprefix("n,,")
        nonce = self._first.partition(",r=")[2]
        salt = base64.b64encode(self.salt).decode()
        self._challenge = f"r={nonce}{self.nonce},s={salt},i={self.iterations}"
        return self._challenge.encode()

    def finish(self, final: bytes) -> bytes | None:
        """Return the signature, None when the proof is wrong."""
        name = HASHES[self.mechanism]
        without_proof, _, proof = final.decode().partition(",p=")
        signed = f"{self._first},{self._challenge},{without_proof}".encode()
        salted = hashlib.pbkdf2_hmac(name, self.password.encode(), self.salt, self.iterations)
        client_key = hmac.digest(salted, b"Client Key", name)
        stored = hashlib.new(name, client_key).digest()
        signature = hmac.digest(stored, signed, name)
        expected = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        if base64.b64decode(proof) != expected:
            return None
        server_key = hmac.digest(salted, b"Server Key", name)
        if not self.knows_password:
            server_key = bytes(len(server_key))
        return b"v=" + base64.b64encode(hmac.digest(server_key, signed, name))


@dataclass(slots=True, kw_only=True)
class SaslScripts:
    """Makes a fake broker ask for this user and password; one connection at a time."""

    username: str = "mirror"
    password: str = RIGHT
    mechanisms: tuple[Mechanism, ...] = tuple(Mechanism)
    lifetime_ms: int = 0
    tokens: set[str] = field(default_factory=set)
    """Those of OAUTHBEARER that let a client in."""
    messages: list[bytes] = field(default_factory=list)
    """What clients have sent in SaslAuthenticate."""
    attempts: int = 0
    chosen: Mechanism = Mechanism.PLAIN
    _server: ScramServer | None = field(default=None)

    def install(self, broker: FakeBroker) -> None:
        """Answer SaslHandshake and SaslAuthenticate of this broker."""
        broker.scripts[HANDSHAKE] = self._handshake
        broker.scripts[AUTHENTICATE] = self._authenticate
        broker.cluster.versions[HANDSHAKE] = range(2)
        broker.cluster.versions[AUTHENTICATE] = range(3)

    async def _handshake(self, _: RequestHeader, request: Any) -> SaslHandshakeResponse:
        names = tuple(one.value for one in self.mechanisms)
        self._server = None
        if request.mechanism not in names:
            return SaslHandshakeResponse(error_code=33, mechanisms=names)
        self.attempts += 1
        self.chosen = Mechanism(request.mechanism)
        return SaslHandshakeResponse(error_code=0, mechanisms=names)

    async def _authenticate(self, _: RequestHeader, request: Any) -> SaslAuthenticateResponse:
        token = bytes(request.auth_bytes)
        self.messages.append(token)
        if self.chosen is Mechanism.OAUTHBEARER:
            return self._bearer(token)
        if self.chosen is Mechanism.PLAIN:
            is_known = token == f"\0{self.username}\0{self.password}".encode()
            return self._done(b"" if is_known else None)
        if self._server is None:
            self._server = ScramServer(
                mechanism=self.chosen, password=self.password, nonce=os.urandom(6).hex()
            )
            return SaslAuthenticateResponse(
                error_code=0, auth_bytes=self._server.challenge(token), session_lifetime_ms=0
            )
        return self._done(self._server.finish(token))

    def _bearer(self, message: bytes) -> SaslAuthenticateResponse:
        """Refuse in two steps, as Kafka does (RFC 7628, 3.2.2)."""
        if message == b"\x01":
            return self._done(None)
        head, said, *rest = message.split(b"\x01")
        is_known = said.removeprefix(b"auth=Bearer ").decode() in self.tokens
        if (head, rest, is_known) == (b"n,,", [b"", b""], True):
            return self._done(b"")
        return SaslAuthenticateResponse(error_code=0, auth_bytes=b'{"status":"invalid_token"}')

    def _done(self, answer: bytes | None) -> SaslAuthenticateResponse:
        if answer is None:
            return SaslAuthenticateResponse(error_code=58, error_message=REFUSED, auth_bytes=b"")
        return SaslAuthenticateResponse(
            error_code=0, auth_bytes=answer, session_lifetime_ms=self.lifetime_ms
        )

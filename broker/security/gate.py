"""SASL authentication (KIP-43, KIP-152, KIP-368): one connection's way to its name. No I/O.

    ApiVersions ─► SaslHandshake ─► SaslAuthenticate ─► ... ─► everything
       WAITING         │              EXCHANGING               INSIDE
                       └── v0: bare tokens instead               │ SaslHandshake: once more
                                                                 └─► EXCHANGING, same name again

At a gate for brokers everything passes while nothing has been said; the way is the same.
Anything else ends the connection, as Kafka's SaslServerAuthenticator does it.
"""

import secrets
from collections.abc import Mapping
from enum import Enum
from typing import Final

from broker.framing import SIZE, CloseConnection
from broker.security.credentials import PlainUsers, ScramUsers
from broker.security.scram import Challenge, Garbled, challenge, finish, parse_client_first
from broker.security.settings import JaasLogin
from broker.security.token_exchange import (
    REFUSAL,
    GarbledBearer,
    TokenRefused,
    TokenUsers,
    parse_token_message,
)
from wire.errors import ErrorCode
from wire.headers import RequestHeader, encode_response
from wire.messages.api_versions import ApiVersionsRequest
from wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from wire.net.security import Mechanism
from wire.request_headers import decode_request_header
from wire.schema import Piece, decode_prefix
from wire.values import frozen

ANONYMOUS: Final = "User:ANONYMOUS"
HANDSHAKE: Final = SaslHandshakeRequest.API_KEY
AUTHENTICATE: Final = SaslAuthenticateRequest.API_KEY
OURS: Final = frozenset({HANDSHAKE, AUTHENTICATE})
_API_KEY_BYTES: Final = 2
WITH_HEADERS_SINCE: Final = 1
"""SaslHandshake v0 is followed by bare tokens, each behind its length."""
LEAST_BETWEEN_MS: Final = 1_000
"""Between two times that a connection authenticates anew, as in Kafka's KafkaChannel."""
_NONCE_BYTES: Final = 24
_PLAIN_PARTS: Final = 3


class GateState(Enum):
    """How far a connection has come."""

    WAITING = "nothing was said but, perhaps, ApiVersions"
    EXCHANGING = "the mechanism is chosen, tokens go to and fro"
    INSIDE = "we know who it is"
    REFUSED = "it ends after the answer"


class AuthenticationFailed(Exception):
    """The client is not let in; the message is for our log, and for Kafka's clients."""


@frozen
class Step:
    """An answer of the gate; `refusal` says why the connection ends then, after the delay."""

    answer: list[Piece]
    refusal: str | None = None


class Gate:
    """The SASL mechanisms of one listener, and the users that it lets in."""

    def __init__(
        self,
        logins: Mapping[Mechanism, JaasLogin],
        scram: ScramUsers,
        session_lifetime_ms: int,
        *,
        tokens: TokenUsers | None = None,
        is_for_brokers: bool = False,
    ) -> None:
        """`is_for_brokers`: only they pass by it, and clients are asked for nothing."""
        self.is_for_brokers = is_for_brokers
        self.mechanisms = tuple(mechanism.value for mechanism in logins)
        self.session_lifetime_ms = session_lifetime_ms
        self.scram = scram
        self.tokens = tokens
        self.plain = PlainUsers(logins[Mechanism.PLAIN].users if Mechanism.PLAIN in logins else {})


class Passage:
    """One connection's way through a gate."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self.state = GateState.WAITING
        self.principal = ANONYMOUS
        self._mechanism: Mechanism | None = None
        self._takes_bare_tokens = False
        self._challenge: Challenge | None = None
        self._unheard: str | None = None
        """Why a token was refused, until the client has taken note that it was."""
        self._session_lifetime_ms = 0
        self._expires_at_ms: int | None = None
        self._began_at_ms: int | None = None

    @property
    def is_demanded(self) -> bool:
        """Whether nothing is served to who has not passed."""
        return not self._gate.is_for_brokers

    @property
    def is_of_broker(self) -> bool:
        """Whether the peer has proved that it is a broker of this cluster."""
        return self._gate.is_for_brokers and self.state is GateState.INSIDE

    def take(self, frame: memoryview, now_ms: int) -> Step | None:
        """Return the answer to a request that is ours, None for one that may pass.

        Raises CloseConnection, and what decoding a request raises.
        """
        if self.state is GateState.EXCHANGING and self._takes_bare_tokens:
            return self._bare(bytes(frame), now_ms)
        if int.from_bytes(frame[:_API_KEY_BYTES]) not in OURS and self.is_open(now_ms):
            return None
        header, position = decode_request_header(frame)
        if header.api_key == HANDSHAKE and self._may_shake_hands(now_ms):
            _check_version(header, SaslHandshakeRequest.VERSIONS)
            request, _ = decode_prefix(SaslHandshakeRequest, frame, header.api_version, position)
            if self.is_demanded or request.mechanism in self._gate.mechanisms:
                return self._shake_hands(header, request, now_ms)
        if header.api_key == AUTHENTICATE and self.state is GateState.EXCHANGING:
            return self._authenticate(header, frame, position, now_ms)
        if self.is_open(now_ms) or (
            self.state is GateState.WAITING and header.api_key == ApiVersionsRequest.API_KEY
        ):
            return None
        raise CloseConnection(f"a request of API {header.api_key} before SASL authentication")

    def is_open(self, now_ms: int) -> bool:
        """Say whether all requests pass that are not SASL's; raises CloseConnection."""
        if self.state is GateState.INSIDE:
            if self._expires_at_ms is not None and now_ms >= self._expires_at_ms:
                raise CloseConnection(f"the session of {self.principal} is over")
            return True
        return self.state is GateState.WAITING and not self.is_demanded

    def _may_shake_hands(self, now_ms: int) -> bool:
        """Say whether this handshake begins something; else it is answered as out of place."""
        if self.state is GateState.WAITING:
            return True
        last = self._began_at_ms
        return self.state is GateState.INSIDE and (
            last is None or now_ms - last >= LEAST_BETWEEN_MS
        )

    def _shake_hands(
        self, header: RequestHeader, request: SaslHandshakeRequest, now_ms: int
    ) -> Step:
        offered, error = self._gate.mechanisms, ErrorCode.NONE
        if self._mechanism is not None:  # it stays who it is, and how it has shown that
            offered, self._began_at_ms = (self._mechanism.value,), now_ms
        if request.mechanism not in offered:
            error = ErrorCode.UNSUPPORTED_SASL_MECHANISM
        answer = SaslHandshakeResponse(error_code=error, mechanisms=offered)
        pieces = list(encode_response(header.correlation_id, answer, header.api_version))
        if error is not ErrorCode.NONE:
            self.state = GateState.REFUSED
            return Step(
                answer=pieces, refusal=f"SASL mechanism {request.mechanism!r} is not served"
            )
        self.state = GateState.EXCHANGING
        self._mechanism = Mechanism(request.mechanism)
        self._takes_bare_tokens = header.api_version < WITH_HEADERS_SINCE
        return Step(answer=pieces)

    def _authenticate(
        self, header: RequestHeader, frame: memoryview, position: int, now_ms: int
    ) -> Step:
        _check_version(header, SaslAuthenticateRequest.VERSIONS)
        request, _ = decode_prefix(SaslAuthenticateRequest, frame, header.api_version, position)
        refusal: str | None = None
        try:
            token = self._evaluate(bytes(request.auth_bytes), now_ms)
        except AuthenticationFailed as reason:
            self.state, refusal = GateState.REFUSED, str(reason)
            answer = SaslAuthenticateResponse(
                error_code=ErrorCode.SASL_AUTHENTICATION_FAILED,
                error_message=refusal,
                auth_bytes=b"",
            )
        else:
            is_inside = self.state is GateState.INSIDE
            answer = SaslAuthenticateResponse(
                error_code=ErrorCode.NONE,
                auth_bytes=token,
                session_lifetime_ms=self._session_lifetime_ms if is_inside else 0,
            )
        pieces = list(encode_response(header.correlation_id, answer, header.api_version))
        return Step(answer=pieces, refusal=refusal)

    def _bare(self, token: bytes, now_ms: int) -> Step:
        """Kafka 0.10's clients know nothing but tokens, and no word for a refusal."""
        try:
            answer = self._evaluate(token, now_ms)
        except AuthenticationFailed as reason:
            self.state = GateState.REFUSED
            return Step(answer=[], refusal=str(reason))
        return Step(answer=[SIZE.pack(len(answer)), answer])

    def _evaluate(self, token: bytes, now_ms: int) -> bytes:
        """Return the next token of ours. Raises AuthenticationFailed."""
        assert self._mechanism is not None, "tokens come after the handshake"
        if self._mechanism is Mechanism.PLAIN:
            self._let_in(self._plain(token), now_ms)
            return b""
        if self._mechanism is Mechanism.OAUTHBEARER:
            return self._bearer(token, now_ms)
        try:
            return self._scram(self._mechanism, token, now_ms)
        except Garbled as reason:
            raise AuthenticationFailed(str(reason)) from reason

    def _plain(self, token: bytes) -> str:
        """Return the user that a token of PLAIN (RFC 4616) names. Raises AuthenticationFailed."""
        try:
            parts = token.decode().split("\0")
        except UnicodeDecodeError:
            raise AuthenticationFailed(
                "Authentication failed: the token of PLAIN is not UTF-8"
            ) from None
        if len(parts) != _PLAIN_PARTS:
            raise AuthenticationFailed("Authentication failed: the token of PLAIN is garbled")
        authorization_id, username, password = parts
        if not username or not password:
            raise AuthenticationFailed("Authentication failed: username or password not specified")
        if not self._gate.plain.let_in(username, password):
            raise AuthenticationFailed("Authentication failed: Invalid username or password")
        _check_authorization(authorization_id, username)
        return username

    def _bearer(self, message: bytes, now_ms: int) -> bytes:
        """Let a token's owner in; a refusal takes two steps (RFC 7628, 3.2.3), as in Kafka."""
        assert self._gate.tokens is not None, "the mechanism is enabled"
        if self._unheard is not None:
            raise AuthenticationFailed(self._unheard)
        try:
            shown = parse_token_message(message)
            owner = self._gate.tokens.let_in(shown.text)
        except GarbledBearer as reason:
            raise AuthenticationFailed(f"Authentication failed: {reason}") from reason
        except TokenRefused as reason:
            self._unheard = f"Authentication failed: {reason}"
            return REFUSAL
        _check_authorization(shown.authorization_id, owner.name)
        self._let_in(owner.name, now_ms, lasts_ms=owner.lasts_ms, served_ms=owner.served_ms)
        return b""

    def _scram(self, mechanism: Mechanism, token: bytes, now_ms: int) -> bytes:
        if self._challenge is None:
            first = parse_client_first(token)
            credential = self._gate.scram.credential(mechanism, first.username)
            nonce = secrets.token_urlsafe(_NONCE_BYTES)
            self._challenge = challenge(mechanism, first, credential, nonce)
            return self._challenge.message
        asked, self._challenge = self._challenge, None
        last = finish(asked, token)
        if last is None and not self.is_demanded:
            raise AuthenticationFailed(
                "this listener asks clients for no SASL, and only brokers of the cluster know the "
                "secret that was asked for"
            )
        if last is None:
            raise AuthenticationFailed(
                "Authentication failed during authentication due to invalid credentials with "
                f"SASL mechanism {mechanism.value}"
            )
        _check_authorization(asked.first.authorization_id, asked.first.username)
        self._let_in(asked.first.username, now_ms)
        return last

    def _let_in(
        self, username: str, now_ms: int, *, lasts_ms: int | None = None, served_ms: int = 0
    ) -> None:
        """Note who it is; `lasts_ms` and `served_ms` are those of a token's owner."""
        principal = f"User:{username}"
        if self.principal not in {ANONYMOUS, principal}:
            raise AuthenticationFailed(
                f"Cannot change principals during re-authentication from {self.principal}: "
                f"{principal}"
            )
        self.principal = principal
        self.state = GateState.INSIDE
        lifetime_ms = self._gate.session_lifetime_ms
        if lasts_ms is None:
            served_ms = lasts_ms = lifetime_ms
        elif lifetime_ms:
            lasts_ms, served_ms = min(lasts_ms, lifetime_ms), min(served_ms, lifetime_ms)
        self._session_lifetime_ms = lasts_ms
        self._expires_at_ms = now_ms + served_ms if served_ms else None


def _check_authorization(authorization_id: str | None, username: str) -> None:
    if authorization_id and authorization_id != username:
        raise AuthenticationFailed(
            "Authentication failed: Client requested an authorization id that is different from "
            "username"
        )


def _check_version(header: RequestHeader, served: range) -> None:
    if header.api_version not in served:
        raise CloseConnection(f"version {header.api_version} of API {header.api_key} is not served")

"""Tokens at a gate: in by one, out when it ends, on with the next, and a refusal in two steps."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from broker.framing import CloseConnection
from broker.security.credentials import ScramUsers
from broker.security.gate import Gate, GateState, Passage, Step
from broker.security.settings import JaasLogin
from broker.security.token_exchange import REFUSAL, TokenOwner, TokenRefused
from wire.errors import ErrorCode
from wire.headers import RequestHeader, decode_response, encode_request
from wire.messages.metadata import MetadataRequest
from wire.messages.sasl_authenticate import SaslAuthenticateRequest
from wire.messages.sasl_handshake import SaslHandshakeRequest
from wire.net.oauthbearer import HEARD, client_first
from wire.net.security import Mechanism
from wire.schema import Request


@dataclass
class Owners:
    """Lets in who is known; a token lasts 20 s, and clocks may be 5 s apart."""

    known: dict[str, str] = field(
        default_factory=lambda: {"a1": "alice", "a2": "alice", "b": "bob"}
    )

    def let_in(self, token: str) -> TokenOwner:
        if token not in self.known:
            raise TokenRefused("the token ended 3 s ago")
        return TokenOwner(name=self.known[token], lasts_ms=20_000, served_ms=25_000)


def passage(lifetime_ms: int = 0) -> Passage:
    logins = {Mechanism.OAUTHBEARER: JaasLogin()}
    return Passage(Gate(logins, ScramUsers(), lifetime_ms, tokens=Owners()))


def frame(request: Request[Any]) -> memoryview:
    version = request.VERSIONS.stop - 1
    header = RequestHeader(
        api_key=request.API_KEY, api_version=version, correlation_id=7, client_id="test"
    )
    return memoryview(b"".join(map(bytes, encode_request(header, request))))[4:]


def ask(passage: Passage, request: Request[Any], now_ms: int = 0) -> tuple[Any, Step]:
    step = passage.take(frame(request), now_ms)
    assert step is not None
    sent = b"".join(map(bytes, step.answer))[4:]
    return decode_response(request.RESPONSE, sent, request.VERSIONS.stop - 1), step


def show(passage: Passage, message: bytes, now_ms: int = 0) -> tuple[Any, Step]:
    return ask(passage, SaslAuthenticateRequest(auth_bytes=message), now_ms)


def log_in(passage: Passage, token: str, now_ms: int = 0) -> tuple[Any, Step]:
    ask(passage, SaslHandshakeRequest(mechanism="OAUTHBEARER"), now_ms)
    return show(passage, client_first(token), now_ms)


@pytest.mark.parametrize(
    ("own_ms", "told_ms", "served_ms"),
    [(0, 20_000, 25_000), (60_000, 20_000, 25_000), (9_000, 9_000, 9_000)],
)
def test_a_session_lasts_as_long_as_its_token(own_ms: int, told_ms: int, served_ms: int) -> None:
    client = passage(own_ms)
    answer, _ = log_in(client, "a1")
    assert (answer.error_code, answer.auth_bytes, answer.session_lifetime_ms) == (0, b"", told_ms)
    assert client.principal == "User:alice"
    assert client.take(frame(MetadataRequest(topics=())), served_ms - 1) is None
    with pytest.raises(CloseConnection, match="the session of User:alice is over"):
        client.take(frame(MetadataRequest(topics=())), served_ms)


def test_the_next_token_carries_a_session_on() -> None:
    client = passage()
    log_in(client, "a1")
    for now_ms in range(17_000, 600_000, 17_000):
        answer, step = log_in(client, "a2", now_ms)
        assert (answer.session_lifetime_ms, step.refusal) == (20_000, None)
        assert client.take(frame(MetadataRequest(topics=())), now_ms + 19_999) is None


def test_a_token_of_somebody_else_ends_a_session() -> None:
    client = passage()
    log_in(client, "a1")
    answer, step = log_in(client, "b", 17_000)
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert "Cannot change principals" in (step.refusal or "")


@pytest.mark.parametrize("reply", [HEARD, client_first("a1"), b""])
def test_a_refused_client_is_told_why_whatever_it_says_then(reply: bytes) -> None:
    client = passage()
    answer, step = log_in(client, "stale")
    assert (answer.error_code, answer.auth_bytes, step.refusal) == (0, REFUSAL, None)
    assert client.principal == "User:ANONYMOUS"
    answer, step = show(client, reply)
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == "Authentication failed: the token ended 3 s ago"
    assert client.state is GateState.REFUSED
    assert client.principal == "User:ANONYMOUS"
    assert step.refusal == answer.error_message


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (b"rubbish", "the message of OAUTHBEARER is garbled"),
        (b"n,a=bob,\x01auth=Bearer a1\x01\x01", "authorization id that is different"),
    ],
)
def test_a_message_that_is_wrong_is_refused_at_once(message: bytes, said: str) -> None:
    client = passage()
    ask(client, SaslHandshakeRequest(mechanism="OAUTHBEARER"))
    answer, step = show(client, message)
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert said in (step.refusal or "")
    assert client.principal == "User:ANONYMOUS"

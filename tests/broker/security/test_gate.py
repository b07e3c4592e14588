"""Nothing but the right word lets a connection in, in the right order, and for as long as said."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from broker.framing import CloseConnection
from broker.security.credentials import PlainUsers, ScramUsers
from broker.security.gate import ANONYMOUS, Gate, GateState, Passage, Step
from broker.security.scram import credential_of
from broker.security.settings import JaasLogin
from wire.errors import ErrorCode
from wire.headers import RequestHeader, decode_response, encode_request
from wire.messages.api_versions import ApiVersionsRequest
from wire.messages.metadata import MetadataRequest
from wire.messages.sasl_authenticate import SaslAuthenticateRequest
from wire.messages.sasl_handshake import SaslHandshakeRequest
from wire.net.scram import client_final, client_first
from wire.net.security import Mechanism
from wire.primitives import MalformedMessage
from wire.schema import Request

RIGHT, WRONG = "pencil", "eraser"
LIFETIME_MS = 60_000
SHA_512 = Mechanism.SCRAM_SHA_512
KEPT = str(credential_of(SHA_512, RIGHT, b"salt"))


def gate(lifetime_ms: int = 0) -> Gate:
    """Let alice and bob in, by PLAIN and by SCRAM-SHA-512."""
    users = ScramUsers()
    for name in ("alice", "bob"):
        users.set_user(name, {SHA_512.value: KEPT})
    plain = JaasLogin(users={"alice": RIGHT, "bob": RIGHT})
    return Gate({Mechanism.PLAIN: plain, SHA_512: JaasLogin()}, users, lifetime_ms)


def frame(request: Request[Any], version: int | None = None) -> memoryview:
    version = request.VERSIONS.stop - 1 if version is None else version
    header = RequestHeader(
        api_key=request.API_KEY, api_version=version, correlation_id=7, client_id="test"
    )
    return memoryview(b"".join(map(bytes, encode_request(header, request))))[4:]


def ask(
    passage: Passage, request: Request[Any], now_ms: int = 0, version: int | None = None
) -> tuple[Any, Step]:
    step = passage.take(frame(request, version), now_ms)
    assert step is not None
    version = request.VERSIONS.stop - 1 if version is None else version
    sent = b"".join(map(bytes, step.answer))[4:]
    return decode_response(request.RESPONSE, sent, version), step


def shake_hands(passage: Passage, mechanism: str = "PLAIN", now_ms: int = 0) -> tuple[Any, Step]:
    return ask(passage, SaslHandshakeRequest(mechanism=mechanism), now_ms)


def plain(name: str = "alice", password: str = RIGHT, other: str = "") -> SaslAuthenticateRequest:
    return SaslAuthenticateRequest(auth_bytes=f"{other}\0{name}\0{password}".encode())


def scram(passage: Passage, name: str, password: str, now_ms: int = 0) -> tuple[Any, Step]:
    """Return the answer to the proof."""
    first = SaslAuthenticateRequest(auth_bytes=client_first(name, "abc"))
    answer, step = ask(passage, first, now_ms)
    assert (answer.error_code, step.refusal) == (ErrorCode.NONE, None)
    final = client_final(SHA_512, name, password, "abc", bytes(answer.auth_bytes))
    return ask(passage, SaslAuthenticateRequest(auth_bytes=final.message), now_ms)


def test_the_right_password_lets_in() -> None:
    passage = Passage(gate())
    assert passage.take(frame(ApiVersionsRequest()), 0) is None
    answer, _ = shake_hands(passage)
    assert (answer.error_code, answer.mechanisms) == (0, ("PLAIN", "SCRAM-SHA-512"))
    answer, step = ask(passage, plain())
    assert (answer.error_code, answer.session_lifetime_ms, step.refusal) == (0, 0, None)
    assert passage.principal == "User:alice"
    assert passage.take(frame(MetadataRequest(topics=None)), 10**12) is None


def test_scram_lets_in() -> None:
    passage = Passage(gate(LIFETIME_MS))
    shake_hands(passage, SHA_512.value)
    answer, step = scram(passage, "alice", RIGHT)
    assert (answer.error_code, answer.session_lifetime_ms) == (0, LIFETIME_MS)
    assert (step.refusal, passage.principal) == (None, "User:alice")


@pytest.mark.parametrize(("name", "password"), [("alice", WRONG), ("mallory", RIGHT)])
def test_a_stranger_is_refused_by_scram_in_the_same_words_at_the_same_step(
    name: str, password: str
) -> None:
    passage = Passage(gate())
    shake_hands(passage, SHA_512.value)
    answer, step = scram(passage, name, password)
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == step.refusal
    assert step.refusal == (
        "Authentication failed during authentication due to invalid credentials with SASL "
        "mechanism SCRAM-SHA-512"
    )
    assert (passage.state, passage.principal) == (GateState.REFUSED, ANONYMOUS)


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (plain(password=WRONG), "Invalid username or password"),
        (plain("mallory"), "Invalid username or password"),
        (plain(""), "username or password not specified"),
        (plain(password=""), "username or password not specified"),
        (plain(other="bob"), "authorization id that is different"),
        (SaslAuthenticateRequest(auth_bytes=b"alice"), "garbled"),
        (SaslAuthenticateRequest(auth_bytes=b"\0\xff\0x"), "not UTF-8"),
    ],
)
def test_plain_refuses(request_: SaslAuthenticateRequest, said: str) -> None:
    passage = Passage(gate())
    shake_hands(passage)
    answer, step = ask(passage, request_)
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert step.refusal is not None
    assert said in step.refusal
    assert passage.state is GateState.REFUSED


def test_an_unknown_mechanism_is_told_which_there_are() -> None:
    passage = Passage(gate())
    answer, step = shake_hands(passage, "GSSAPI")
    assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert answer.mechanisms == ("PLAIN", "SCRAM-SHA-512")
    assert step.refusal == "SASL mechanism 'GSSAPI' is not served"


@pytest.mark.parametrize("is_greeted", [True, False])
def test_nothing_else_is_served_before(is_greeted: bool) -> None:
    passage = Passage(gate())
    if is_greeted:
        shake_hands(passage)
        with pytest.raises(CloseConnection):
            passage.take(frame(ApiVersionsRequest()), 0)
    with pytest.raises(CloseConnection, match="API 3 before SASL authentication"):
        passage.take(frame(MetadataRequest(topics=None)), 0)


def test_tokens_without_a_handshake_end_the_connection() -> None:
    with pytest.raises(CloseConnection):
        Passage(gate()).take(frame(plain()), 0)


def test_after_the_old_handshake_tokens_come_bare() -> None:
    passage = Passage(gate())
    answer, _ = ask(passage, SaslHandshakeRequest(mechanism="PLAIN"), version=0)
    assert answer.error_code == 0
    step = passage.take(memoryview(f"\0alice\0{RIGHT}".encode()), 0)
    assert step == Step(answer=[b"\0\0\0\0", b""])
    assert passage.principal == "User:alice"
    passage = Passage(gate())
    ask(passage, SaslHandshakeRequest(mechanism="PLAIN"), version=0)
    step = passage.take(memoryview(f"\0alice\0{WRONG}".encode()), 0)
    assert step is not None
    assert (step.answer, step.refusal) == (
        [],
        "Authentication failed: Invalid username or password",
    )


def test_a_session_ends_unless_it_is_renewed_in_time() -> None:
    passage = Passage(gate(LIFETIME_MS))
    shake_hands(passage)
    ask(passage, plain())
    anything = frame(MetadataRequest(topics=None))
    assert passage.take(anything, LIFETIME_MS - 1) is None
    shake_hands(passage, now_ms=LIFETIME_MS - 1)
    ask(passage, plain(), LIFETIME_MS - 1)
    assert passage.take(anything, 2 * LIFETIME_MS - 2) is None
    with pytest.raises(CloseConnection, match="the session of User:alice is over"):
        passage.take(anything, 2 * LIFETIME_MS - 1)


def test_a_renewal_is_by_the_same_name_and_the_same_way() -> None:
    passage = Passage(gate(LIFETIME_MS))
    shake_hands(passage)
    ask(passage, plain())
    shake_hands(passage)
    _, step = ask(passage, plain("bob"))
    assert step.refusal == (
        "Cannot change principals during re-authentication from User:alice: User:bob"
    )
    passage = Passage(gate(LIFETIME_MS))
    shake_hands(passage)
    ask(passage, plain())
    answer, step = shake_hands(passage, SHA_512.value)
    assert (answer.error_code, answer.mechanisms) == (33, ("PLAIN",))
    assert step.refusal is not None


def test_who_renews_all_the_time_is_not_listened_to() -> None:
    passage = Passage(gate(LIFETIME_MS))
    shake_hands(passage)
    ask(passage, plain())
    shake_hands(passage)
    ask(passage, plain())
    again = frame(SaslHandshakeRequest(mechanism="PLAIN"))
    assert passage.take(again, 999) is None  # its handler answers ILLEGAL_SASL_STATE
    assert passage.take(again, 1_000) is not None


@given(st.binary(max_size=60), st.sampled_from(["", "PLAIN", SHA_512.value]))
def test_no_bytes_let_a_stranger_in(garbage: bytes, mechanism: str) -> None:
    passage = Passage(gate())
    if mechanism:
        shake_hands(passage, mechanism)
    for sent in (memoryview(garbage), frame(SaslAuthenticateRequest(auth_bytes=garbage))):
        try:
            passage.take(sent, 0)
        except (CloseConnection, MalformedMessage):
            continue
    assert (passage.state is not GateState.INSIDE, passage.principal) == (True, ANONYMOUS)


class AnyOrder(RuleBasedStateMachine):
    """Whatever is asked in whatever order: inside is who gave the right password, nobody else."""

    def __init__(self) -> None:
        super().__init__()
        self.passage = Passage(gate(LIFETIME_MS))
        self.now_ms = 0
        self.proved: str | None = None

    def send(self, request: Request[Any]) -> Step | None:
        try:
            return self.passage.take(frame(request), self.now_ms)
        except CloseConnection:
            self.passage, self.proved = Passage(gate(LIFETIME_MS)), None
            return None

    def end_refused(self, step: Step | None) -> None:
        if step is not None and step.refusal is not None:
            assert self.passage.state is GateState.REFUSED
            self.passage, self.proved = Passage(gate(LIFETIME_MS)), None

    @rule(mechanism=st.sampled_from(["PLAIN", "GSSAPI"]))
    def handshake(self, mechanism: str) -> None:
        self.end_refused(self.send(SaslHandshakeRequest(mechanism=mechanism)))

    @rule(name=st.sampled_from(["alice", "bob", "mallory"]), is_right=st.booleans())
    def authenticate(self, name: str, is_right: bool) -> None:
        was_exchanging = self.passage.state is GateState.EXCHANGING
        step = self.send(plain(name, RIGHT if is_right else WRONG))
        if was_exchanging and step is not None and step.refusal is None:
            assert is_right
            assert name != "mallory"
            assert self.proved in {None, name}
            self.proved = name
        self.end_refused(step)

    @precondition(lambda self: self.proved is not None)
    @rule(passed_ms=st.sampled_from([1, 1_000, LIFETIME_MS]))
    def time_passes(self, passed_ms: int) -> None:
        self.now_ms += passed_ms

    @rule()
    def ask_anything(self) -> None:
        was_inside = self.passage.state is GateState.INSIDE
        passage = self.passage
        step = self.send(MetadataRequest(topics=None))
        assert step is None
        if self.passage is passage:
            assert was_inside

    @invariant()
    def inside_is_who_proved_it(self) -> None:
        if self.passage.state is GateState.INSIDE:
            assert self.passage.principal == f"User:{self.proved}"


TestAnyOrder = AnyOrder.TestCase


def test_plain_users_are_told_apart() -> None:
    users = PlainUsers({"alice": RIGHT, "bob": "ü"})
    assert users.let_in("alice", RIGHT)
    assert users.let_in("bob", "ü")
    assert not users.let_in("bob", RIGHT)
    assert not users.let_in("", "")


def test_a_garbled_credential_in_zookeeper_lets_nobody_in_and_is_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    users = ScramUsers()
    users.set_user("alice", {SHA_512.value: KEPT, "SCRAM-SHA-256": "nonsense"})
    assert list(users.of("alice")) == [SHA_512]
    assert "user alice: ignored: SCRAM-SHA-256" in caplog.text
    users.set_user("alice", {})
    assert users.names() == []

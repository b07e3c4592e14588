"""SCRAM at the broker: the RFC's own example, our client's exchanges, and nothing else passes."""

import base64

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.security.scram import (
    Challenge,
    Garbled,
    challenge,
    credential_of,
    finish,
    nobody,
    parse_client_first,
    parse_credential,
)
from wire.net.scram import client_final, client_first, verify_server
from wire.net.security import Mechanism

SCRAM = st.sampled_from([Mechanism.SCRAM_SHA_256, Mechanism.SCRAM_SHA_512])
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
NONCES = st.text("abcXYZ019+/!~", min_size=1, max_size=40)
SALT = b"some salt"


def asked(mechanism: Mechanism, username: str, password: str, theirs: str, ours: str) -> Challenge:
    """Return the broker's challenge to a client that begins."""
    first = parse_client_first(client_first(username, theirs))
    assert first.username == username
    return challenge(mechanism, first, credential_of(mechanism, password, SALT), ours)


def test_the_exchange_of_rfc_7677_is_answered_as_there() -> None:
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    credential = credential_of(Mechanism.SCRAM_SHA_256, "pencil", salt)
    first = parse_client_first(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
    ours = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    sent = challenge(Mechanism.SCRAM_SHA_256, first, credential, ours)
    assert sent.message == (
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    )
    final = (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert finish(sent, final) == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


@settings(max_examples=25)
@given(SCRAM, NAMES, NAMES, NONCES, NONCES)
def test_who_knows_the_password_is_let_in_and_told_so(
    mechanism: Mechanism, username: str, password: str, theirs: str, ours: str
) -> None:
    sent = asked(mechanism, username, password, theirs, ours)
    final = client_final(mechanism, username, password, theirs, sent.message)
    last = finish(sent, final.message)
    assert last is not None
    verify_server(final, last)


@settings(max_examples=25)
@given(SCRAM, NAMES, NAMES)
def test_another_password_is_refused(mechanism: Mechanism, password: str, other: str) -> None:
    sent = asked(mechanism, "user", password, "abc", "def")
    final = client_final(mechanism, "user", other, "abc", sent.message)
    assert (finish(sent, final.message) is None) == (password != other)


def test_a_proof_for_another_exchange_is_refused() -> None:
    mechanism = Mechanism.SCRAM_SHA_256
    before = asked(mechanism, "user", "pencil", "abc", "then")
    final = client_final(mechanism, "user", "pencil", "abc", before.message)
    now = asked(mechanism, "user", "pencil", "abc", "now")
    assert finish(now, final.message) is None
    replayed = final.message.replace(b"abcthen", b"abcnow")
    assert finish(now, replayed) is None


def test_a_short_proof_is_refused() -> None:
    sent = asked(Mechanism.SCRAM_SHA_256, "user", "pencil", "abc", "def")
    for proof in (b"AA==", b"A" * 86 + b"=="):
        assert finish(sent, b"c=biws,r=abcdef,p=" + proof) is None


@given(SCRAM, st.binary(max_size=40), st.integers(4096, 16_384))
@settings(max_examples=15)
def test_a_credential_survives_kafkas_text(
    mechanism: Mechanism, salt: bytes, iterations: int
) -> None:
    credential = credential_of(mechanism, "pencil", salt, iterations)
    assert parse_credential(str(credential)) == credential


def test_what_kafka_configs_writes_is_read() -> None:
    """Kafka's text (ScramCredentialUtils) of the password in RFC 7677's example."""
    text = (
        "salt=W22ZaJ0SNY7soEsUEjb6gQ==,stored_key=WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=,"
        "server_key=wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=,iterations=4096"
    )
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    made = credential_of(Mechanism.SCRAM_SHA_256, "pencil", salt)
    assert parse_credential(text) == made
    assert str(made) == text


def test_nobody_is_always_the_same_and_different_for_each_name_and_broker() -> None:
    made = [
        nobody(Mechanism.SCRAM_SHA_512, name, secret)
        for name, secret in ((*(("a", b"1"),) * 2, ("b", b"1"), ("a", b"2")))
    ]
    assert made[0] == made[1]
    assert len({one.salt for one in made}) == 3
    assert made[0].iterations == 4096


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n,,n=,r=abc",
        b"y,,n=user,r=abc",
        b"p=tls-unique,,n=user,r=abc",
        b"n,,n=us=er,r=abc",
        b"n,,n=user",
        b"n,,m=must,n=user,r=abc",
        b"n,,n=user,r=a b",
        b"n,,n=\xff,r=abc",
    ],
)
def test_a_garbled_beginning_is_called_so(message: bytes) -> None:
    with pytest.raises(Garbled):
        parse_client_first(message)


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_or_called_garbled(token: bytes) -> None:
    sent = asked(Mechanism.SCRAM_SHA_256, "user", "pencil", "abc", "def")
    for tried in (token, b"c=biws,r=abcdef,p=" + base64.b64encode(token)):
        try:
            assert finish(sent, tried) is None
        except Garbled:
            continue


def test_secrets_are_not_shown() -> None:
    credential = credential_of(Mechanism.SCRAM_SHA_256, "pencil", SALT)
    assert "stored_key" not in repr(credential)
    with pytest.raises(Garbled) as caught:
        parse_credential("salt=abc,stored_key=secret")
    assert "secret" not in str(caught.value)

"""SCRAM: the RFC's example, both hashes against an independent server, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.doubles.sasl_broker import RIGHT, WRONG, ScramServer
from wire.net.scram import ScramRefused, client_final, client_first, verify_server
from wire.net.security import Mechanism

SHA_256 = Mechanism.SCRAM_SHA_256
SCRAMS = (Mechanism.SCRAM_SHA_256, Mechanism.SCRAM_SHA_512)
TEXTS = st.text(st.characters(exclude_characters="\0", codec="utf-8"), min_size=1)

# RFC 7677, section 3.
NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = (
    b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
)
FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_the_example_of_the_rfc() -> None:
    assert client_first("user", NONCE) == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    final = client_final(SHA_256, "user", "pencil", NONCE, SERVER_FIRST)
    assert final.message == FINAL
    verify_server(final, SERVER_FINAL)


@given(st.sampled_from(SCRAMS), TEXTS, TEXTS, st.binary(min_size=1, max_size=32))
def test_both_sides_prove_that_they_know_the_password(
    mechanism: Mechanism, username: str, password: str, salt: bytes
) -> None:
    server = ScramServer(mechanism=mechanism, password=password, salt=salt)
    challenge = server.challenge(client_first(username, "ours"))
    final = client_final(mechanism, username, password, "ours", challenge)
    answer = server.finish(final.message)
    assert answer is not None
    verify_server(final, answer)


def test_a_wrong_password_gives_a_wrong_proof() -> None:
    server = ScramServer(mechanism=SHA_256, password=RIGHT)
    challenge = server.challenge(client_first("user", "ours"))
    assert server.finish(client_final(SHA_256, "user", WRONG, "ours", challenge).message) is None


def test_a_server_that_does_not_know_the_password_is_refused() -> None:
    server = ScramServer(mechanism=SHA_256, password=RIGHT, knows_password=False)
    final = client_final(
        SHA_256, "user", RIGHT, "ours", server.challenge(client_first("user", "ours"))
    )
    answer = server.finish(final.message)
    assert answer is not None
    with pytest.raises(ScramRefused, match="not who it claims to be"):
        verify_server(final, answer)


def test_commas_and_equals_signs_in_a_name_are_escaped() -> None:
    assert client_first("a,b=c", "x") == b"n,,n=a=2Cb=3Dc,r=x"


@pytest.mark.parametrize(
    ("server_first", "complaint"),
    [
        (b"r=oursX,s=c2FsdA==,i=4095", "4095 iterations"),
        (b"r=oursX,s=c2FsdA==,i=250001", "250001 iterations"),
        (b"r=theirs,s=c2FsdA==,i=4096", "does not continue ours"),
        (b"r=ours,s=c2FsdA==,i=4096", "does not continue ours"),
        (b"r=oursX,s=c2FsdA,i=4096", "not valid base64"),
        (b"m=must,r=oursX,s=c2FsdA==,i=4096", "garbled"),
        (b"i=4096", "garbled"),
        (b"\xff", "not UTF-8"),
    ],
)
def test_a_first_answer_that_cannot_be_right_is_refused(
    server_first: bytes, complaint: str
) -> None:
    with pytest.raises(ScramRefused, match=complaint):
        client_final(SHA_256, "user", "secret", "ours", server_first)


@pytest.mark.parametrize(
    ("server_final", "complaint"),
    [
        (b"e=invalid-proof", "says invalid-proof"),
        (b"v=AAAA", "not who it claims to be"),
        (b"w=AAAA", "garbled"),
    ],
)
def test_a_last_answer_that_proves_nothing_is_refused(server_final: bytes, complaint: str) -> None:
    final = client_final(SHA_256, "user", "pencil", NONCE, SERVER_FIRST)
    with pytest.raises(ScramRefused, match=complaint):
        verify_server(final, server_final)


@given(st.binary(max_size=80))
def test_any_bytes_are_refused_in_words(garbage: bytes) -> None:
    final = client_final(SHA_256, "user", "pencil", NONCE, SERVER_FIRST)
    with pytest.raises(ScramRefused):
        client_final(SHA_256, "user", "pencil", NONCE, garbage)
    with pytest.raises(ScramRefused):
        verify_server(final, garbage)

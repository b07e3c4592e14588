"""Which tokens let somebody in, as whom and for how long; all others are refused in words."""

import base64
import json
import logging
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from broker.security.bearer import MOST_KEYS, BadKeys, owner_of, parse_keys
from broker.security.settings import TokenRules
from broker.security.token_exchange import (
    GarbledBearer,
    TokenOwner,
    TokenRefused,
    parse_token_message,
)
from broker.security.token_users import JwksUsers
from tests.doubles.signed_tokens import ec_key, jwk, jwks, rsa_key, signed, write_jwks
from wire.net.oauthbearer import MOST_TOKEN_BYTES, client_first

NOW_S = 1_800_000_000
NOW_MS = NOW_S * 1_000
RSA, EC, STRANGE = rsa_key(), ec_key(), rsa_key()
KEYS = parse_keys(jwks(jwk(RSA, kid="r", alg="RS256", use="sig"), jwk(EC, kid="e")))
RULES = TokenRules(jwks=Path("/jwks"), audiences=("kafka", "dc1"), issuer="https://issuer")
RIGHT: dict[str, Any] = {"sub": "alice", "aud": "kafka", "iss": "https://issuer", "exp": NOW_S + 20}


def refusal(text: str, rules: TokenRules = RULES) -> str:
    with pytest.raises(TokenRefused) as caught:
        owner_of(text, KEYS, rules, NOW_MS)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("kid", [None, "own"])
@pytest.mark.parametrize("key", [RSA, EC], ids=["RS256", "ES256"])
def test_a_signed_token_lets_its_owner_in_until_it_ends(key: Any, kid: str | None) -> None:
    kid = kid and ("r" if key is RSA else "e")
    text = signed(key, kid, **RIGHT | {"aud": ["others", "dc1"], "nbf": NOW_S, "jti": 7})
    assert owner_of(text, KEYS, RULES, NOW_MS) == TokenOwner(
        name="alice", lasts_ms=20_000, served_ms=20_000
    )


def test_clocks_may_be_apart_by_the_skew() -> None:
    rules = replace(RULES, clock_skew_s=30)
    text = signed(RSA, **RIGHT | {"exp": NOW_S - 29, "nbf": NOW_S + 30})
    assert owner_of(text, KEYS, rules, NOW_MS) == TokenOwner(
        name="alice", lasts_ms=1, served_ms=1_000
    )
    assert refusal(signed(RSA, **RIGHT | {"exp": NOW_S - 30}), rules) == "the token ended 30 s ago"


def test_another_claim_may_name_the_owner() -> None:
    rules = replace(RULES, principal_claim="client_id", audiences=(), issuer=None)
    text = signed(RSA, client_id="mirror", exp=NOW_S + 1, aud="whoever", sub=7)
    assert owner_of(text, KEYS, rules, NOW_MS).name == "mirror"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"exp": NOW_S}, "the token ended 0 s ago"),
        ({"exp": None}, "the token has no exp"),
        ({"nbf": NOW_S + 5}, "the token holds only in 5 s"),
        ({"aud": "others"}, "the token is not for this audience"),
        ({"aud": None}, "the token has no aud"),
        ({"iss": "https://other"}, "the token is not of this issuer"),
        ({"iss": None}, "the token has no iss"),
        ({"sub": None}, "the token's sub is no name of at most 256 characters"),
        ({"sub": ""}, "the token's sub is no name"),
        ({"sub": ["alice"]}, "the token's sub is no name"),
        ({"sub": "a\nb"}, "the token's sub is no name"),
        ({"sub": "a" * 257}, "the token's sub is no name"),
    ],
)
def test_a_claim_that_is_wrong_is_named(changed: dict[str, Any], said: str) -> None:
    assert refusal(signed(RSA, **RIGHT | changed)).startswith(said)


@pytest.mark.parametrize("exp", ["soon", True, -1, 1e300])
def test_a_date_that_is_none_is_refused(exp: object) -> None:
    # PyJWT writes no such token, so it is signed as bytes.
    payload = json.dumps(RIGHT | {"exp": exp}).encode()
    text = jwt.api_jws.encode(payload, RSA, "RS256")
    assert refusal(text) == "the token's exp is no date"


def test_a_signature_that_is_not_the_issuer_s_is_refused() -> None:
    public = jwk(RSA)["n"].encode()
    with_public_key = jwt.api_jws.encode(json.dumps(RIGHT).encode(), public, "HS256")
    unsigned = jwt.encode(RIGHT, "", "none")
    of_none = "its signature is of none of RS256, ES256"
    assert refusal(with_public_key) == refusal(unsigned) == of_none
    assert refusal(jwt.encode(RIGHT, RSA, "RS512")) == of_none
    assert refusal(signed(STRANGE, **RIGHT)) == "its signature is not of the issuer's keys"
    assert refusal(signed(STRANGE, "r", **RIGHT)) == "its signature is not of the issuer's keys"
    unknown = "no key of the JWKS file has its key id and algorithm"
    assert refusal(signed(RSA, "e", **RIGHT)) == refusal(signed(RSA, "x", **RIGHT)) == unknown


@given(st.data())
def test_a_token_that_was_changed_is_refused(data: st.DataObject) -> None:
    text = signed(EC, **RIGHT)
    at = data.draw(st.integers(0, len(text) - 1))
    changed = text[:at] + data.draw(st.sampled_from("AZaz09-_.")) + text[at + 1 :]
    parts = [base64.urlsafe_b64decode(part + "==") for part in text.split(".")]
    try:
        if [base64.urlsafe_b64decode(part + "==") for part in changed.split(".")] == parts:
            return  # only bits that nobody reads
    except ValueError:
        pass
    assert refusal(changed)


@given(st.text(max_size=60) | st.just("e30." * 3) | st.just("{" * 1000))
def test_what_is_no_token_is_refused(text: str) -> None:
    assert refusal(text)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"<html>", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"[]", "has no list `keys`"),
        (jwks(*[{}] * (MOST_KEYS + 1)), f"has more than {MOST_KEYS} keys"),
        (
            jwks({"kty": "oct", "k": "c2VjcmV0"}, {"kty": "RSA"}, {"kty": "EC", "crv": "P-256"}),
            "no",
        ),
        (jwks(jwk(RSA, use="enc"), jwk(RSA, alg="RS512"), jwk(EC, kid=7)), "has no RSA key"),
        (jwks(jwk(ec_key(ec.SECP384R1()))), "has no RSA key of 2048 bits or more"),
        (jwks(jwk(rsa_key(1024))), "has no RSA key of 2048 bits or more"),
    ],
)
def test_a_file_without_usable_keys_is_named(content: bytes, said: str) -> None:
    with pytest.raises(BadKeys, match=said):
        parse_keys(content)


def test_keys_that_change_in_the_file_are_taken_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "jwks.json"
    users = JwksUsers(replace(RULES, jwks=file), lambda: NOW_MS)
    old, new = signed(RSA, **RIGHT), signed(STRANGE, **RIGHT)
    with pytest.raises(TokenRefused, match="the broker has no keys of the issuer"):
        users.let_in(old)
    write_jwks(file, jwk(RSA))
    assert users.let_in(old).name == "alice"
    write_jwks(file, jwk(STRANGE))
    assert users.let_in(new).name == "alice"
    with pytest.raises(TokenRefused, match="not of the issuer's keys"):
        users.let_in(old)
    caplog.clear()
    file.write_text("{")
    assert [users.let_in(new).name for _ in range(3)] == ["alice"] * 3
    [complaint] = [one.getMessage() for one in caplog.records if one.levelno == logging.ERROR]
    assert complaint.endswith(f"{file}: is not JSON; the keys read before go on")


def test_a_file_that_is_missing_is_named_once_however_many_tokens_are_shown(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "jwks.json"
    users = JwksUsers(replace(RULES, jwks=file), lambda: NOW_MS)
    token = signed(RSA, **RIGHT)

    def complaints() -> list[str]:
        for _ in range(3):
            with suppress(TokenRefused):
                users.let_in(token)
        said = [one.getMessage() for one in caplog.records if one.levelno == logging.ERROR]
        caplog.clear()
        return said

    [missing] = complaints()
    assert missing.endswith("No such file or directory; no token lets anybody in")
    write_jwks(file, jwk(RSA))
    assert not complaints()
    file.unlink()
    [missing] = complaints()
    assert missing.endswith("No such file or directory; the keys read before go on")


@given(st.text("abc123-._~+/", min_size=1, max_size=80))
def test_a_broker_reads_what_our_client_writes(text: str) -> None:
    shown = parse_token_message(client_first(text))
    assert (shown.text, shown.authorization_id) == (text, "")


def test_a_name_and_other_pairs_may_stand_beside_the_token() -> None:
    message = b"n,a=al=2Cice,\x01host=k\x01auth=bearer x.y\x01traceId=1=2\x01\x01"
    shown = parse_token_message(message)
    assert (shown.text, shown.authorization_id) == ("x.y", "al,ice")
    assert "x.y" not in repr(shown)


@given(st.binary(max_size=40) | st.binary(max_size=20).map(b"n,,\x01auth=Bearer ".__add__))
def test_other_messages_are_garbled(message: bytes) -> None:
    with pytest.raises(GarbledBearer):
        parse_token_message(message)


@pytest.mark.parametrize("size", [MOST_TOKEN_BYTES + 1, 3 * MOST_TOKEN_BYTES])
def test_a_token_that_is_too_long_is_refused_unread(size: int) -> None:
    with pytest.raises(TokenRefused, match=f"more than {MOST_TOKEN_BYTES} bytes"):
        parse_token_message(client_first("x" * size))

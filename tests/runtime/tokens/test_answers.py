"""What is taken for a token, how long it lives, and that no complaint shows what was said."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.tokens.answers import MOST_ANSWER_BYTES, expiry_of, token_of_answer, token_of_text
from wire.net.errors import TokenUnavailable
from wire.net.security import Token

NOW_MS = 1_800_000_000_000
CHARACTERS = "abcXYZ0123456789-._~+/"
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


def jwt(claims: object) -> str:
    """Return a token whose signature nobody looks at."""
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    return f"e30.{body}.c2ln"


@given(st.text(CHARACTERS, min_size=1, max_size=60), st.sampled_from(["", "\n", "\r\n", "  "]))
def test_a_text_alone_is_a_token_of_unknown_life(text: str, behind: str) -> None:
    assert token_of_text((text + behind).encode(), NOW_MS) == Token(text=text)


@given(st.text(CHARACTERS, min_size=1), st.integers(1, 10**8), st.booleans())
def test_an_object_says_for_how_long(text: str, life_s: int, as_text: bool) -> None:
    said = {"access_token": text, "expires_in": str(life_s) if as_text else life_s}
    found = token_of_text(json.dumps(said).encode(), NOW_MS)
    assert found == Token(text=text, expires_at_ms=NOW_MS + life_s * 1_000)


@given(st.integers(NOW_MS // 1_000 + 1, 10**11))
def test_a_signed_token_says_when_it_ends(ends_s: int) -> None:
    text = jwt({"exp": ends_s})
    assert token_of_text(text.encode(), NOW_MS).expires_at_ms == ends_s * 1_000


@given(JSON | JSON.map(lambda value: {"exp": value}))
def test_claims_that_make_no_sense_are_an_unknown_end(claims: Any) -> None:
    ends_ms = expiry_of(jwt(claims))
    assert ends_ms is None or ends_ms >= 0


@given(
    st.binary(max_size=80)
    | JSON.map(lambda value: json.dumps(value).encode())
    | JSON.map(lambda value: json.dumps({"access_token": value, "expires_in": value}).encode()),
    st.sampled_from([200, 400, 401, 503]),
)
def test_rubbish_has_a_complaint_that_does_not_quote_it(content: bytes, status: int) -> None:
    for is_answer in (False, True):
        try:
            token = (
                token_of_answer(status, content, NOW_MS)
                if is_answer
                else token_of_text(content, NOW_MS)
            )
        except TokenUnavailable as reason:
            said = str(reason)
            assert "\n" not in said
            assert said in _COMPLAINTS, said
        else:
            assert token.text.encode() in content


_BAD = "is no bearer token: those have letters, digits and -._~+/ alone, and at most 65536 of them"
_COMPLAINTS = {
    _BAD,
    "holds no token",
    "is not JSON",
    "is not a JSON object",
    "the JSON object has no text access_token",
    "token_type is not Bearer",
    "the token ended 0 s ago",
    *(f"answers HTTP {status}" for status in (400, 401, 503)),
}


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "holds no token"),
        (b"x" * (MOST_ANSWER_BYTES + 1), f"is larger than {MOST_ANSWER_BYTES} bytes"),
        (b"one two", "is no bearer token"),
        (jwt({"exp": NOW_MS // 1_000 - 7}).encode(), "the token ended 7 s ago"),
        (b'{"access_token": "x", "token_type": "mac"}', "token_type is not Bearer"),
        (b"[" * 100_000, "is no bearer token"),
        (b'{"a":' * 20_000, "is not JSON"),
    ],
)
def test_a_complaint_says_what_is_wrong(content: bytes, complaint: str) -> None:
    with pytest.raises(TokenUnavailable, match=complaint):
        token_of_text(content, NOW_MS)


def test_an_issuer_s_refusal_is_shown_where_it_is_a_word_of_the_rfc() -> None:
    with pytest.raises(TokenUnavailable, match=r"^answers HTTP 401, invalid_client$"):
        token_of_answer(401, b'{"error": "invalid_client", "error_description": "s3cret"}', NOW_MS)
    with pytest.raises(TokenUnavailable, match=r"^answers HTTP 400$"):
        token_of_answer(400, b'{"error": "s3cret is wrong"}', NOW_MS)

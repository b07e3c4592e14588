"""What a file, a command or an issuer says, as a token. Pure."""

import base64
import binascii
import json
import math
from typing import Any, Final

from wire.net.errors import TokenUnavailable
from wire.net.oauthbearer import MOST_TOKEN_BYTES, is_token
from wire.net.security import Token

MOST_ANSWER_BYTES: Final = 2 * MOST_TOKEN_BYTES
"""A token, and what an issuer sends beside it (a refresh token, an identity token)."""
MOST_LIFE_S: Final = 10 * 365 * 86_400
"""A number that an issuer cannot mean; it is taken for no number."""
_REASONS: Final = frozenset(
    {
        "invalid_request",
        "invalid_client",
        "invalid_grant",
        "unauthorized_client",
        "unsupported_grant_type",
        "invalid_scope",
    }
)
"""The words of RFC 6749, 5.2. Others are not shown: an issuer may quote what it was sent."""
_JWT_PARTS: Final = 3


def token_of_text(content: bytes, now_ms: int) -> Token:
    """Return the token that a text is, or that a JSON object has in `access_token`.

    Raises TokenUnavailable, for a token that has expired as well.
    """
    if len(content) > MOST_ANSWER_BYTES:
        raise TokenUnavailable(f"is larger than {MOST_ANSWER_BYTES} bytes")
    text = content.decode(errors="replace").strip()
    if not text:
        raise TokenUnavailable("holds no token")
    if text.startswith("{"):
        return token_of_object(_object(text), now_ms)
    return _usable(text, None, now_ms)


def token_of_answer(status: int, body: bytes, now_ms: int) -> Token:
    """Return the token of an issuer's answer (RFC 6749, 5.1). Raises TokenUnavailable."""
    if status != 200:
        reason = _reason(body)
        raise TokenUnavailable(f"answers HTTP {status}" + (f", {reason}" if reason else ""))
    return token_of_object(_object(body.decode(errors="replace")), now_ms)


def token_of_object(said: dict[str, Any], now_ms: int) -> Token:
    """Return the token of an object with `access_token`, and with `expires_in` in seconds if known.

    Raises TokenUnavailable.
    """
    text, life_s = said.get("access_token"), _number(said.get("expires_in"))
    if not isinstance(text, str):
        raise TokenUnavailable("the JSON object has no text access_token")
    kind = said.get("token_type", "Bearer")
    if not isinstance(kind, str) or kind.lower() != "bearer":
        raise TokenUnavailable("token_type is not Bearer")
    return _usable(text, None if life_s is None else now_ms + int(life_s * 1_000), now_ms)


def expiry_of(text: str) -> int | None:
    """Return when a JWT says that it ends (RFC 7519, 4.1.4), None for other tokens.

    The signature is not looked at: that is for the broker.
    """
    parts = text.split(".")
    if len(parts) != _JWT_PARTS:
        return None
    try:
        padded = parts[1] + "=" * (-len(parts[1]) % 4)
        claims: Any = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError):
        return None
    ends_s = _number(claims.get("exp"), most=1 << 40) if isinstance(claims, dict) else None
    return None if ends_s is None else int(ends_s * 1_000)


def _usable(text: str, expires_at_ms: int | None, now_ms: int) -> Token:
    if not is_token(text):
        raise TokenUnavailable(
            f"is no bearer token: those have letters, digits and -._~+/ alone, and at most "
            f"{MOST_TOKEN_BYTES} of them"
        )
    if expires_at_ms is None:
        expires_at_ms = expiry_of(text)
    if expires_at_ms is not None and expires_at_ms <= now_ms:
        raise TokenUnavailable(f"the token ended {(now_ms - expires_at_ms) // 1_000} s ago")
    return Token(text=text, expires_at_ms=expires_at_ms)


def _object(text: str) -> dict[str, Any]:
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError):
        raise TokenUnavailable("is not JSON") from None
    if not isinstance(found, dict):
        raise TokenUnavailable("is not a JSON object")
    return found


def _reason(body: bytes) -> str | None:
    try:
        said = _object(body.decode(errors="replace")).get("error")
    except TokenUnavailable:
        return None
    return said if isinstance(said, str) and said in _REASONS else None


def _number(value: object, most: float = MOST_LIFE_S) -> float | None:
    """Return a number that makes sense; some issuers write it as a text."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and 0 <= number <= most else None

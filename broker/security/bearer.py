"""The broker's side of OAUTHBEARER (RFC 7628, KIP-255): what a token says, and whether it holds.

Signatures are PyJWT's; dates and names are looked at here, with the time as an argument. No I/O.
This module takes 20 MiB of libraries, so only listeners that take tokens import it.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from broker.security.settings import TokenRules
from broker.security.token_exchange import TokenOwner, TokenRefused
from wire.values import frozen

ALGORITHMS: Final[Mapping[str, str]] = {"RSA": "RS256", "EC": "ES256"}
"""By the kind of key. Keys that both sides know (HS256), and none at all, are not taken."""
CURVE: Final = "P-256"
LEAST_RSA_BITS: Final = 2048
"""NIST SP 800-131A; PyJWT warns of shorter ones."""
MOST_KEYS: Final = 100
LONGEST_NAME: Final = 256
"""Characters of a principal. It goes into logs, ACLs and quotas."""


class BadKeys(ValueError):
    """A file that is no JWKS, or has no key that could be used."""


@frozen
class VerificationKey:
    """A public key of the issuer."""

    id: str | None
    algorithm: str
    key: RSAPublicKey | EllipticCurvePublicKey


def parse_keys(content: bytes) -> tuple[VerificationKey, ...]:
    """Return the keys for signatures of a JWKS (RFC 7517). Raises BadKeys, which quotes nothing.

    Keys of other kinds are left out, as section 5 asks for.
    """
    try:
        found: Any = json.loads(content)
    except (ValueError, RecursionError):
        raise BadKeys("is not JSON") from None
    entries = found.get("keys") if isinstance(found, dict) else None
    if not isinstance(entries, list):
        raise BadKeys("has no list `keys`")
    if len(entries) > MOST_KEYS:
        raise BadKeys(f"has more than {MOST_KEYS} keys")
    keys = tuple(key for entry in entries if (key := _key_of(entry)) is not None)
    if not keys:
        raise BadKeys(f"has no RSA key of {LEAST_RSA_BITS} bits or more, and no EC key of {CURVE}")
    return keys


def _key_of(entry: object) -> VerificationKey | None:
    if not isinstance(entry, dict):
        return None
    algorithm = ALGORITHMS.get(str(entry.get("kty")))
    id_ = entry.get("kid")
    if algorithm is None or entry.get("alg", algorithm) != algorithm:
        return None
    if entry.get("use", "sig") != "sig" or not isinstance(id_, str | None):
        return None
    try:
        key = jwt.PyJWK(entry, algorithm).key
    except (jwt.PyJWTError, ValueError, TypeError, KeyError):
        return None
    is_long = isinstance(key, RSAPublicKey) and key.key_size >= LEAST_RSA_BITS
    is_curve = isinstance(key, EllipticCurvePublicKey) and entry.get("crv") == CURVE
    return VerificationKey(id=id_, algorithm=algorithm, key=key) if is_long or is_curve else None


def owner_of(
    text: str, keys: Iterable[VerificationKey], rules: TokenRules, now_ms: int
) -> TokenOwner:
    """Return who a signed token is for, and for how long. Raises TokenRefused."""
    claims = _claims(text, keys, rules)
    now_s, skew_s = now_ms / 1_000, rules.clock_skew_s
    ends_s, begins_s = _date(claims, "exp"), _date(claims, "nbf")
    if ends_s is None:
        raise TokenRefused("the token has no exp")
    if ends_s + skew_s <= now_s:
        raise TokenRefused(f"the token ended {now_s - ends_s:.0f} s ago")
    if begins_s is not None and begins_s - skew_s > now_s:
        raise TokenRefused(f"the token holds only in {begins_s - now_s:.0f} s")
    name = claims.get(rules.principal_claim)
    if not isinstance(name, str) or not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise TokenRefused(
            f"the token's {rules.principal_claim} is no name of at most {LONGEST_NAME} characters"
        )
    return TokenOwner(
        name=name,
        lasts_ms=max(1, math.floor((ends_s - now_s) * 1_000)),
        served_ms=max(1, math.floor((ends_s + skew_s - now_s) * 1_000)),
    )


def _claims(text: str, keys: Iterable[VerificationKey], rules: TokenRules) -> Mapping[str, Any]:
    """Return what a token says whose signature, audience and issuer are right."""
    try:
        header = jwt.get_unverified_header(text)
    except (jwt.PyJWTError, RecursionError):
        raise TokenRefused("it is no signed token (JWT)") from None
    algorithm, id_ = header.get("alg"), header.get("kid")
    if algorithm not in ALGORITHMS.values():
        raise TokenRefused(f"its signature is of none of {', '.join(ALGORITHMS.values())}")
    fitting: Sequence[VerificationKey] = [
        key for key in keys if key.algorithm == algorithm and id_ in {None, key.id}
    ]
    if not fitting:
        raise TokenRefused("no key of the JWKS file has its key id and algorithm")
    for key in fitting:
        try:
            return _verified(text, key, rules)
        except jwt.InvalidSignatureError:
            continue
        except jwt.InvalidAudienceError:
            raise TokenRefused("the token is not for this audience") from None
        except jwt.MissingRequiredClaimError as problem:
            raise TokenRefused(f"the token has no {problem.claim}") from None
        except jwt.InvalidIssuerError:
            raise TokenRefused("the token is not of this issuer") from None
        except (jwt.PyJWTError, RecursionError):
            raise TokenRefused("it is no signed token (JWT)") from None
    raise TokenRefused("its signature is not of the issuer's keys")


def _verified(text: str, key: VerificationKey, rules: TokenRules) -> Mapping[str, Any]:
    found: Mapping[str, Any] = jwt.decode(
        text,
        key.key,
        algorithms=[key.algorithm],
        audience=list(rules.audiences) or None,
        issuer=rules.issuer,
        options={
            "verify_exp": False,
            "verify_nbf": False,
            "verify_iat": False,
            "verify_sub": False,
            "verify_jti": False,
            "verify_aud": bool(rules.audiences),
        },
    )
    return found


def _date(claims: Mapping[str, Any], name: str) -> float | None:
    """Return seconds since the epoch (RFC 7519, 2). Raises TokenRefused."""
    said = claims.get(name)
    if said is None:
        return None
    if isinstance(said, bool) or not isinstance(said, int | float) or not 0 <= said < 1 << 40:
        raise TokenRefused(f"the token's {name} is no date")
    return float(said)

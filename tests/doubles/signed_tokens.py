"""Keys of an issuer, its JWKS, and tokens that it signs."""

import json
from pathlib import Path
from typing import Any, TypeAlias

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

PrivateKey: TypeAlias = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


def rsa_key(bits: int = 2048) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65_537, key_size=bits)


def ec_key(curve: ec.EllipticCurve | None = None) -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(curve or ec.SECP256R1())


def jwk(key: PrivateKey, **more: Any) -> dict[str, Any]:
    """Return the public half as an entry of a JWKS."""
    if isinstance(key, rsa.RSAPrivateKey):
        return {**RSAAlgorithm.to_jwk(key.public_key(), as_dict=True), **more}
    return {**ECAlgorithm.to_jwk(key.public_key(), as_dict=True), **more}


def jwks(*entries: dict[str, Any]) -> bytes:
    return json.dumps({"keys": entries}).encode()


def write_jwks(file: Path, *entries: dict[str, Any]) -> None:
    """Put another file in place, as who rotates keys does it."""
    new = file.with_suffix(".new")
    new.write_bytes(jwks(*entries))
    new.replace(file)


def signed(key: PrivateKey, kid: str | None = None, **claims: Any) -> str:
    """Return a token; claims of None are left out."""
    algorithm = "RS256" if isinstance(key, rsa.RSAPrivateKey) else "ES256"
    said = {name: value for name, value in claims.items() if value is not None}
    return jwt.encode(said, key, algorithm, headers=None if kid is None else {"kid": kid})

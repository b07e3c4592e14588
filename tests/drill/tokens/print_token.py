"""The token command of the drill: signs a token and prints it as an issuer's tools do.

python -m tests.drill.tokens.print_token KEY LIFE_S NOTES

A line is added to NOTES at each run, so that the drill knows how often it was asked.
"""

import json
import sys
from pathlib import Path

import jwt

from runtime.process.clock import wall_ms

CLAIMS = {"sub": "programs", "aud": "drill", "iss": "https://issuer"}


def token_of(key: str, life_s: float, owner: str = CLAIMS["sub"]) -> str:
    """Return a token that holds from now on for so long."""
    claims = {**CLAIMS, "sub": owner, "exp": wall_ms() / 1_000 + life_s}
    return jwt.encode(claims, key, "ES256", headers={"kid": "drill"})


def main() -> None:
    """Print one."""
    key, life_s, notes = sys.argv[1:]
    text = token_of(Path(key).read_text(), float(life_s))
    with Path(notes).open("a") as log:
        log.write("asked\n")
    print(json.dumps({"access_token": text, "expires_in": float(life_s)}))


if __name__ == "__main__":
    main()

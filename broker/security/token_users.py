"""Who comes in by tokens: the issuer's keys are in a file, which is read again when it changes."""

import logging
from collections.abc import Callable
from typing import Final

from broker.security.bearer import BadKeys, VerificationKey, owner_of, parse_keys
from broker.security.settings import TokenRules
from broker.security.token_exchange import TokenOwner, TokenRefused

_LOG = logging.getLogger(__name__)

MOST_BYTES: Final = 1 << 20


class JwksUsers:
    """The owners of tokens that are signed with a key of the JWKS file."""

    def __init__(self, rules: TokenRules, wall_ms: Callable[[], int]) -> None:
        """Read the file; while it cannot be used nobody comes in, and the log says so."""
        self._rules = rules
        self._wall_ms = wall_ms
        self._keys: tuple[VerificationKey, ...] = ()
        self._read_from: tuple[int, int, int] | None = None
        self._complaint: str | None = None
        """What the log was told last: strangers have the file looked at as often as they like."""
        self._look()

    def let_in(self, token: str) -> TokenOwner:
        """Return a token's owner. Raises TokenRefused."""
        self._look()
        if not self._keys:
            raise TokenRefused("the broker has no keys of the issuer")
        return owner_of(token, self._keys, self._rules, self._wall_ms())

    def _look(self) -> None:
        """Take over the file if it has changed; one that is being written changes nothing."""
        file = self._rules.jwks
        try:
            now = file.stat()
            found = now.st_ino, now.st_mtime_ns, now.st_size
            if found == self._read_from:
                return
            self._read_from = found
            with file.open("rb") as opened:
                content = opened.read(MOST_BYTES + 1)
            if len(content) > MOST_BYTES:
                self._complain(f"is larger than {MOST_BYTES} bytes")
                return
            self._keys = parse_keys(content)
            self._complaint = None
        except OSError as problem:
            self._read_from = None
            self._complain(problem.strerror or str(problem))
        except BadKeys as problem:
            self._complain(str(problem))

    def _complain(self, why: str) -> None:
        if why == self._complaint:
            return
        self._complaint = why
        kept = "the keys read before go on" if self._keys else "no token lets anybody in"
        _LOG.error("sasl.oauthbearer.jwks.endpoint.url: %s: %s; %s", self._rules.jwks, why, kept)

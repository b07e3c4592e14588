"""An issuer that gives tokens for a client's own credentials (RFC 6749, 4.4)."""

import base64
import ssl
from dataclasses import field
from pathlib import Path
from typing import Final
from urllib.parse import quote_plus, urlencode

from runtime.process.clock import wall_ms
from runtime.tokens.answers import token_of_answer
from runtime.tokens.held_token import HeldToken
from runtime.tokens.https_address import HttpsAddress, Silent
from wire.net.errors import TokenUnavailable
from wire.net.secret_file import FileSecret
from wire.net.security import Secret, Tls, Token, reveal
from wire.net.tls_context import make_context, reason_of
from wire.values import frozen

DEADLINE_S: Final = 15.0
"""For connecting, TLS, and the whole answer."""
REFUSED: Final = frozenset({400, 401, 403})
"""Statuses of an issuer that does not take our credentials (RFC 6749, 5.2)."""


@frozen
class TokenEndpoint:
    """Asks for a token with a client's id and secret, which go in the header (2.3.1)."""

    key: str
    """The setting that names it, for complaints."""
    address: HttpsAddress
    client_id: str
    client_secret: Secret = field(repr=False)
    scope: str | None = None
    audience: str | None = None
    """Not of the RFC; Auth0 and some others ask for it."""
    ca: Path | None = None
    """The authorities of the issuer's certificate, as PEM; None for the system's."""
    deadline_s: float = DEADLINE_S
    held: HeldToken = field(default_factory=HeldToken, compare=False, repr=False)

    @property
    def origin(self) -> str:
        """Return the setting and the address."""
        return f"{self.key}: {self.address}"

    def token(self) -> Token:
        """Return a token of the issuer. Raises TokenUnavailable."""
        return self.held.token(self._ask)

    def forget(self, token: Token) -> None:
        """Ask the issuer for the next login."""
        self.held.forget(token)

    def _ask(self) -> Token:
        from runtime.tokens.https import post  # noqa: PLC0415 - h11, for who has an issuer

        asked_at_ms, shown = wall_ms(), ""
        try:
            context = self._context()
            status, body = post(
                self.address, context, self._headers(), self._form(), deadline_s=self.deadline_s
            )
            if status in REFUSED:
                shown = f" ({self._credentials})"
            return token_of_answer(status, body, asked_at_ms)
        except TimeoutError:
            why = f"no answer within {self.deadline_s:g} s"
        except ssl.SSLCertVerificationError as problem:
            why = f"its certificate is not trusted: {reason_of(problem)} ({self._trusted})"
        except ssl.SSLError as problem:
            why = f"TLS: {reason_of(problem)}"
        except OSError as problem:
            why = problem.strerror or str(problem)
        except (Silent, TokenUnavailable) as problem:
            why = str(problem)
        raise TokenUnavailable(f"{self.origin}: {why}{shown}")

    @property
    def _credentials(self) -> str:
        """Say where what the issuer was shown comes from, as a person finds it."""
        secret = self.client_secret
        where = f" with the secret in {secret.file}" if isinstance(secret, FileSecret) else ""
        return f"client {self.client_id!r}{where}"

    @property
    def _trusted(self) -> str:
        return "trusted is " + (
            f"{self.key}_ca: {self.ca}" if self.ca else "what this system trusts"
        )

    def _context(self) -> ssl.SSLContext:
        try:
            return make_context(Tls(ca=self.ca))
        except OSError as problem:
            why = reason_of(problem) if isinstance(problem, ssl.SSLError) else problem.strerror
            raise TokenUnavailable(f"{why} ({self._trusted})") from None

    def _headers(self) -> list[tuple[str, str]]:
        pair = f"{quote_plus(self.client_id)}:{quote_plus(reveal(self.client_secret))}"
        return [
            ("Authorization", f"Basic {base64.b64encode(pair.encode()).decode()}"),
            ("Content-Type", "application/x-www-form-urlencoded"),
            ("Accept", "application/json"),
        ]

    def _form(self) -> bytes:
        form = {
            "grant_type": "client_credentials",
            "scope": self.scope,
            "audience": self.audience,
        }
        return urlencode({key: value for key, value in form.items() if value is not None}).encode()

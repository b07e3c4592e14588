"""How a client proves who it is, and finds out who the brokers are: values, no I/O."""

from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Final, Protocol, TypeAlias

from wire.net.secret_file import FileSecret

Secret: TypeAlias = str | FileSecret


def reveal(secret: Secret) -> str:
    """Return the secret as it is now."""
    return secret.read() if isinstance(secret, FileSecret) else secret


class Mechanism(Enum):
    """The SASL mechanisms that we speak, by the names they have in the protocol."""

    PLAIN = "PLAIN"
    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"
    OAUTHBEARER = "OAUTHBEARER"


WITH_PASSWORDS: Final = (Mechanism.PLAIN, Mechanism.SCRAM_SHA_256, Mechanism.SCRAM_SHA_512)
"""The mechanisms whose credentials are a name and a password."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """PEM files. Without ``ca`` the system's authorities are trusted.

    The broker's certificate is always verified; ``checks_hostname`` says whether it must be for
    the address we connect to as well. ``key`` may stand in the file of ``certificate``.
    """

    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    key_password: Secret | None = field(default=None, repr=False)
    checks_hostname: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Sasl:
    """Credentials; the password is never shown."""

    mechanism: Mechanism
    username: str
    password: Secret = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A bearer token, which is never shown, and its end in milliseconds since the epoch."""

    text: str = field(repr=False)
    expires_at_ms: int | None = None
    """None where nobody says."""


class TokenSource(Protocol):
    """Where tokens come from. Any thread may call it."""

    def token(self) -> Token:
        """Return a token that has not expired; blocks, within a deadline of its own.

        Raises TokenUnavailable, whose text names the setting and never shows a token.
        """

    def forget(self, token: Token) -> None:
        """Do not return this token again: a broker has refused it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BearerSasl:
    """A login by tokens (RFC 7628, KIP-255)."""

    source: TokenSource

    @property
    def mechanism(self) -> Mechanism:
        """Return OAUTHBEARER."""
        return Mechanism.OAUTHBEARER


AnySasl: TypeAlias = Sasl | BearerSasl


@dataclass(frozen=True, slots=True, kw_only=True)
class Security:
    """One of Kafka's four security protocols, by what is there."""

    tls: Tls | None = None
    sasl: AnySasl | None = None

    @property
    def protocol(self) -> str:
        """Return Kafka's name of it, as in ``security.protocol``."""
        encryption = "PLAINTEXT" if self.tls is None else "SSL"
        return encryption if self.sasl is None else f"SASL_{encryption}"


PLAINTEXT: Final = Security()

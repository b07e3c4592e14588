"""How a client proves who it is, and finds out who the brokers are: values, no I/O."""

from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Final


class Mechanism(Enum):
    """The SASL mechanisms that we speak, by the names they have in the protocol."""

    PLAIN = "PLAIN"
    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """PEM files. Without ``ca`` the system's authorities are trusted.

    The broker's certificate is always verified; ``checks_hostname`` says whether it must be for
    the address we connect to as well. ``key`` may stand in the file of ``certificate``.
    """

    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    key_password: str | None = field(default=None, repr=False)
    checks_hostname: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Sasl:
    """Credentials; the password is never shown."""

    mechanism: Mechanism
    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Security:
    """One of Kafka's four security protocols, by what is there."""

    tls: Tls | None = None
    sasl: Sasl | None = None

    @property
    def protocol(self) -> str:
        """Return Kafka's name of it, as in ``security.protocol``."""
        encryption = "PLAINTEXT" if self.tls is None else "SSL"
        return encryption if self.sasl is None else f"SASL_{encryption}"


PLAINTEXT: Final = Security()

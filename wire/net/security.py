"""How a client proves who it is, and finds out who the brokers are: values, no I/O."""

from dataclasses import field, replace
from enum import Enum
from pathlib import Path
from typing import Final, Protocol, TypeAlias

from wire.net.client_settings import UNSET, ClientSettings
from wire.net.secret_file import FileSecret
from wire.values import frozen

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
    GSSAPI = "GSSAPI"


WITH_PASSWORDS: Final = (Mechanism.PLAIN, Mechanism.SCRAM_SHA_256, Mechanism.SCRAM_SHA_512)
"""The mechanisms whose credentials are a name and a password."""


@frozen
class Pem:
    """Certificates, and the private key of the first of them or nothing, as PEM."""

    certificates: str
    private_key: str = field(default="", repr=False)


class PemSource(Protocol):
    """Certificates in a file of another form. Any thread may call it."""

    @property
    def files(self) -> tuple[Path, ...]:
        """Return what is read: where it has changed, `pem` returns something else."""

    @property
    def origin(self) -> str:
        """Return the setting and the file, for complaints."""

    def pem(self) -> Pem:
        """Return what is there now, or what was last; blocks for as long as decrypting takes."""


@frozen
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
    keystore: PemSource | None = None
    """In the place of ``certificate`` and ``key``."""
    truststore: PemSource | None = None
    """In the place of ``ca``."""
    protocols: tuple[str, ...] = ()
    """Kafka's names of the versions that are spoken; empty for all that are safe."""
    ciphers: tuple[str, ...] = ()
    """OpenSSL's names of those of TLS 1.2; empty for Python's choice."""
    key_path: str = field(default="", compare=False)
    """The section that names the files, for complaints."""

    @property
    def store_files(self) -> tuple[Path, ...]:
        """Return the files of both stores."""
        stores = (self.keystore, self.truststore)
        return tuple(file for store in stores if store is not None for file in store.files)

    @property
    def shown(self) -> str:
        """Return which certificate the other side is shown, for complaints."""
        if self.keystore is not None:
            return f"shown is {self.keystore.origin}"
        return f"shown is {self._named('certificate', self.certificate) or 'no certificate'}"

    @property
    def trusted(self) -> str:
        """Return whose certificates are believed, for complaints."""
        if self.truststore is not None:
            return f"trusted is {self.truststore.origin}"
        return f"trusted is {self._named('ca', self.ca) or 'what this system trusts'}"

    def _named(self, key: str, file: Path | None) -> str:
        if file is None:
            return ""
        return f"{self.key_path}.{key}: {file}" if self.key_path else str(file)


@frozen
class Sasl:
    """Credentials; the password is never shown."""

    mechanism: Mechanism
    username: str
    password: Secret = field(repr=False)
    key: str = field(default="", compare=False)
    """The section that names it, for complaints."""

    @property
    def origin(self) -> str:
        """Return where the credentials come from, as a person finds them."""
        words = [f"user {self.username!r}"] + ([f"of {self.key}"] if self.key else [])
        if isinstance(self.password, FileSecret):
            words.append(f"with the password in {self.password.file}")
        return " ".join(words)


@frozen
class Token:
    """A bearer token, which is never shown, and its end in milliseconds since the epoch."""

    text: str = field(repr=False)
    expires_at_ms: int | None = None
    """None where nobody says."""


class TokenSource(Protocol):
    """Where tokens come from. Any thread may call it."""

    @property
    def key(self) -> str:
        """Return the setting that names it, for complaints."""

    @property
    def origin(self) -> str:
        """Return the setting with the file, command or address in it."""

    def token(self) -> Token:
        """Return a token that has not expired; blocks, within a deadline of its own.

        Raises TokenUnavailable, whose text names the setting and never shows a token.
        """

    def forget(self, token: Token) -> None:
        """Do not return this token again: a broker has refused it."""


@frozen
class BearerSasl:
    """A login by tokens (RFC 7628, KIP-255)."""

    source: TokenSource

    @property
    def origin(self) -> str:
        """Return where the tokens come from, as a person finds it."""
        return f"a token of {self.source.origin}"

    @property
    def mechanism(self) -> Mechanism:
        """Return OAUTHBEARER."""
        return Mechanism.OAUTHBEARER


@frozen
class KerberosSasl:
    """A login by tickets of Kerberos (RFC 4752): of a keytab, else of the user's own cache."""

    key: str
    """The section that names it, for complaints."""
    service_name: str = "kafka"
    """The first part of the brokers' principals, `sasl.kerberos.service.name`."""
    keytab: Path | None = None
    principal: str | None = None

    @property
    def origin(self) -> str:
        """Return where the tickets come from, as a person finds them."""
        file = "the credential cache" if self.keytab is None else str(self.keytab)
        return f"a ticket of {self.key}, of {file}"

    @property
    def mechanism(self) -> Mechanism:
        """Return GSSAPI."""
        return Mechanism.GSSAPI


AnySasl: TypeAlias = Sasl | BearerSasl | KerberosSasl


@frozen
class Security:
    """One of Kafka's four security protocols, by what is there."""

    tls: Tls | None = None
    sasl: AnySasl | None = None
    client: ClientSettings = UNSET
    """How connections wait and what their sockets hold, whoever opens them."""

    def no_slower(self, request_timeout_ms: int) -> "Security":
        """Return the same with `ClientSettings.no_slower`."""
        return replace(self, client=self.client.no_slower(request_timeout_ms))

    @property
    def principal(self) -> str | None:
        """Return whom brokers take us for, as `User:NAME`, by their defaults.

        None where they have it from a certificate, a token or a ticket that we do not look into.
        """
        if isinstance(self.sasl, Sasl):
            return f"User:{self.sasl.username}"
        if self.sasl is not None:
            return None
        tls = self.tls
        has_certificate = tls is not None and (tls.certificate or tls.keystore) is not None
        return None if has_certificate else "User:ANONYMOUS"

    @property
    def protocol(self) -> str:
        """Return Kafka's name of it, as in ``security.protocol``."""
        encryption = "PLAINTEXT" if self.tls is None else "SSL"
        return encryption if self.sasl is None else f"SASL_{encryption}"


PLAINTEXT: Final = Security()

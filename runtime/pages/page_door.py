"""Who may read a program's pages, and whether they are encrypted."""

import base64
import hmac
import ipaddress
import ssl
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Final

from wire.net.secret_file import FileSecret
from wire.net.security import Secret, reveal
from wire.net.tls_context import RenewedContext
from wire.values import frozen

TOKEN_USER: Final = "token"  # noqa: S105 - a name
"""The user with which a browser shows the token, as its password."""


@frozen
class PageTls:
    """PEM files of the pages' server; ``key`` may stand in the file of ``certificate``."""

    certificate: Path
    key: Path | None = None
    key_password: Secret | None = field(default=None, repr=False)
    ca: Path | None = None
    """The authorities of `certificate`, for our own commands that read pages; else the system's."""
    client_ca: Path | None = None
    """Only clients with a certificate of these authorities are let in."""

    def keys(self, *, lets_all_shake_hands: bool = False) -> RenewedContext:
        """Return the server's context. Raises OSError, of which ssl.SSLError is one.

        With `lets_all_shake_hands` the server has to look who has shown a certificate.
        """
        files = (self.certificate, self.key, self.client_ca)
        make = partial(server_context, self, lets_all_shake_hands=lets_all_shake_hands)
        return RenewedContext(make, *files)


@frozen
class PageUser:
    """A user and its password, as HTTP's basic scheme has them (RFC 7617)."""

    username: str
    password: Secret = field(repr=False)


@frozen
class PageDoor:
    """What a reader of the pages has to show; one of what is named is enough."""

    tls: PageTls | None = None
    token: Secret | None = field(default=None, repr=False)
    """What stands behind `Bearer` (RFC 6750)."""
    reader: PageUser | None = None

    @property
    def scheme(self) -> str:
        """Return `https` or `http`."""
        return "http" if self.tls is None else "https"

    @property
    def asks_certificate(self) -> bool:
        """Return whether a reader has to have a certificate."""
        return self.tls is not None and self.tls.client_ca is not None

    @property
    def is_guarded(self) -> bool:
        """Return whether a stranger who reaches the port reads nothing."""
        return self.asks_certificate or self.asks_credentials

    @property
    def asks_credentials(self) -> bool:
        """Return whether a request has to show a token, or a user and password."""
        return self.token is not None or self.reader is not None

    def admits(self, authorization: bytes) -> bool:
        """Tell whether a request with this header, empty for none, may be answered."""
        if not self.asks_credentials:
            return True
        named = _titled(authorization)
        return any(hmac.compare_digest(named, wanted) for wanted in self._wanted())

    def name_of(self, authorization: bytes) -> str | None:
        """Return as whom a request with this header is let in; None where it shows nothing."""
        if not self.asks_credentials or not self.admits(authorization):
            return None
        if self.reader is not None:
            wanted = _basic(self.reader.username, reveal(self.reader.password))
            if hmac.compare_digest(_titled(authorization), wanted):
                return f"user {self.reader.username!r}"
        return "the holder of the token"

    def authorization(self) -> str | None:
        """Return the header with which we read pages ourselves."""
        wanted = self._wanted()
        return wanted[0].decode() if wanted else None

    @property
    def origin(self) -> str:
        """Return where what we show ourselves comes from, as a person finds it."""
        if self.token is not None:
            return f"the token{_place_of(self.token)}"
        if self.reader is not None:
            return f"user {self.reader.username!r}{_place_of(self.reader.password)}"
        return "no token and no user"

    def challenges(self) -> list[tuple[str, str]]:
        """Return the headers of a refusal that say what to show (RFC 9110, 11.6.1).

        Browsers ask people for nothing but a user and a password.
        """
        schemes = ["Bearer"] if self.token is not None else []
        schemes += ['Basic realm="kafka-dr"'] if self.asks_credentials else []
        return [("WWW-Authenticate", scheme) for scheme in schemes]

    def _wanted(self) -> list[bytes]:
        wanted = [] if self.token is None else [f"Bearer {reveal(self.token)}".encode()]
        if self.reader is not None:
            wanted.append(_basic(self.reader.username, reveal(self.reader.password)))
        if self.token is not None:
            wanted.append(_basic(TOKEN_USER, reveal(self.token)))
        return wanted


UNGUARDED: Final = PageDoor()


def _titled(authorization: bytes) -> bytes:
    """Return the header with its scheme as we write it: its case does not matter."""
    scheme, space, shown = authorization.partition(b" ")  # RFC 9110, 11.1
    return scheme.title() + space + shown


def _basic(username: str, password: str) -> bytes:
    return b"Basic " + base64.b64encode(f"{username}:{password}".encode())


def _place_of(secret: Secret) -> str:
    return f" in {secret.file}" if isinstance(secret, FileSecret) else " of this file"


def is_loopback(host: str) -> bool:
    """Tell whether only this machine reaches an address or a name that stands in a file."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False  # a name may lead anywhere


def server_context(tls: PageTls, *, lets_all_shake_hands: bool = False) -> ssl.SSLContext:
    """Read the server's files. Raises OSError, of which ssl.SSLError is one.

    With `lets_all_shake_hands` a client without a certificate is let in; a strange one never is.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    _load_own(context, tls)
    if tls.client_ca is not None:
        context.load_verify_locations(tls.client_ca)
        context.verify_mode = ssl.CERT_OPTIONAL if lets_all_shake_hands else ssl.CERT_REQUIRED
    return context


def reader_context(tls: PageTls) -> ssl.SSLContext:
    """Return how our own commands read pages. Raises OSError, of which ssl.SSLError is one."""
    context = ssl.create_default_context(cafile=tls.ca)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if tls.client_ca is not None:
        _load_own(context, tls)
    return context


def _load_own(context: ssl.SSLContext, tls: PageTls) -> None:
    # Without a password OpenSSL would ask the terminal for one.
    context.load_cert_chain(tls.certificate, tls.key, reveal(tls.key_password or ""))

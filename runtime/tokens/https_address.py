"""Where a POST over HTTPS goes, apart from the POST, whose library is loaded for a POST alone."""

from typing import Final
from urllib.parse import urlsplit

from wire.values import frozen

_HTTPS_PORT: Final = 443


class Silent(Exception):
    """The server's answer is none that can be used; the text says why, and quotes nothing."""


@frozen
class HttpsAddress:
    """Where to ask; `target` is the path with what is behind it."""

    host: str
    port: int
    target: str

    def __str__(self) -> str:
        """Return it without a query, which may hold a secret."""
        return f"https://{self.authority}{self.target.partition('?')[0]}"

    @property
    def authority(self) -> str:
        """Return what the header Host says."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _HTTPS_PORT else f"{host}:{self.port}"


def parse_https(url: str) -> HttpsAddress:
    """Return the parts of an address. Raises ValueError, which does not quote it."""
    parts = urlsplit(url)
    if parts.scheme != "https":
        raise ValueError("must begin with https://")
    if "@" in parts.netloc or parts.fragment:
        raise ValueError("must have neither a user nor a fragment")
    if not parts.hostname or not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError("is not an address of the form https://host:port/path")
    query = f"?{parts.query}" if parts.query else ""
    return HttpsAddress(
        host=parts.hostname, port=parts.port or _HTTPS_PORT, target=(parts.path or "/") + query
    )

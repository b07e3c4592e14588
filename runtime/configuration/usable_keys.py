"""Certificates and keys are opened when the file is read, so that a broken one is found there."""

import ssl
from pathlib import Path

from runtime.configuration.reading.section import Section
from wire.net.security import Tls
from wire.net.tls_context import make_context, reason_of


def require_usable(section: Section, key: str, tls: Tls) -> None:
    """Raise ConfigurationError at a key whose files no connection could be made with."""
    try:
        make_context(tls)
    except ssl.SSLError as problem:
        raise section.error(key, f"cannot be used: {reason_of(problem)}") from None
    except OSError as problem:
        raise section.error(key, f"cannot be used: {problem.strerror}") from None


def require_usable_ca(section: Section, key: str, ca: Path | None) -> None:
    """Do so for authorities. Those of the system, where none are named, are not of the file.

    OpenSSL would read them for 0.05 s, which every command would take longer.
    """
    if ca is not None:
        require_usable(section, key, Tls(ca=ca))

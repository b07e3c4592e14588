"""TLS contexts, of clients and of servers: made of files, and made again when those change."""

import logging
import os
import ssl
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from wire.net.secret_file import FileSecret
from wire.net.security import Pem, Tls, reveal

_LOG = logging.getLogger(__name__)

VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
"""By Kafka's names: those that are safe."""


def make_context(tls: Tls) -> ssl.SSLContext:
    """Read the files. Raises OSError, of which ssl.SSLError is one, without a file's name."""
    trusted = None if tls.truststore is None else tls.truststore.pem().certificates
    context = ssl.create_default_context(cafile=tls.ca, cadata=trusted)
    versions = [VERSIONS[name] for name in tls.protocols or VERSIONS]
    context.minimum_version, context.maximum_version = min(versions), max(versions)
    context.check_hostname = tls.checks_hostname
    if tls.ciphers:
        context.set_ciphers(":".join(tls.ciphers))
    if tls.keystore is not None:
        _load_own(context, tls.keystore.pem())
    if tls.certificate is not None:
        # Without a password OpenSSL would ask the terminal for one.
        password = reveal(tls.key_password or "")
        context.load_cert_chain(tls.certificate, tls.key, password)
    return context


def _load_own(context: ssl.SSLContext, own: Pem) -> None:
    """Load a key from memory: `ssl` reads files alone, and this key is not to be on a disk."""
    descriptor = os.memfd_create("own", os.MFD_CLOEXEC)
    with os.fdopen(descriptor, "w") as memory:
        memory.write(own.private_key + own.certificates)
        memory.flush()
        context.load_cert_chain(f"/proc/self/fd/{descriptor}", password="")


def reason_of(fault: ssl.SSLError) -> str:
    """Return what went wrong in words, without OpenSSL's file and line."""
    if isinstance(fault, ssl.SSLCertVerificationError):
        return fault.verify_message
    return (fault.reason or str(fault)).lower().replace("_", " ")


class RenewedContext:
    """The context that `make` reads from files."""

    def __init__(
        self, make: Callable[[], ssl.SSLContext], *files: Path | None, named: str = ""
    ) -> None:
        """Read the files; the log calls them `named`, or by the first one.

        Raises OSError, of which ssl.SSLError is one.
        """
        self._make = make
        self._files = files
        self._named = named or str(files[0])
        self._read_from = self._times()
        self._context = make()

    def current(self) -> ssl.SSLContext:
        """Return what holds now: of files that cannot be used, or only half, the last good ones."""
        times = self._times()
        if times != self._read_from:
            self._read_from = times  # so that what is wrong is said once
            try:
                self._context = self._make()
            except OSError as fault:
                why = reason_of(fault) if isinstance(fault, ssl.SSLError) else str(fault)
                _LOG.error("%s: not used, the last one still is: %s", self._named, why)
        return self._context

    def _times(self) -> list[tuple[int, int] | None]:
        return [None if file is None else _changed_at(file) for file in self._files]


def _changed_at(file: Path) -> tuple[int, int] | None:
    """Return when its content and when its rights have changed."""
    try:
        found = file.stat()
    except OSError:
        return None  # reading it will say why
    return found.st_mtime_ns, found.st_ctime_ns


def renewed_client_context(tls: Tls) -> RenewedContext:
    """Return what a client connects with. Raises OSError, of which ssl.SSLError is one."""
    secret = tls.key_password
    password = secret.file if isinstance(secret, FileSecret) else None
    files = (tls.ca, tls.certificate, tls.key, password, *tls.store_files)
    return RenewedContext(partial(make_context, tls), *files, named=f"{tls.trusted}; {tls.shown}")

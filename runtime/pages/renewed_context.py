"""A server's TLS keys: files that change, as certificates are renewed, are read again."""

import logging
import ssl
from collections.abc import Callable
from pathlib import Path

from wire.net.tls import reason_of

_LOG = logging.getLogger(__name__)


class RenewedContext:
    """The context that `make` reads from files, of which the first one names it in the log."""

    def __init__(self, make: Callable[[], ssl.SSLContext], *files: Path | None) -> None:
        """Read the files. Raises OSError, of which ssl.SSLError is one."""
        self._make = make
        self._files = files
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
                _LOG.error("%s: not used, the last one still is: %s", self._files[0], why)
        return self._context

    def _times(self) -> list[int | None]:
        return [None if file is None else _changed_at(file) for file in self._files]


def _changed_at(file: Path) -> int | None:
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return None  # reading it will say why

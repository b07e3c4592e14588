"""Looks whether a standalone Spark's master is there: Spark takes a minute, and names none."""

import socket
from typing import Final

_SCHEME: Final = "spark://"
_PATIENCE_S: Final = 5.0


def absent_master(master: str) -> str | None:
    """Return why none of a standalone Spark's masters takes connections; None if one does.

    Also None for a master of another kind (`k8s://`, `yarn`, `local`), about which Spark knows.
    """
    if not master.startswith(_SCHEME):
        return None
    problem = f"{master}: no host and port"
    for address in master.removeprefix(_SCHEME).split(","):
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal():
            return f"{master}: {address!r} is no host:port"
        try:
            with socket.create_connection((host.strip("[]"), int(port)), timeout=_PATIENCE_S):
                return None
        except (OSError, OverflowError) as fault:
            problem = f"the master {address} is not there: {fault}"
    return problem

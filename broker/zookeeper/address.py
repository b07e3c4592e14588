"""Where a cluster's ZooKeeper is: its servers, and the node below which they keep the cluster.

Kafka calls that node the chroot. Several clusters so share one ensemble: none sees the others.
"""

import re
from typing import Final

FORM: Final = "host:port[,host:port][/chroot]"
_ADDRESS: Final = re.compile(r"[^:,/\s]+:\d+(,[^:,/\s]+:\d+)*(/(?!\.\.?(/|$))[^:,/\s]+)*")
_MAX_PORT: Final = 65_535


def check_address(text: str) -> None:
    """Raise ValueError, which says what is wrong, where a text is not of the form `FORM`."""
    if _ADDRESS.fullmatch(text) is None:
        raise ValueError(f"{text!r} is not of the form {FORM}")
    for server in servers_of(text).split(","):
        port = server.rpartition(":")[2]
        if not 0 < int(port) <= _MAX_PORT:
            raise ValueError(f"{server!r}: there is no port {port}")


def servers_of(address: str) -> str:
    """Return the servers alone, `host:port[,host:port]`."""
    return address.partition("/")[0]


def chroot_of(address: str) -> str:
    """Return the path of the node below which the cluster is, empty for the root."""
    _, slash, path = address.partition("/")
    return slash + path

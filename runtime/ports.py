"""Free ports for servers that are started a moment later, by whichever process."""

import random
import socket
from collections.abc import Iterator
from typing import Final

UNASSIGNED_PORTS: Final = range(15_000, 32_000)
"""Below the range from which the system picks outgoing ports, so that none is lost to those."""

_LUCK: Final = random.SystemRandom()
"""Not the common one: processes that seed that alike would be given the same ports."""


def free_ports(host: str) -> Iterator[int]:
    """Yield ports that were free a moment ago, none twice."""
    for port in _LUCK.sample(UNASSIGNED_PORTS, len(UNASSIGNED_PORTS)):
        with socket.socket() as probe:
            try:
                probe.bind((host, port))
            except OSError:
                continue
        yield port


def free_port(host: str = "127.0.0.1") -> int:
    """Return a port that was free a moment ago."""
    return next(free_ports(host))

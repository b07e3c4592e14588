"""Free ports for servers that are started a moment later, by whichever process."""

import random
import socket
from collections.abc import Iterator
from errno import EADDRNOTAVAIL
from typing import Final

UNASSIGNED_PORTS: Final = range(15_000, 32_000)
"""Below the range from which the system picks outgoing ports, so that none is lost to those."""

_LUCK: Final = random.SystemRandom()
"""A generator of its own: processes that seed the common one alike would get the same ports."""


class NoFreePort(Exception):
    """Nobody can listen on a host; the message names it and says why."""


def free_ports(host: str, among: range = UNASSIGNED_PORTS) -> Iterator[int]:
    """Yield ports on which nobody listens, each kept from other callers until this process ends.

    Two clusters that start at once would otherwise choose the same port now and then, seconds
    before either listens. A port is kept by a socket that is bound and never listens: a bind
    without SO_REUSEADDR, as here, is refused, one with it, as every server's, is not.

    Raises NoFreePort where nobody can listen at all.
    """
    try:
        [(family, *_, (address, *_)), *_] = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise NoFreePort(f"{host}: {getattr(error, 'strerror', None) or error}") from error
    for port in _LUCK.sample(among, len(among)):
        with socket.socket(family) as keeper:
            try:
                keeper.bind((address, port))
            except OSError as error:
                if error.errno == EADDRNOTAVAIL:
                    raise NoFreePort(f"{host}: {error.strerror}") from error
                continue
            keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            keeper.detach()
        yield port


def free_port(host: str = "127.0.0.1") -> int:
    """Return a port on which nobody listens, kept as those of `free_ports` are.

    Raises NoFreePort where there is none.
    """
    for port in free_ports(host):
        return port
    raise NoFreePort(
        f"{host}: every port from {UNASSIGNED_PORTS[0]} to {UNASSIGNED_PORTS[-1]} is taken"
    )

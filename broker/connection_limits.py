"""How many connections may be open: in all, by address, and by listener (Kafka's ConnectionQuotas).

max.connections                        of the broker
listener.name.<name>.max.connections   of one listener
max.connections.per.ip                 of one address, unless
max.connections.per.ip.overrides       says otherwise of it: 10.0.0.1:200,10.0.0.2:100
"""

from collections import Counter
from collections.abc import Callable, Mapping
from ipaddress import ip_address

from wire.values import frozen


@frozen
class ConnectionLimits:
    """The limits of one broker. Functions are asked each time: settings and open files change."""

    most_in_all: Callable[[], int]
    most_of: Callable[[str], int]
    """By address."""
    of_listener: Mapping[str, int]


class OpenConnections:
    """The connections that are open, by listener and by address."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._by_listener: Counter[str] = Counter()
        self._by_address: Counter[str] = Counter()

    def why_not(self, listener: str, address: str) -> str | None:
        """Return why one more is refused; None when it may come in."""
        limits = self._limits
        in_all = self._by_listener.total()
        if in_all >= limits.most_in_all():
            return f"{in_all} connections are open"
        of_listener = self._by_listener[listener]
        if of_listener >= limits.of_listener.get(listener, in_all + 1):
            return f"{of_listener} connections are open on {listener}"
        of_address = self._by_address[address]
        if of_address >= limits.most_of(address):
            return f"{of_address} connections of {address} are open"
        return None

    def opened(self, listener: str, address: str) -> None:
        """Count one."""
        self._by_listener[listener] += 1
        self._by_address[address] += 1

    def closed(self, listener: str, address: str) -> None:
        """Count one less; an address without any is forgotten."""
        self._by_listener[listener] -= 1
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]


def parse_overrides(text: str) -> Mapping[str, int]:
    """Return limits by address, as `10.0.0.1:200,::1:100`. Raises ValueError naming the part."""
    limits: dict[str, int] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        address, _, number = part.rpartition(":")
        try:
            limits[str(ip_address(address.strip("[]")))] = int(number)
        except ValueError:
            raise ValueError(f"{part!r} is not of the form ADDRESS:NUMBER") from None
        if int(number) < 0:
            raise ValueError(f"{part!r}: a number below zero")
    return limits

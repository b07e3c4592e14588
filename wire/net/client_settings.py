"""How a client waits for a cluster, and what its sockets hold: values under Kafka's names."""

from typing import Final

from wire.values import frozen

SYSTEMS_OWN: Final = 0
"""For how much may wait unsent in a socket, and for how long: what the system's settings say."""
CONNECT_TIMEOUT_MS: Final = 10_000
RECONNECT_BACKOFF_MS: Final = 50
RECONNECT_BACKOFF_MAX_MS: Final = 1_000
RETRY_BACKOFF_MS: Final = 100
_MOST_DOUBLINGS: Final = 16


@frozen
class SocketSettings:
    """The settings of one connection's socket."""

    connect_timeout_ms: int = CONNECT_TIMEOUT_MS
    """For TCP, and once more for the handshake of TLS."""
    send_bytes: int | None = None
    """None: as much as we have found good. -1: the system's own, as it grows by itself."""
    receive_bytes: int | None = None
    """None, -1: the system's own."""
    undelivered_ms: int = SYSTEMS_OWN
    """The system takes back what the other host has not acknowledged for so long."""

    @property
    def connect_timeout_s(self) -> float:
        """Return `connect_timeout_ms` in seconds."""
        return self.connect_timeout_ms / 1_000


ORDINARY: Final = SocketSettings()


@frozen
class Growing:
    """A pause in milliseconds that doubles from one failure to the next, up to its longest."""

    first_ms: int
    longest_ms: int

    def after_s(self, failures: int) -> float:
        """Return the pause, in seconds, after so many failures in a row: 1 or more."""
        doubled = self.first_ms << min(failures - 1, _MOST_DOUBLINGS)
        return min(doubled, self.longest_ms) / 1_000


@frozen
class ClientSettings:
    """What a user sets of all connections to a cluster; None is what nobody has set."""

    request_timeout_ms: int | None = None
    connect_timeout_ms: int | None = None
    reconnect_backoff_ms: int | None = None
    reconnect_backoff_max_ms: int | None = None
    retry_backoff_ms: int | None = None
    retry_backoff_max_ms: int | None = None
    send_bytes: int | None = None
    receive_bytes: int | None = None

    @property
    def reconnect(self) -> Growing:
        """Return the pauses before a broker that could not be reached is tried again."""
        return _growing(
            self.reconnect_backoff_ms,
            self.reconnect_backoff_max_ms,
            Growing(first_ms=RECONNECT_BACKOFF_MS, longest_ms=RECONNECT_BACKOFF_MAX_MS),
        )

    @property
    def retry(self) -> Growing:
        """Return the pauses before a broker is asked again that answered `not now`."""
        return _growing(
            self.retry_backoff_ms,
            self.retry_backoff_max_ms,
            Growing(first_ms=RETRY_BACKOFF_MS, longest_ms=RETRY_BACKOFF_MS),
        )

    def sockets(self, undelivered_ms: int = SYSTEMS_OWN) -> SocketSettings:
        """Return what of it is a socket's."""
        return SocketSettings(
            connect_timeout_ms=_or(self.connect_timeout_ms, CONNECT_TIMEOUT_MS),
            send_bytes=self.send_bytes,
            receive_bytes=self.receive_bytes,
            undelivered_ms=undelivered_ms,
        )

    def no_slower(self, request_timeout_ms: int) -> "ClientSettings":
        """Return the same for a program that waits so long for an answer, and has deadlines.

        What a user sets may shorten its waits and never makes one longer.
        """
        reconnect, retry = self.reconnect, self.retry
        return ClientSettings(
            request_timeout_ms=min(
                _or(self.request_timeout_ms, request_timeout_ms), request_timeout_ms
            ),
            connect_timeout_ms=min(self.sockets().connect_timeout_ms, CONNECT_TIMEOUT_MS),
            reconnect_backoff_ms=min(reconnect.first_ms, RECONNECT_BACKOFF_MS),
            reconnect_backoff_max_ms=min(reconnect.longest_ms, RECONNECT_BACKOFF_MAX_MS),
            retry_backoff_ms=min(retry.first_ms, RETRY_BACKOFF_MS),
            retry_backoff_max_ms=min(retry.longest_ms, RETRY_BACKOFF_MS),
            send_bytes=self.send_bytes,
            receive_bytes=self.receive_bytes,
        )


UNSET: Final = ClientSettings()


def _growing(first_ms: int | None, longest_ms: int | None, usual: Growing) -> Growing:
    first = _or(first_ms, usual.first_ms)
    return Growing(first_ms=first, longest_ms=_or(longest_ms, max(first, usual.longest_ms)))


def _or(value: int | None, default: int) -> int:
    return default if value is None else value

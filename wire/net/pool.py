"""At most one connection to each address and lane, made when needed, remade with backoff."""

import random
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

import trio

from wire.net.backoff import Backoff
from wire.net.connecting import ConnectionSettings, connect
from wire.net.connection import Connection
from wire.net.errors import AuthenticationFailed, BrokerUnreachable
from wire.net.transport import Address

PREPARED_AFTER_S: Final = 1.0
"""A client that looks something up and leaves begins no connection that it would drop half made."""
PREPARED_AGAIN_S: Final = 30.0
"""How soon `prepare` tries a broker again that it could not reach."""


class _Peer:
    """What is known of one address."""

    __slots__ = ("backoff", "connection", "one_at_a_time", "refused")

    def __init__(self, backoff: Backoff) -> None:
        self.connection: Connection | None = None
        self.backoff = backoff
        self.one_at_a_time = trio.Lock()
        self.refused: str | None = None
        """Why we, or the broker, were not believed the last time."""

    def may_be_prepared(self, now: float) -> bool:
        """Say whether to connect though nobody needs it; refused credentials are counted."""
        is_open = self.connection is not None and self.connection.is_open
        if is_open or self.one_at_a_time.locked() or self.refused is not None:
            return False
        return now >= self.backoff.not_before + PREPARED_AGAIN_S


class ConnectionPool:
    """The connections of one client; their tasks live in its nursery."""

    def __init__(self, nursery: trio.Nursery, settings: ConnectionSettings) -> None:
        self._nursery = nursery
        self._settings = settings
        self._peers: dict[tuple[Address, int], _Peer] = {}
        self._prepares_soon = False

    async def connection(self, address: Address, lane: int = 0) -> Connection:
        """Return the open connection, or make one: a single attempt, after the backoff is over.

        Each `lane` is a connection of its own.

        Callers who come while an attempt is under way share its outcome. Raises BrokerUnreachable;
        once AuthenticationFailed, that at once to all callers until another attempt is due.
        """
        peer = self._peers.get((address, lane))
        if peer is None:
            peer = self._peers[address, lane] = _Peer(self._settings.backoff)
        if peer.connection is not None and peer.connection.is_open:
            return peer.connection
        failures = peer.backoff.failures
        async with peer.one_at_a_time:
            if peer.connection is not None and peer.connection.is_open:
                return peer.connection
            if peer.refused is not None and trio.current_time() < peer.backoff.not_before:
                raise AuthenticationFailed(peer.refused)
            if peer.backoff.failures > failures:
                raise BrokerUnreachable(f"{address[0]}:{address[1]}: the attempt under way failed")
            await trio.sleep_until(peer.backoff.not_before)
            return await self._attempt(address, peer)

    def is_open(self, address: Address) -> bool:
        """Say whether a connection to the address is open now."""
        peer = self._peers.get((address, 0))
        return peer is not None and peer.connection is not None and peer.connection.is_open

    def soonest_first(self, addresses: Iterable[Address]) -> list[Address]:
        """Return the addresses, open connections first, then by when they may be tried again."""

        def readiness(address: Address) -> tuple[bool, float]:
            peer = self._peers.get((address, 0))
            not_before = float("-inf") if peer is None else peer.backoff.not_before
            return not self.is_open(address), not_before

        return sorted(dict.fromkeys(addresses), key=readiness)

    def prepare(self, addresses: Iterable[Address]) -> None:
        """Soon connect to the first of them that has not failed lately, unless one is open then.

        Nobody waits for it. A caller that needs a failed broker hears why by a try of its own.
        """
        if not self._prepares_soon:
            self._prepares_soon = True
            self._nursery.start_soon(self._prepare, tuple(addresses))

    async def _prepare(self, addresses: Sequence[Address]) -> None:
        await trio.sleep(PREPARED_AFTER_S)
        self._prepares_soon = False
        if any(map(self.is_open, addresses)):
            return
        now = trio.current_time()
        for address in addresses:
            peer = self._peers.get((address, 0))
            if peer is None or peer.may_be_prepared(now):
                with suppress(BrokerUnreachable):
                    await self.connection(address)
                return

    def close(self, reason: str) -> None:
        """Close all connections."""
        for peer in self._peers.values():
            if peer.connection is not None:
                peer.connection.close(reason)

    async def _attempt(self, address: Address, peer: _Peer) -> Connection:
        try:
            peer.connection = await connect(self._nursery, address, self._settings)
        except BrokerUnreachable as fault:
            was_refused = isinstance(fault, AuthenticationFailed)
            named = self._named(fault)
            peer.refused = str(named) if was_refused else None
            luck = random.random()  # noqa: S311 - spreads clients, keeps no secret
            now = trio.current_time()
            peer.backoff = peer.backoff.after_failure(now, luck, was_refused=was_refused)
            raise named from fault
        peer.backoff = self._settings.backoff
        peer.refused = None
        return peer.connection

    def _named(self, fault: BrokerUnreachable) -> BrokerUnreachable:
        """Return the fault with the cluster's name before it."""
        name = self._settings.cluster_name
        return type(fault)(f"{name}: {fault}" if name else str(fault))

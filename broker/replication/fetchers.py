"""The fetchers of one broker: one per leader that it follows."""

from collections.abc import Callable, Mapping
from typing import Protocol

import trio

from broker.clock import Clock
from broker.replication.fetcher import FetcherSettings, ReplicaFetcher
from broker.replication.partition import Partition
from wire.net.pool import ConnectionPool
from wire.net.transport import Address


class Following(Protocol):
    """The fetchers of the replicas that do not lead, as `Partitions` uses them."""

    def follow(self, partition: Partition) -> None:
        """Fetch from the partition's leader, and from no other any more."""

    def leave(self, partition: Partition) -> None:
        """Fetch it no longer."""


class Fetchers:
    """Starts a fetcher when the first partition of a leader comes; moves partitions between them.

    `addresses` gives where the live brokers are, as far as this broker has been told.
    """

    def __init__(
        self,
        broker_id: int,
        nursery: trio.Nursery,
        pool: ConnectionPool,
        clock: Clock,
        settings: FetcherSettings,
        addresses: Callable[[], Mapping[int, Address]],
    ) -> None:
        self._broker_id = broker_id
        self._nursery = nursery
        self._pool = pool
        self._clock = clock
        self._settings = settings
        self._addresses = addresses
        self._fetchers: dict[int, ReplicaFetcher] = {}
        self._leaders: dict[tuple[str, int], int] = {}

    def follow(self, partition: Partition) -> None:
        """Fetch from the partition's leader, and from no other any more."""
        name, leader = (partition.topic, partition.index), partition.leadership.leader
        known = self._leaders.get(name)
        if known is not None and known != leader:
            self._fetchers[known].leave(partition)
        self._leaders[name] = leader
        self._fetcher(leader).follow(partition)

    def leave(self, partition: Partition) -> None:
        """Fetch it no longer."""
        leader = self._leaders.pop((partition.topic, partition.index), None)
        if leader is not None:
            self._fetchers[leader].leave(partition)

    def _fetcher(self, leader: int) -> ReplicaFetcher:
        fetcher = self._fetchers.get(leader)
        if fetcher is None:
            fetcher = ReplicaFetcher(
                self._broker_id, leader, self._pool, self._clock, self._settings
            )
            fetcher.address = self._addresses().get(leader)
            self._fetchers[leader] = fetcher
            self._nursery.start_soon(fetcher.run, name=f"fetcher of leader {leader}")
        return fetcher

    def addresses_changed(self) -> None:
        """Look up anew where the leaders are. A leader that is unknown now keeps its address."""
        addresses = self._addresses()
        for leader, fetcher in self._fetchers.items():
            fetcher.address = addresses.get(leader, fetcher.address)
            fetcher.wake()

"""Replication's tasks beside the requests: fetchers, the ISRs, and the high watermarks' file."""

from collections.abc import Mapping

import trio

from broker.clock import Clock
from broker.config import BrokerConfig
from broker.inter_broker import Peers, inter_broker_connections
from broker.metadata_cache import MetadataCache
from broker.replication.fetcher import FetcherSettings
from broker.replication.fetchers import Fetchers
from broker.replication.in_sync import IsrRules
from broker.replication.isr_changes import IsrChanges
from broker.replication.partition import Surroundings
from broker.replication.partitions import Partitions
from wire.net.pool import ConnectionPool
from wire.net.transport import Address


class Replication:
    """Connects the replicas of this broker with those of the others."""

    def __init__(self, config: BrokerConfig, metadata: MetadataCache, peers: Peers) -> None:
        """Ask the controller over the pool; leaders are asked over connections of their own."""
        self._brokers = peers.brokers
        self._config = config
        self._metadata = metadata
        self.isr_changes = IsrChanges(config.broker_id, peers.pool, self._controller_address)

    def surroundings(self) -> Surroundings:
        """Return what the replicas need."""
        return Surroundings(
            rules=IsrRules(
                lag_time_max_ms=self._config.replica_lag_time_max_ms,
                is_alive=lambda broker_id: broker_id in self._metadata.brokers,
            ),
            ask_for_isr=self.isr_changes.ask,
        )

    def _controller_address(self) -> Address | None:
        controller = self._metadata.brokers.get(self._metadata.controller_id)
        return None if controller is None else (controller.host, controller.port)

    def start(self, nursery: trio.Nursery, partitions: Partitions, clock: Clock) -> None:
        """Begin; everything ends with the nursery."""
        config = self._config
        client_id = f"broker-{config.broker_id}-fetcher"

        def broker_epoch() -> int:
            return partitions.broker_epoch

        fetchers = Fetchers(
            config.broker_id,
            nursery,
            ConnectionPool(
                nursery, inter_broker_connections(config, self._brokers, client_id=client_id)
            ),
            clock,
            FetcherSettings(
                replica_fetch_max_bytes=config.replica_fetch_max_bytes,
                replica_fetch_response_max_bytes=config.replica_fetch_response_max_bytes,
                replica_fetch_min_bytes=config.replica_fetch_min_bytes,
                replica_fetch_wait_max_ms=config.replica_fetch_wait_max_ms,
                replica_fetch_backoff_ms=config.replica_fetch_backoff_ms,
                replica_socket_timeout_ms=config.replica_socket_timeout_ms,
                quota=partitions.quotas.follower,
                broker_epoch=broker_epoch,
            ),
            lambda: {**partitions.known_leaders, **self._addresses()},
        )
        self.isr_changes.broker_epoch = broker_epoch
        partitions.following = fetchers
        nursery.start_soon(self.isr_changes.run)
        nursery.start_soon(
            partitions.look_after_isrs, max(config.replica_lag_time_max_ms, 2) / 2 / 1000
        )
        nursery.start_soon(
            partitions.save_high_watermarks_regularly,
            config.replica_high_watermark_checkpoint_interval_ms / 1000,
        )
        nursery.start_soon(self._follow_brokers, fetchers, partitions)

    def _addresses(self) -> Mapping[int, Address]:
        brokers = self._metadata.brokers
        return {broker_id: (broker.host, broker.port) for broker_id, broker in brokers.items()}

    async def _follow_brokers(self, fetchers: Fetchers, partitions: Partitions) -> None:
        known = self._metadata.brokers
        while True:
            await self._metadata.wait_changed()
            if self._metadata.brokers != known:
                known = self._metadata.brokers
                fetchers.addresses_changed()
                partitions.brokers_changed()

"""One running broker: puts its parts together, starts them in order, and ends them in order."""

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Final, NamedTuple

import trio

from broker.ages import Ages
from broker.apis.table import APIS
from broker.authorizer.acl_watch import AclWatch
from broker.authorizer.authorizer import Authorizer, AuthorizerSettings
from broker.clock import Clock
from broker.config import BrokerConfig
from broker.config_watch import ConfigWatch
from broker.controller.controller import Controller
from broker.controller.settings import settings_of
from broker.controller.topics import TopicSpec
from broker.dynamic_config import FOLLOWER_RATE, LEADER_RATE, DynamicConfig
from broker.groups.coordinator import GroupCoordinator
from broker.held_before import note_held_before
from broker.inter_broker import Peers, inter_broker_connections
from broker.leaving import BrokerDeparture
from broker.led_partition import CONSUMER_OFFSETS, TRANSACTION_STATE
from broker.listeners import Listener
from broker.log.cleaner import CleanerSettings, LogCleaner
from broker.log.log_manager import CareIntervals, LogManager
from broker.log.results import StorageError
from broker.metadata_cache import MetadataCache
from broker.metrics import BrokerCollector, BrokerState, RequestMetrics
from broker.partition_gauges import PartitionGauges
from broker.producer_ids import ProducerIds
from broker.quotas.entity import QuotaEntity
from broker.registration import BrokerRegistrar
from broker.replication.partition import Partition
from broker.replication.partitions import Partitions
from broker.replication.running import Replication
from broker.security.brokers import ClusterBrokers, cluster_brokers, new_secret
from broker.security.first_users import add_first_users
from broker.server import Bound, Server, bind
from broker.starting import retried
from broker.topic_creation import TopicCreation
from broker.transactions.coordinator import TransactionCoordinator
from broker.transactions.marking import MarkerSender
from broker.transactions.verification import Verifier
from broker.zookeeper.acl_store import AclStore
from broker.zookeeper.chroot import make_chroot
from broker.zookeeper.login import access_of
from broker.zookeeper.store import Change, ClusterStore
from broker.zookeeper.taking_over import take_over
from runtime.coordination.zookeeper import ZooKeeper, ZooKeeperFault, open_zookeeper
from runtime.pages.exposition import program_registry
from runtime.pages.metrics import serve_metrics
from runtime.process import clock as wall
from runtime.process.open_files import allow_many_files
from runtime.process.tasks import background_tasks
from wire.errors import ErrorCode
from wire.net.pool import ConnectionPool
from wire.values import frozen

_LOG = logging.getLogger(__name__)

METADATA_WAIT_S: Final = 5.0
TICK_S: Final = 1.0
CLOSE_LOGS_S: Final = 5.5
"""With the four of `broker.leaving` it fits into the ten seconds that a broker has to leave."""


class SystemClock:
    """The machine's clocks; the monotonic one is trio's, so that tests may move it."""

    def __init__(self) -> None:
        self._ages = Ages()

    def now_ms(self) -> int:
        return wall.now_ms()

    def wall_ms(self) -> int:
        return wall.wall_ms()

    def age_ms(self) -> int:
        return self._ages.at(wall.now_ms(), wall.wall_ms())

    def monotonic_ms(self) -> int:
        return int(trio.current_time() * 1000)


class KnownCluster(NamedTuple):
    """The parts of the cluster that a broker knows before it opens its logs."""

    store: ClusterStore
    metadata: MetadataCache
    brokers: ClusterBrokers
    watch: ConfigWatch
    acls: AclWatch | None
    """None where no authorizer is set."""


class BrokerNode:
    """The node that handlers see (`broker.context.Node`); `run_broker` makes it."""

    def __init__(
        self,
        config: BrokerConfig,
        known: KnownCluster,
        logs: LogManager,
        peers: Peers,
        registration: BrokerRegistrar,
    ) -> None:
        metadata, config_watch = known.metadata, known.watch
        self.acls = known.acls
        self.cluster_brokers = peers.brokers
        self.broker_id: int = config.broker_id
        self.config = config
        self.clock: Clock = SystemClock()
        self.metadata = metadata
        self.dynamic = config_watch.dynamic
        self.store = config_watch.store
        self.metrics = RequestMetrics()
        self.scram_users = config_watch.scram_users
        self.quotas = config_watch.quotas
        self.logs = logs
        self.replication = Replication(config, metadata, peers)
        self.partitions = Partitions(
            config.broker_id,
            logs,
            self.dynamic.log_config,
            self.clock,
            self.replication.surroundings(),
        )
        self.partition_gauges = PartitionGauges(self.partitions)
        self.partitions.fetch_sessions.slots = config.max_incremental_fetch_session_cache_slots
        self.controller = Controller(
            config.broker_id,
            self.store,
            self.clock,
            settings_of(config, self.dynamic, peers.brokers),
        )
        self.groups = GroupCoordinator(self)
        self.partitions.listen(CONSUMER_OFFSETS, self.groups)
        self.transactions = TransactionCoordinator(self, MarkerSender(self, peers.pool))
        self.partitions.listen(TRANSACTION_STATE, self.transactions)
        self.verifier = Verifier(self, peers.pool)
        self.cleaner = _cleaner(self) if config.log_cleaner_enable else None
        self._config_watch = config_watch
        self._registration = registration
        self._creation = TopicCreation(config, self.controller, metadata, peers.pool)
        self._producer_ids = ProducerIds(config.broker_id, self.store, logs.logs.values)
        self._announced_failures = 0

    def led(self, topic: str, index: int) -> Partition | ErrorCode:
        return self.partitions.led(topic, index) or self.metadata.why_not_led(topic, index)

    async def has_elected(self, controller_epoch: int) -> bool:
        """Say whether ZooKeeper has given this epoch to a controller; raises ZooKeeperFault."""
        if controller_epoch <= self.partitions.controller_epoch:
            return True
        return controller_epoch <= await self.store.controller_epoch()

    async def is_registered_as(self, broker_epoch: int) -> bool:
        return await self._registration.is_present(broker_epoch)

    async def wait_metadata(self) -> None:
        with trio.move_on_after(METADATA_WAIT_S):
            while not self.metadata.brokers:
                await self.metadata.wait_changed()

    def reconfigure(self) -> None:
        """Let everybody know that dynamic settings have changed."""
        quotas = self.partitions.quotas
        quotas.leader.rate = self.dynamic.replication_rate(LEADER_RATE)
        quotas.follower.rate = self.dynamic.replication_rate(FOLLOWER_RATE)
        running = self.dynamic.running
        self.logs.expire_producers_after(running.producer_id_expiration_ms)
        if self.cleaner is not None:
            self.cleaner.change_settings(cleaner_settings(running))
        self.partitions.reconfigure_all()
        self._registration.advertise(running)
        self.controller.settings.note_change()

    async def change_quotas(self, entity: QuotaEntity, change: Change) -> None:
        await self._config_watch.change_quotas(entity, change)

    async def create_topic(self, spec: TopicSpec) -> ErrorCode:
        return await self._creation.create(spec)

    async def ensure_internal_topic(self, name: str) -> ErrorCode:
        return await self._creation.ensure_internal(name)

    async def next_producer_id(self) -> int:
        return await self._producer_ids.next()

    async def look_after_producer_ids(self) -> None:
        async with self.store.watch_session() as states:
            await self._producer_ids.follow(states)

    async def know_topics(self, names: Sequence[str]) -> None:
        unknown = [name for name in names if not self.dynamic.knows(name)]
        await self._config_watch.load_topics(unknown)

    def is_ready(self) -> bool:
        """Return whether the cluster knows this broker, and this broker the cluster."""
        return self.broker_id in self.metadata.brokers

    def state(self) -> BrokerState:
        """Return what a scrape shows, behind `partition_gauges.lines`."""
        topics = self.metadata.topics().values()
        return BrokerState(
            held=self.partition_gauges.counts,
            offline_partitions=sum(
                part.leader < 0 for topic in topics for part in topic.partitions.values()
            ),
            offline_log_folders=len(self.logs.offline),
            is_controller=self.controller.is_active,
            isr=self.replication.isr_changes.counts,
            cleaner=None if self.cleaner is None else self.cleaner.state(),
        )

    async def look_after_logs(self) -> None:
        """Let the logs do what is due, once a second; what takes a disk long, in a thread.

        Raises StorageError when the last log folder has failed: as a leader that can neither
        write nor read, the broker would only hide that its partitions are gone.
        """
        while True:
            await trio.sleep(TICK_S)
            due = self.logs.tick(
                self.clock.now_ms(),
                wall_ms=self.clock.age_ms(),
                high_watermark=self.partitions.high_watermark,
            )
            for pending in due:
                await trio.to_thread.run_sync(pending.run)
                try:
                    pending.finish()
                except StorageError as error:
                    _LOG.error("not flushed: %s", error)
            failures = self.logs.offline
            if len(failures) == len(self.config.log_dirs):
                failure = next(iter(failures.values()))
                raise StorageError(failure.path, f"{failure.reason}; no log folder is left")
            await self._announce_failures(len(failures))

    async def _announce_failures(self, failed: int) -> None:
        """Let the controller know of failed log folders; without ZooKeeper, at the next look."""
        if failed <= self._announced_failures:
            return
        self.partitions.folders_failed()
        try:
            await self.store.announce_log_dir_failure(self.broker_id)
        except ZooKeeperFault as fault:
            _LOG.warning("a failed log folder cannot be announced: %s", fault)
        else:
            self._announced_failures = failed


@frozen
class Started:
    """A broker that takes connections."""

    broker_id: int
    endpoints: tuple[Listener, ...]
    metrics_port: int | None


async def run_broker(
    config: BrokerConfig, *, task_status: trio.TaskStatus[Started] = trio.TASK_STATUS_IGNORED
) -> None:
    """Run one broker until cancelled; reports when it takes connections.

    Raises what keeps it from starting, each with a message of one line: CannotListen,
    ZooKeeperUnreachable, StorageError, BrokerIdTaken, AddressInUse. When it is cancelled it serves
    on until its leaderships are given away (controlled shutdown).
    """
    allow_many_files()
    async with background_tasks() as tasks:
        stopping = trio.Event()
        tasks.start_soon(_set_when_cancelled, stopping)
        await _run(config, stopping, task_status)


async def _set_when_cancelled(event: trio.Event) -> None:
    try:
        await trio.sleep_forever()
    finally:
        event.set()


async def _run(
    config: BrokerConfig, stopping: trio.Event, task_status: trio.TaskStatus[Started]
) -> None:
    # The order matters: listeners, then logs, then serving, registration and the contest for
    # controller. In any other one clients are sent to a broker that cannot answer yet.
    sockets = await bind(config.listeners, config.socket_listen_backlog_size)
    async with open_zookeeper(
        config.zookeeper_connect,
        session_timeout_ms=config.zookeeper_session_timeout_ms,
        start_timeout_ms=config.zookeeper_connection_timeout_ms,
        access=access_of(config),
    ) as zookeeper:
        known = await _learn_cluster(config, zookeeper)
        metadata = known.metadata
        registration = BrokerRegistrar(known.watch.dynamic.running, sockets, known.store)
        with trio.CancelScope() as serving:
            async with (
                _open_logs(config, known) as logs,
                trio.open_nursery() as nursery,
            ):
                client_id = f"broker-{config.broker_id}"
                settings = inter_broker_connections(config, known.brokers, client_id=client_id)
                pool = ConnectionPool(nursery, settings)
                peers = Peers(brokers=known.brokers, pool=pool)
                node = BrokerNode(config, known, logs, peers, registration)
                metrics_port = await _start_serving(node, known.watch, sockets, nursery)
                # Only who serves may be found: the controller speaks to whom it sees at once.
                await retried(zookeeper, _patience_s(config), registration.register_first)
                nursery.start_soon(registration.run)
                nursery.start_soon(node.look_after_producer_ids)
                nursery.start_soon(node.controller.run)
                endpoints = registration.endpoints
                where = ",".join(map(str, endpoints))
                _LOG.info("broker %s listens on %s", config.broker_id, where)
                task_status.started(
                    Started(
                        broker_id=config.broker_id, endpoints=endpoints, metrics_port=metrics_port
                    )
                )
                departure = BrokerDeparture(
                    config.broker_id, node.controller, metadata, registration, pool
                )
                serving.shield = True  # it serves on until others have taken over
                await _leave_when(stopping, departure, config)
                nursery.cancel_scope.cancel()


async def _learn_cluster(config: BrokerConfig, zookeeper: ZooKeeper) -> KnownCluster:
    """Read from ZooKeeper what the cluster is, and write there what the first broker has to."""
    patience_s = _patience_s(config)
    address, timeout_ms = config.zookeeper_connect, config.zookeeper_connection_timeout_ms
    await retried(zookeeper, patience_s, partial(make_chroot, zookeeper, address, timeout_ms))
    if config.zookeeper_set_acl:
        await retried(zookeeper, patience_s, partial(take_over, zookeeper))
    store = ClusterStore(zookeeper, config.inter_broker_listener.name)
    metadata = MetadataCache(await retried(zookeeper, patience_s, store.prepare))
    secret = await retried(zookeeper, patience_s, partial(store.broker_secret, new_secret()))
    brokers = cluster_brokers(config, config.super_users, secret)
    watch = ConfigWatch(store, DynamicConfig(config))
    await retried(zookeeper, patience_s, watch.load_all)
    first_users = partial(add_first_users, config, store, watch.scram_users)
    await retried(zookeeper, patience_s, first_users)
    acls = await _learn_rights(config, zookeeper)
    return KnownCluster(store, metadata, brokers, watch, acls)


async def _learn_rights(config: BrokerConfig, zookeeper: ZooKeeper) -> AclWatch | None:
    """Read all access control entries, if an authorizer is set: nobody is served before."""
    if not config.authorizer_class_name:
        return None
    store = AclStore(zookeeper)
    settings = AuthorizerSettings(
        super_users=frozenset(config.super_users),
        allows_where_no_acl_is=config.allow_everyone_if_no_acl_found,
    )
    acls = AclWatch(store, Authorizer(settings))
    await retried(zookeeper, _patience_s(config), store.prepare)
    await retried(zookeeper, _patience_s(config), acls.load_all)
    return acls


def _patience_s(config: BrokerConfig) -> float:
    return config.zookeeper_connection_timeout_ms / 1000


async def _start_serving(
    node: BrokerNode, watch: ConfigWatch, sockets: Sequence[Bound], nursery: trio.Nursery
) -> int | None:
    """Start the parts that serve clients and other brokers; return the port of /metrics."""
    watch.on_change = node.reconfigure
    node.reconfigure()
    metrics_port = await _start_metrics(node, nursery)
    await nursery.start(node.groups.run)
    await nursery.start(node.transactions.run)
    node.replication.start(nursery, node.partitions, node.clock)
    nursery.start_soon(Server(node, APIS, node.config).serve, sockets)
    nursery.start_soon(watch.run)
    if node.acls is not None:
        nursery.start_soon(node.acls.run)
    nursery.start_soon(node.look_after_logs)
    if node.cleaner is not None:
        nursery.start_soon(node.cleaner.run)
    return metrics_port


async def _leave_when(
    stopping: trio.Event, departure: BrokerDeparture, config: BrokerConfig
) -> None:
    """Wait until the broker is to stop, or is cancelled; then let it leave the cluster."""
    try:
        await stopping.wait()
    finally:
        with trio.CancelScope(shield=True):
            await departure.leave(
                is_controlled=stopping.is_set() and config.controlled_shutdown_enable
            )


def cleaner_settings(config: BrokerConfig) -> CleanerSettings:
    """Return what the cleaner goes by."""
    return CleanerSettings(
        backoff_ms=config.log_cleaner_backoff_ms,
        dedupe_buffer_size=config.log_cleaner_dedupe_buffer_size,
        io_buffer_load_factor=config.log_cleaner_io_buffer_load_factor,
        io_max_bytes_per_second=config.log_cleaner_io_max_bytes_per_second,
    )


def _cleaner(node: BrokerNode) -> LogCleaner:
    return LogCleaner(
        node.logs,
        cleaner_settings(node.config),
        high_watermark=node.partitions.high_watermark,
        now_ms=node.clock.age_ms,  # lags are counted from the stamps of records
    )


@asynccontextmanager
async def _open_logs(config: BrokerConfig, known: KnownCluster) -> AsyncIterator[LogManager]:
    """Open every log, recovering what an unclean stop left; close them cleanly in the end."""
    store = known.store
    await retried(store.zookeeper, _patience_s(config), partial(note_held_before, config, store))
    logs = await trio.to_thread.run_sync(
        partial(
            LogManager.open,
            config.log_dirs,
            broker_id=config.broker_id,
            cluster_id=known.metadata.cluster_id,
            config_of=known.watch.dynamic.log_config,
            now_ms=wall.now_ms(),
            care=CareIntervals(
                log_retention_check_interval_ms=config.log_retention_check_interval_ms,
                producer_id_expiration_ms=config.producer_id_expiration_ms,
            ),
        )
    )
    try:
        yield logs
    finally:
        closing = trio.CancelScope(shield=True, deadline=trio.current_time() + CLOSE_LOGS_S)
        with closing:
            await trio.to_thread.run_sync(logs.close, abandon_on_cancel=True)
        if closing.cancelled_caught:
            _LOG.warning("the disk takes too long; the next start checks the ends of the logs")
        else:
            _LOG.info("broker %s closed its logs", config.broker_id)


async def _start_metrics(node: BrokerNode, nursery: trio.Nursery) -> int | None:
    """Serve /metrics and /health where metrics.port says so."""
    if node.config.metrics_port < 0:
        return None
    registry = program_registry("broker")
    registry.register(BrokerCollector(node.metrics, node.state))
    port = await nursery.start(
        partial(
            serve_metrics,
            node.config.metrics_host,
            node.config.metrics_port,
            ready=node.is_ready,
            registry=registry,
            many=node.partition_gauges.lines,
        )
    )
    return int(port)

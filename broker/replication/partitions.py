"""All replicas on this broker, as the controller's requests make and unmake them."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from uuid import UUID

import trio

from broker.clock import Clock
from broker.led_partition import LeadershipListener
from broker.log.config import LogConfig
from broker.log.log_manager import LogManager
from broker.log.partition_log import PartitionLog
from broker.log.results import StorageError
from broker.replication.fetch_sessions import FetchSessions
from broker.replication.fetchers import Following
from broker.replication.high_watermarks import HighWatermarks
from broker.replication.leadership import NO_LEADER, Leadership
from broker.replication.partition import Partition, Surroundings
from broker.replication.quotas import ReplicationQuotas
from wire.errors import ErrorCode
from wire.net.transport import Address
from wire.topic_partition import TopicPartition as LogName

_LOG = logging.getLogger(__name__)


class Partitions:
    """The replicas by topic and index. `config_of(topic)` gives the settings of a topic now.

    following   who fetches for replicas that do not lead; None in a broker without peers
    """

    def __init__(
        self,
        broker_id: int,
        logs: LogManager,
        config_of: Callable[[str], LogConfig],
        clock: Clock,
        surroundings: Surroundings | None = None,
    ) -> None:
        self.following: Following | None = None
        self.fetch_sessions = FetchSessions()
        self.quotas = ReplicationQuotas()
        self.broker_epoch = -1
        """This broker's registration, as the controller last named it."""
        self.known_leaders: dict[int, Address] = {}
        """Where leaders are, as LeaderAndIsr told; UpdateMetadata comes after it."""
        self._broker_id = broker_id
        self._logs = logs
        self._config_of = config_of
        self._clock = clock
        self._surroundings = surroundings or Surroundings()
        self._high_watermarks = HighWatermarks(logs.live_folders)
        self._held: dict[tuple[str, int], Partition] = {}
        self._missed: set[tuple[str, int]] = set()
        """Replicas that were asked for while they may lie on an offline folder: never made anew."""
        self._lost: set[LogName] = set()
        """Replicas whose lost logs were told of."""
        self._listeners: dict[str, LeadershipListener] = {}
        self.controller_epoch = 0
        """Of the newest controller that has spoken."""

    def __iter__(self) -> Iterator[Partition]:
        return iter(self._held.values())

    def listen(self, topic: str, listener: LeadershipListener) -> None:
        """Tell `listener` about leadership of the partitions of one internal topic."""
        self._listeners[topic] = listener

    def get(self, topic: str, index: int) -> Partition | None:
        """Return this broker's replica, leader or not."""
        return self._held.get((topic, index))

    def led(self, topic: str, index: int) -> Partition | None:
        """Return the replica if this broker leads it."""
        partition = self._held.get((topic, index))
        return partition if partition is not None and partition.is_led_here else None

    def high_watermark(self, name: LogName) -> int | None:
        """Return how far a log is committed: retention spares what is beyond."""
        partition = self._held.get((name.topic, name.partition))
        return None if partition is None else partition.high_watermark

    def obeys(self, controller_epoch: int) -> bool:
        """Return whether a controller of this epoch may command; older ones no longer do."""
        if controller_epoch < self.controller_epoch:
            return False
        self.controller_epoch = controller_epoch
        return True

    def take(self, leadership: Leadership, *, is_new: bool = False) -> ErrorCode:
        """Lead or follow as the controller says; older words than those known are ignored.

        While a log folder is offline only a replica that `is_new` gets a log: that of any other may
        lie there (KIP-112). A replica whose log was lost with its folder may follow, and leads only
        where the topic allows unclean elections: the others would cut their logs to an empty one.
        """
        name = leadership.topic, leadership.index
        known = self._held.get(name)
        if known is not None and known.leadership.topic_id != leadership.topic_id:
            return ErrorCode.INCONSISTENT_TOPIC_ID
        if known is not None and leadership.leader_epoch < known.leader_epoch:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        if self._broker_id not in leadership.replicas:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        may_be_had = known is not None or not is_new or name in self._missed
        if may_be_had and self._lacks_its_log(leadership):
            return ErrorCode.KAFKA_STORAGE_ERROR
        try:
            partition = known or self._open(leadership)
            is_newer = partition.take(leadership)
        except StorageError as error:
            _LOG.error("%s-%s: %s", leadership.topic, leadership.index, error)
            return ErrorCode.KAFKA_STORAGE_ERROR
        self._held[name] = partition
        if is_newer:
            self._follow_or_not(partition)
            self._tell_listener(partition)
        return ErrorCode.NONE

    def _lacks_its_log(self, leadership: Leadership) -> bool:
        """Say whether a replica that is no new one has its log elsewhere, and may not have another.

        It may lie on a folder that is offline, or was lost with one. The latter is told once.
        """
        name = LogName(leadership.topic, leadership.index)
        if self._logs.may_be_offline(*name):
            self._missed.add(name)
            return True
        if leadership.leader not in (self._broker_id, NO_LEADER):
            return False
        if not self._logs.has_lost(name, leadership.topic_id.bytes):
            return False
        if self._config_of(leadership.topic).unclean_leader_election_enable:
            return False
        if name not in self._lost:
            self._lost.add(name)
            _LOG.error(
                "%s: its log was lost with its folder, and %s: not led without it. Bring the folder"
                " back, or have another replica lead (ElectLeaders, unclean, or"
                " unclean.leader.election.enable=true of the topic): that one may lack records too",
                name,
                "this broker is to lead it" if leadership.leader >= 0 else "nobody leads it",
            )
        return True

    def set_strays_aside(self, assigned: Mapping[tuple[str, int], UUID]) -> None:
        """Set aside the logs that the controller, naming all it assigns here, does not mean.

        The controller does not name the partition, or the topic had the name before. Only logs that
        were found at the start and never spoken of since go: a delayed word must not take away a
        newer partition's log. Kafka's findStrayReplicas; an operator removes the folders.
        """
        strays = [
            log
            for name, log in self._logs.logs.items()
            if name not in self._held and _is_stray(log, assigned.get(name))
        ]
        for log in strays:
            try:
                folder = self._logs.set_aside(log.name)
            except StorageError as error:
                _LOG.error("%s: a stray log, cannot be set aside: %s", log.folder, error)
            else:
                _LOG.warning("%s: a stray log, not assigned here: now %s", log.folder, folder)
        if strays:
            self.forget_deleted()

    def _open(self, leadership: Leadership) -> Partition:
        config = self._config_of(leadership.topic)
        log = self._logs.create(
            leadership.topic,
            leadership.index,
            topic_id=leadership.topic_id.bytes,
            config=config,
            now_ms=self._clock.now_ms(),
        )
        log.config = config  # a log found at the start has the settings of that time
        return Partition(
            self._broker_id,
            log,
            leadership,
            self._clock,
            high_watermark=self._high_watermarks.saved(log.name),
            surroundings=self._surroundings,
        )

    def _follow_or_not(self, partition: Partition) -> None:
        if self.following is None:
            return
        if partition.is_led_here or partition.leadership.leader == NO_LEADER:
            self.following.leave(partition)
        else:
            self.following.follow(partition)

    def _tell_listener(self, partition: Partition) -> None:
        listener = self._listeners.get(partition.topic)
        if listener is None:
            return
        if partition.is_led_here:
            listener.on_leader(partition)
        else:
            listener.on_resigned(partition.topic, partition.index)

    def stop(
        self, topic: str, index: int, *, leader_epoch: int = NO_LEADER, delete: bool
    ) -> ErrorCode:
        """Neither lead nor follow any more; with `delete` the log goes too. Gone already is fine.

        FENCED_LEADER_EPOCH when the controller has said something newer since; a negative epoch
        claims nothing (-2: the topic is being deleted). Call `forget_deleted` afterwards.
        """
        partition = self._held.get((topic, index))
        if partition is not None and 0 <= leader_epoch < partition.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if partition is not None:
            if self.following is not None:
                self.following.leave(partition)
            partition.resign()
            self._tell_listener(partition)
        if not delete:
            return ErrorCode.NONE
        self._held.pop((topic, index), None)
        if self._logs.may_be_offline(topic, index):
            return ErrorCode.KAFKA_STORAGE_ERROR  # it would come back with its folder
        try:
            if self._logs.get(topic, index) is not None:
                self._logs.delete(topic, index)
        except StorageError as error:
            _LOG.error("%s-%s cannot be deleted: %s", topic, index, error)
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NONE

    def forget_deleted(self) -> None:
        """Save nothing any more of what was deleted: a topic made anew must not find it."""
        self._logs.forget_taken_away()
        self.save_high_watermarks()

    def reconfigure(self, topic: str) -> None:
        """Give the logs of a topic its present settings."""
        self._configure([part for part in self._held.values() if part.topic == topic])

    def reconfigure_all(self) -> None:
        """Give every log its present settings."""
        self._configure(self._held.values())

    def _configure(self, held: Iterable[Partition]) -> None:
        configs: dict[str, LogConfig] = {}
        for partition in held:
            config = configs.get(partition.topic)
            if config is None:
                config = configs[partition.topic] = self._config_of(partition.topic)
            partition.log.config = config
            partition.reconsider()  # min.insync.replicas may be another one

    # -- care -----------------------------------------------------------------------------------

    def save_high_watermarks(self) -> None:
        """Write `replication-offset-checkpoint`."""
        self._high_watermarks.save(
            self._logs.live_folders, self._logs.logs.values(), self.high_watermark
        )

    async def save_high_watermarks_regularly(self, interval_s: float) -> None:
        """Write them until cancelled, and once more in the end."""
        try:
            while True:
                await trio.sleep(interval_s)
                self.save_high_watermarks()
        finally:
            self.save_high_watermarks()

    def brokers_changed(self) -> None:
        """Wait no longer for followers whose brokers have died.

        A dead follower that might rejoin holds the high watermark until metadata says that it is
        dead.
        """
        for partition in self._held.values():
            partition.reconsider()

    def folders_failed(self) -> None:
        """Wait no longer for what lies on failed folders, and coordinate nothing by it.

        A coordinator could go on telling what it holds in memory while other brokers lead: `take`
        refuses the word that they do.
        """
        for name, partition in self._held.items():
            if self._logs.may_be_offline(*name):
                partition.folder_failed()
                listener = self._listeners.get(partition.topic)
                if listener is not None:
                    listener.on_resigned(partition.topic, partition.index)

    async def look_after_isrs(self, interval_s: float) -> None:
        """Let leaders drop followers that lag, until cancelled."""
        while True:
            await trio.sleep(interval_s)
            for partition in list(self._held.values()):
                partition.look_after_isr()


def _is_stray(log: PartitionLog, assigned: UUID | None) -> bool:
    """Say whether no partition, or one of another topic, is assigned here under the log's name."""
    if assigned is None:
        return True
    return log.topic_id is not None and log.topic_id != assigned.bytes

"""All replicas on this broker, as the controller's requests make and unmake them."""

import logging
from collections.abc import Callable, Iterator, Mapping

from broker.context import Clock, LeadershipListener
from broker.log.config import LogConfig
from broker.log.log_manager import LogManager
from broker.log.results import StorageError
from broker.log.results import TopicPartition as LogName
from broker.replication.partition import Leadership, Partition
from wire.errors import ErrorCode

_LOG = logging.getLogger(__name__)


class Partitions:
    """The replicas by topic and index. `config_of(topic)` gives the settings of a topic now."""

    def __init__(
        self,
        broker_id: int,
        logs: LogManager,
        config_of: Callable[[str], LogConfig],
        clock: Clock,
    ) -> None:
        self._broker_id = broker_id
        self._logs = logs
        self._config_of = config_of
        self._clock = clock
        self._held: dict[tuple[str, int], Partition] = {}
        self._listeners: dict[str, LeadershipListener] = {}
        self._controller_epoch = 0

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
        if controller_epoch < self._controller_epoch:
            return False
        self._controller_epoch = controller_epoch
        return True

    def take(self, leadership: Leadership) -> ErrorCode:
        """Lead or follow as the controller says; older words than those known are ignored."""
        known = self._held.get((leadership.topic, leadership.index))
        if known is not None and known.leadership.topic_id != leadership.topic_id:
            return ErrorCode.INCONSISTENT_TOPIC_ID
        if known is not None and leadership.leader_epoch < known.leader_epoch:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        try:
            partition = known or self._open(leadership)
            partition.take(leadership)
        except StorageError as error:
            _LOG.error("%s-%s: %s", leadership.topic, leadership.index, error)
            return ErrorCode.KAFKA_STORAGE_ERROR
        self._held[leadership.topic, leadership.index] = partition
        self._tell_listener(partition)
        return ErrorCode.NONE

    def _open(self, leadership: Leadership) -> Partition:
        log = self._logs.create(
            leadership.topic,
            leadership.index,
            topic_id=leadership.topic_id.bytes,
            config=self._config_of(leadership.topic),
            now_ms=self._clock.now_ms(),
        )
        return Partition(self._broker_id, log, leadership, self._clock)

    def _tell_listener(self, partition: Partition) -> None:
        listener = self._listeners.get(partition.topic)
        if listener is None:
            return
        if partition.is_led_here:
            listener.on_leader(partition)
        else:
            listener.on_resigned(partition.topic, partition.index)

    def stop(self, topic: str, index: int, *, delete: bool) -> ErrorCode:
        """Hold the partition no longer; with `delete` its log goes too. Gone already is fine."""
        partition = self._held.pop((topic, index), None)
        if partition is not None:
            partition.resign()
            self._tell_listener(partition)
        if not delete:
            return ErrorCode.NONE
        try:
            if self._logs.get(topic, index) is not None:
                self._logs.delete(topic, index)
        except StorageError as error:
            _LOG.error("%s-%s cannot be deleted: %s", topic, index, error)
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NONE

    def reconfigure(self, topic: str) -> None:
        """Give the logs of a topic its present settings."""
        config = self._config_of(topic)
        for partition in self._held.values():
            if partition.topic == topic:
                partition.log.config = config

    def reconfigure_all(self) -> None:
        """Give every log its present settings."""
        for topic in {partition.topic for partition in self._held.values()}:
            self.reconfigure(topic)

    def sizes(self) -> Mapping[tuple[str, int], int]:
        """Return each log's bytes."""
        return {name: partition.log.size_bytes for name, partition in self._held.items()}

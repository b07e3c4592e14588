"""Reading a site's logs without joining a group: the offset map, and the tail of a partition."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from time import monotonic
from typing import Any, Final, TypeAlias

from confluent_kafka import Consumer, KafkaException, Message
from confluent_kafka import TopicPartition as PartitionOffset

from failover.client.faults import (
    NO_RIGHT_TO_GROUP,
    NO_SUCH_PARTITION,
    PARTITION_EOF,
    code_of,
    offset_of,
)
from failover.client.site_login import LoginUnusable, SiteLogin, SiteUnreadable
from offset_translation.map_records import map_topic_name
from offset_translation.map_state import MapState
from offset_translation.offset_map import OffsetMap
from runtime.configuration.config import ClusterConfig
from wire.topic_partition import TopicPartition

Settings: TypeAlias = Mapping[str, Any]

READ_TIMEOUT_S: Final = 15.0
POLL_S: Final = 0.1
BATCH: Final = 500

# Settings that say how to reach a cluster, as opposed to how to consume from it or produce to it.
CONNECTION_PREFIXES: Final = (
    *("security.", "sasl.", "oauth_cb", "ssl.", "error_cb"),
    *("socket.", "broker.address.", "client."),
)


def connection_settings(settings: Settings) -> dict[str, Any]:
    """Return those of an application's settings that any client of the same site needs."""
    return {key: value for key, value in settings.items() if key.startswith(CONNECTION_PREFIXES)}


class SiteReader:
    """Reads any partition of one site by offset. Methods raise SiteUnreadable."""

    def __init__(self, consumer: Consumer, login: SiteLogin | None = None) -> None:
        """Use open_reader()."""
        self._consumer = consumer
        self._login = login

    def offset_maps(
        self, source: str, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, OffsetMap]:
        """Return the maps of those partitions that were mirrored from `source` to this site."""
        map_log = TopicPartition(map_topic_name(source), 0)
        state = MapState()
        try:
            _, end = self._watermarks(map_log)
        except KafkaException as error:
            if code_of(error) in NO_SUCH_PARTITION:
                return {}
            raise self._unreadable(map_log.topic, error) from error
        for message in self.read(map_log, 0, end):
            state.replay(message.key(), message.value())
        found = {
            partition: state.maps[partition] for partition in partitions if partition in state.maps
        }
        for partition, offset_map in found.items():
            offset_map.advance(self.end(partition))
        return found

    def end(self, partition: TopicPartition) -> int:
        """Return the offset behind the partition's last record."""
        try:
            return self._watermarks(partition)[1]
        except KafkaException as error:
            raise self._unreadable(partition, error) from error

    def offset_at(self, partition: TopicPartition, timestamp_ms: int) -> int:
        """Return the first offset whose record is this old or younger; the end if none is."""
        asked = PartitionOffset(*partition, timestamp_ms)
        try:
            [answer] = self._consumer.offsets_for_times([asked], timeout=READ_TIMEOUT_S)
        except KafkaException as error:
            raise self._unreadable(partition, error) from error
        if answer.error is not None:
            raise SiteUnreadable(f"{partition}: {answer.error}")
        return answer.offset if answer.offset >= 0 else self.end(partition)

    def read(self, partition: TopicPartition, start: int, end: int) -> Iterator[Message]:
        """Yield the records from `start` (or the log's start) up to `end`, which is exclusive."""
        if start >= end:
            return
        self._consumer.assign([PartitionOffset(*partition, start)])
        deadline = monotonic() + READ_TIMEOUT_S
        try:
            while True:
                for message in self._consumer.consume(BATCH, POLL_S):
                    if _is_passing(message):
                        continue
                    deadline = monotonic() + READ_TIMEOUT_S
                    if _is_end(message, end):
                        return
                    yield message
                    if offset_of(message) >= end - 1:
                        return
                if monotonic() > deadline:
                    raise SiteUnreadable(f"{partition}: no answer for {READ_TIMEOUT_S:g} s")
        finally:
            self._consumer.unassign()

    def _unreadable(self, what: object, error: KafkaException) -> SiteUnreadable:
        """Return that something was not read; a refused login is the reason, if there is one."""
        if self._login is None:
            return SiteUnreadable(f"{what}: {error}")
        self._consumer.poll(0)  # has librdkafka tell what it has reported meanwhile
        if self._login.refusal:
            return LoginUnusable(f"{what}: {self._login.refusal}")
        return SiteUnreadable(f"{what}: {error}")

    def _watermarks(self, partition: TopicPartition) -> tuple[int, int]:
        return self._consumer.get_watermark_offsets(
            PartitionOffset(*partition), timeout=READ_TIMEOUT_S
        )


def _is_passing(message: Message) -> bool:
    """Tell whether a message is no record but a fault that keeps nothing from being read.

    librdkafka looks for the coordinator of our group, which nobody joins and no application has a
    right to.
    """
    error = message.error()
    return error is not None and (error.retriable() or error.code() == NO_RIGHT_TO_GROUP)


def _is_end(message: Message, end: int) -> bool:
    """Tell whether nothing more is to come; raises SiteUnreadable for what is an error."""
    error = message.error()
    if error is None or error.code() == PARTITION_EOF:
        return offset_of(message) >= end
    raise SiteUnreadable(f"{message.topic()}-{message.partition()}: {error}")


@contextmanager
def open_reader(cluster: ClusterConfig, settings: Settings) -> Iterator[SiteReader]:
    """Open a reader of one site; `settings` are the application's own. Raises SiteUnreadable."""
    login = SiteLogin(cluster, connection_settings(settings))
    ours = {
        "group.id": "kafka-dr-site-reader",  # never joined: partitions are assigned by hand
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
        "isolation.level": "read_uncommitted",
    }
    consumer = login.open(Consumer, **ours)
    try:
        yield SiteReader(consumer, login)
    finally:
        consumer.close()

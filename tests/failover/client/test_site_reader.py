"""What a reader of a site makes of the messages that librdkafka gives it."""

from typing import Any

import pytest
from confluent_kafka import KafkaError

from failover.client.site_login import SiteUnreadable
from failover.client.site_reader import SiteReader
from wire.topic_partition import TopicPartition

PARTITION = TopicPartition("map", 0)


class Told:
    """A message: a record by its offset, or an error that belongs to no partition."""

    def __init__(self, offset: int | None, error: int | None = None) -> None:
        self._offset = offset
        self._error = None if error is None else KafkaError(error)

    def error(self) -> KafkaError | None:
        return self._error

    def offset(self) -> int | None:
        return self._offset

    def topic(self) -> str | None:
        return None if self._offset is None else PARTITION.topic

    def partition(self) -> int | None:
        return None if self._offset is None else PARTITION.partition


class Consumer:
    """Gives what it was told, once."""

    def __init__(self, *messages: Told) -> None:
        self._messages = list(messages)

    def assign(self, partitions: object) -> None:
        pass

    def unassign(self) -> None:
        pass

    def consume(self, _: int, __: float) -> list[Told]:
        messages, self._messages = self._messages, []
        return messages


def offsets_read(*messages: Told) -> list[int | None]:
    consumer: Any = Consumer(*messages)
    return [message.offset() for message in SiteReader(consumer).read(PARTITION, 0, 2)]


def test_a_missing_right_to_the_group_that_nobody_joins_keeps_nothing_from_being_read() -> None:
    refused = Told(None, KafkaError.GROUP_AUTHORIZATION_FAILED)
    assert offsets_read(refused, Told(0), refused, Told(1)) == [0, 1]


def test_a_missing_right_to_the_topic_is_told() -> None:
    with pytest.raises(SiteUnreadable):
        offsets_read(Told(0), Told(None, KafkaError.TOPIC_AUTHORIZATION_FAILED))

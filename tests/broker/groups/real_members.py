"""confluent-kafka's consumers as members of groups that tests watch."""

from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    Message,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

PATIENCE_S = 120.0


@dataclass
class Member:
    """A consumer that remembers what it was assigned and what it has read."""

    consumer: Consumer
    assigned: set[int] = field(default_factory=set)
    rebalances: int = 0
    revoked: list[set[int]] = field(default_factory=list)
    read: list[Message] = field(default_factory=list)
    errors: list[KafkaError] = field(default_factory=list)

    def subscribe(self, topic: str) -> None:
        self.consumer.subscribe([topic], on_assign=self._take, on_revoke=self._give)

    def _take(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self.rebalances += 1
        self.assigned |= {partition.partition for partition in partitions}

    def _give(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        gone = {partition.partition for partition in partitions}
        self.revoked.append(gone)
        self.assigned -= gone

    def poll(self) -> None:
        for message in self.consumer.consume(100, 0.05):
            error = message.error()
            if error is None:
                self.read.append(message)
            else:
                self.errors.append(error)

    @property
    def values(self) -> set[bytes | None]:
        return {message.value() for message in self.read}


def poll_until(condition: Callable[[], bool], *members: Member) -> None:
    deadline = monotonic() + PATIENCE_S
    while not condition():
        assert monotonic() < deadline, [(m.assigned, len(m.read), m.errors) for m in members]
        for member in members:
            member.poll()


def committed(admin: AdminClient, group: str) -> dict[tuple[str, int], int]:
    request = ConsumerGroupTopicPartitions(group)
    result = admin.list_consumer_group_offsets([request])[group].result(PATIENCE_S)
    return {(p.topic, p.partition): p.offset for p in result.topic_partitions}

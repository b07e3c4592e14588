"""The part of a map's state that says where a flow and its partitions were begun, by replay."""

from typing import assert_never
from uuid import UUID

from offset_translation.map_records import (
    BeginKey,
    Begun,
    BegunKey,
    Field,
    FlowBegunKey,
    StartDueKey,
    withdrawal,
)
from offset_translation.topic_identity import is_recreated
from wire.topic_partition import TopicPartition


class Begins:
    """What the map topic says of begins; nothing where all begins at its first record."""

    def __init__(self) -> None:
        self._flows: dict[tuple[str, str], int] = {}
        """When the flow of each set of topics began, by the registry of its writer as well."""
        self.due: dict[TopicPartition, UUID] = {}
        """The source topics of partitions that begin by the flow's `start`."""
        self.begun: dict[TopicPartition, Begun] = {}
        """Where partitions were begun whose earlier records stay on the source on purpose."""

    def replay(self, key: BeginKey, field: Field | None) -> None:
        """Apply one record; without a field it takes back what was said under the key."""
        match key, field:
            case FlowBegunKey(registry=registry, topic_set=topic_set), int(at_ms):
                self._flows[registry, topic_set] = at_ms
            case StartDueKey(), UUID() as topic_id:
                self.due[TopicPartition(key.topic, key.partition)] = topic_id
            case BegunKey(), Begun() as begun:
                self.begun[TopicPartition(key.topic, key.partition)] = begun
            case _:
                assert field is None, f"{key} does not hold {field!r}"
                self._withdraw(key)

    def _withdraw(self, key: BeginKey) -> None:
        match key:
            case FlowBegunKey(registry=registry, topic_set=topic_set):
                self._flows.pop((registry, topic_set), None)
            case StartDueKey(topic=topic, partition=partition):
                self.due.pop(TopicPartition(topic, partition), None)
            case BegunKey(topic=topic, partition=partition):
                self.begun.pop(TopicPartition(topic, partition), None)
            case _:
                assert_never(key)

    @property
    def sets_begun(self) -> frozenset[str]:
        """Return the sets of topics whose flows have begun, "" for all topics."""
        return frozenset(topic_set for _, topic_set in self._flows)

    def of(self, partition: TopicPartition, topic_id: UUID) -> Begun | None:
        """Return where a partition of this source topic was begun; None at its first record.

        What was said of an earlier topic of the name says nothing of this one.
        """
        begun = self.begun.get(partition)
        return None if begun is None or is_recreated(begun.topic_id, topic_id) else begun

    def value_of(self, key: BeginKey) -> Field | None:
        """Return what was said under a key; None without it."""
        match key:
            case FlowBegunKey(registry=registry, topic_set=topic_set):
                return self._flows.get((registry, topic_set))
            case StartDueKey(topic=topic, partition=partition):
                return self.due.get(TopicPartition(topic, partition))
            case BegunKey(topic=topic, partition=partition):
                return self.begun.get(TopicPartition(topic, partition))
            case _:
                assert_never(key)

    def withdrawals(self, topic: str) -> list[tuple[bytes, None]]:
        """Return the records by which it is forgotten where a topic's partitions were begun."""
        due = [index for name, index in sorted(self.due) if name == topic]
        begun = [index for name, index in sorted(self.begun) if name == topic]
        return [
            *(withdrawal(StartDueKey(topic=topic, partition=index)) for index in due),
            *(withdrawal(BegunKey(topic=topic, partition=index)) for index in begun),
        ]

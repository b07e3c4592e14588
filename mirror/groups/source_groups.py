"""The source's group positions as far as they are known, and the new ones among them."""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeAlias

from mirror.clusters.malformed_records import OddRecords
from mirror.state.live_config import LiveConfig
from mirror.state.measurements import FlowMeasurements
from mirror.state.wakeups import Wakeup
from wire.consumer_offsets import OffsetKey, UnknownKey, decode_key, decode_offset_value
from wire.net.operations import GroupOffset
from wire.primitives import MalformedMessage
from wire.record_batch import Record
from wire.topic_partition import TopicPartition

OFFSETS_TOPIC: Final = "__consumer_offsets"
KEY_VERSIONS: Final = range(256)
"""Newer group protocols have some dozen kinds of keys; beyond this nobody's coordinator writes."""


class SourcePosition(NamedTuple):
    """The position that a group committed on the source."""

    offset: int
    metadata: str


Held: TypeAlias = dict[tuple[str, TopicPartition], SourcePosition | None]
"""Positions of groups on partitions that are held back; None: the position is gone."""


class SourceGroups:
    """The positions of the groups that are mirrored, as they have been told so far."""

    def __init__(self, config: LiveConfig, measurements: FlowMeasurements) -> None:
        self._config = config
        self.positions: dict[str, dict[TopicPartition, SourcePosition]] = {}
        self.changed: dict[str, set[TopicPartition]] = {}
        """Groups with positions that nobody has acted on. The same again is no news."""
        self.forgotten: set[tuple[str, str, int]] = set()
        """(group, topic, partition) whose position is gone, for whoever shows it."""
        self.news = Wakeup()
        self.odd = OddRecords(measurements, OFFSETS_TOPIC)
        self._chosen = config.current.groups
        self._keys: dict[bytes, tuple[str, TopicPartition]] = {}
        """The decoded keys of stored positions: the same few come again and again."""

    def replay(self, record: Record, held: Held | None = None) -> None:
        """Take one record of the topic over; a record that makes no sense is counted and left out.

        With ``held`` its position goes there, for ``release``: an old position looks like a rewind.
        """
        key = record.key or b""
        if self._chosen is not self._config.current.groups:
            self._chosen = self._config.current.groups
            self._keys.clear()
        known = self._keys.get(key)
        try:
            if known is None:
                decoded = decode_key(key)
                if isinstance(decoded, UnknownKey) and decoded.version not in KEY_VERSIONS:
                    self.odd.note(f"offset {record.offset}: key of version {decoded.version}")
                    return
                if not isinstance(decoded, OffsetKey) or not self._chosen.matches(decoded.group):
                    return  # a group's own record, of whatever protocol, holds no position
                known = decoded.group, TopicPartition(decoded.topic, decoded.partition)
            if record.value is None:
                self._keys.pop(key, None)
                self._take(known, None, held)
                return
            value = decode_offset_value(record.value)
        except MalformedMessage as fault:
            self.odd.note(f"offset {record.offset}: {fault}")
            return
        self._keys[key] = known
        # What some clients commit is no position, and brokers tell of none then.
        is_one = value.offset >= 0
        self._take(known, SourcePosition(value.offset, value.metadata) if is_one else None, held)

    def release(self, held: Held, of_all: Callable[[str], bool] | None = None) -> None:
        """Take over the positions that were held back.

        Of the groups `of_all` they are all that there are: a log that was cut does not take
        positions back that it held before, nor does one whose tombstones were cleaned away.
        """
        gone = [
            (group, topic_partition)
            for group, positions in self.positions.items()
            if of_all is not None and of_all(group)
            for topic_partition in positions
            if (group, topic_partition) not in held
        ]
        for known in gone:
            self._forget(*known)
        for known, position in held.items():
            self._take(known, position, None)

    def take(self, group: str, positions: Mapping[TopicPartition, GroupOffset]) -> None:
        """Take over all positions of a group, as asked for."""
        for topic_partition in self.positions.get(group, {}).keys() - positions.keys():
            self._forget(group, topic_partition)
        for topic_partition, position in positions.items():
            self._learn(group, topic_partition, SourcePosition(position.offset, position.metadata))

    def take_changed(self) -> dict[str, set[TopicPartition]]:
        """Return the partitions that have changed since the last call."""
        changed, self.changed = self.changed, {}
        return changed

    def _take(
        self, known: tuple[str, TopicPartition], position: SourcePosition | None, held: Held | None
    ) -> None:
        if held is not None:
            held[known] = position
        elif position is None:
            self._forget(*known)
        else:
            self._learn(*known, position)

    def _learn(self, group: str, topic_partition: TopicPartition, position: SourcePosition) -> None:
        positions = self.positions.setdefault(group, {})
        if positions.get(topic_partition) != position:
            positions[topic_partition] = position
            self.changed.setdefault(group, set()).add(topic_partition)

    def _forget(self, group: str, topic_partition: TopicPartition) -> None:
        """A deleted or expired position; the target's own is left as it is."""
        positions = self.positions.get(group)
        if positions is None:
            return
        positions.pop(topic_partition, None)
        self.forgotten.add((group, *topic_partition))
        if not positions:
            del self.positions[group]
            self.changed.pop(group, None)

"""What a step has found out: facts, as JSON in the journal, and typed where a later step decides.

Some steps find out what decides later ones:

    preflight  topics: how many partitions of each topic move; fence: the target's fence before;
               plain: the members of groups that do not follow the active site;
               one_way: topics that are opened without what the source has of them
    fence      topics: how many partitions of each topic the fence has closed
    drain      starts, ends: the source's logs behind the fence, topic → partition → offset
    seal       source_ids: the ids of the source's topics whose copies were sealed, in the order
               of their names, which stand beside the seals
    groups-move, verify-fence
               positions: where groups stand on the target, group → topic → partition → offset

All other facts are for people: offsets, groups, counts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Self, TypeAlias
from uuid import UUID

from wire.topic_partition import TopicPartition
from wire.values import frozen

JsonValue: TypeAlias = (
    "bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
)
Facts: TypeAlias = Mapping[str, JsonValue]


class FactsMalformed(ValueError):
    """A fact that decides something is not what its step writes; the message names its key."""


@frozen
class PreflightFacts:
    """What moves, and what to restore on the target."""

    topics: Mapping[str, int] | None = None
    """The number of partitions of each topic that moves; None before the preflight has looked."""
    target_fence: tuple[str, ...] = ()
    """The topics that the target's fence closed before the promotion."""
    plain_members: Mapping[str, int] = field(default_factory=dict)
    """The members that stay, by group, because somebody insisted."""
    one_way: tuple[str, ...] = ()
    """The topics that the target opens without the source's records, because somebody insisted."""

    def encode(self) -> Facts:
        """Return the facts as the journal holds them."""
        insisted: Facts = {"plain": dict(self.plain_members), "one_way": list(self.one_way)}
        return {
            "topics": dict(self.topics or {}),
            "fence": list(self.target_fence),
            **{key: fact for key, fact in insisted.items() if fact},
        }

    @classmethod
    def decode(cls, facts: Facts) -> Self:
        """Return what a journal's facts say; raises FactsMalformed."""
        return cls(
            topics=_counts(facts, "topics"),
            target_fence=_names(facts, "fence"),
            plain_members=_counts(facts, "plain") or {},
            one_way=_names(facts, "one_way"),
        )


@frozen
class FenceFacts:
    """What the fence on the source has closed."""

    topics: Mapping[str, int] | None = None
    """The number of partitions of each topic; None where the source is lost, or not closed yet."""

    def encode(self) -> Facts:
        """Return the facts as the journal holds them."""
        return {} if self.topics is None else {"topics": dict(self.topics)}

    @classmethod
    def decode(cls, facts: Facts) -> Self:
        """Return what a journal's facts say; raises FactsMalformed."""
        return cls(topics=_counts(facts, "topics"))


@frozen
class DrainFacts:
    """Where the source's logs began and ended behind the fence."""

    starts: Mapping[TopicPartition, int] | None = None
    ends: Mapping[TopicPartition, int] | None = None
    """Both None before the drain is done."""

    def encode(self) -> Facts:
        """Return the facts as the journal holds them."""
        return {"starts": by_topic(self.starts or {}), "ends": by_topic(self.ends or {})}

    @classmethod
    def decode(cls, facts: Facts) -> Self:
        """Return what a journal's facts say; raises FactsMalformed."""
        return cls(starts=_offsets(facts, "starts"), ends=_offsets(facts, "ends"))


@frozen
class SealFacts:
    """Which topics of the source the sealed copies are of."""

    source_ids: tuple[UUID, ...] = ()
    """Zero where an id is not known; none in a journal of an earlier version."""

    def encode(self) -> Facts:
        """Return the facts as the journal holds them."""
        return {"source_ids": [str(one) for one in self.source_ids]}

    @classmethod
    def decode(cls, facts: Facts) -> Self:
        """Return what a journal's facts say; raises FactsMalformed."""
        try:
            return cls(source_ids=tuple(UUID(one) for one in _names(facts, "source_ids")))
        except ValueError:
            listed = facts["source_ids"]
            raise FactsMalformed(f"source_ids holds more than topic ids: {listed!r}") from None


@frozen
class GroupFacts:
    """Where groups stood on the target once they had been moved; not of all, if there are many."""

    positions: Mapping[str, Mapping[TopicPartition, int]] = field(default_factory=dict)

    @classmethod
    def decode(cls, facts: Facts) -> Self:
        """Return what a journal's facts say; raises FactsMalformed."""
        groups = _mapping(facts.get("positions", {}), "positions")
        return cls(positions={group: _offsets(groups, group) or {} for group in groups})


def by_topic(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """Return offsets as JSON has them: topic, then partition, then offset."""
    nested: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        nested.setdefault(topic, {})[str(partition)] = offset
    return nested


def _counts(facts: Facts, key: str) -> dict[str, int] | None:
    """Return a mapping of names to counts; None where the key is absent."""
    if key not in facts:
        return None
    return {
        topic: _whole_number(count, f"{key}.{topic}")
        for topic, count in _mapping(facts[key], key).items()
    }


def _names(facts: Facts, key: str) -> tuple[str, ...]:
    """Return a list of names; an empty one where the key is absent."""
    listed = facts.get(key, [])
    if not isinstance(listed, list):
        raise FactsMalformed(f"{key} is not a list: {listed!r}")
    names = tuple(name for name in listed if isinstance(name, str))
    if len(names) != len(listed):
        raise FactsMalformed(f"{key} holds more than names: {listed!r}")
    return names


def _offsets(facts: Facts, key: str) -> dict[TopicPartition, int] | None:
    """Return the offset of each partition; None where the key is absent."""
    if key not in facts:
        return None
    return {
        TopicPartition(topic, _partition(partition, f"{key}.{topic}")): _whole_number(
            offset, f"{key}.{topic}.{partition}"
        )
        for topic, offsets in _mapping(facts[key], key).items()
        for partition, offset in _mapping(offsets, f"{key}.{topic}").items()
    }


def _mapping(value: JsonValue, key: str) -> Mapping[str, JsonValue]:
    if not isinstance(value, Mapping):
        raise FactsMalformed(f"{key} is not an object: {value!r}")
    return value


def _partition(text: str, key: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise FactsMalformed(f"{key} names no partition: {text!r}")
    return int(text)


def _whole_number(value: JsonValue, key: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise FactsMalformed(f"{key} is not a whole number: {value!r}")
    return value

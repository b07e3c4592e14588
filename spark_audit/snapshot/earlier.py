"""The ends of the target's logs as earlier audits saw them, kept beside the result. Pure.

Records that only the source has at its end are in flight, however old they are. This memory tells a
mirror that is behind from a target that has lost records: cut, emptied, or begun anew.

    {"version": 1, "flows": {FLOW: [[TOPIC, PARTITION, ...], ...]}}
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias
from uuid import UUID

from runtime.foreign_json import read_json
from spark_audit.snapshot.bounds import PartitionBounds, SeenEnd, Snapshot
from wire.topic_partition import TopicPartition

FORMAT_VERSION: Final = 1
_LAST_MS: Final = 253_402_300_799_999
"""The end of the year 9999, behind which no time has a name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """One partition of a flow as an audit saw it; `promotion` had ended the flow by then."""

    source_topic_id: UUID
    source_stop: int
    target: SeenEnd
    promotion: int | None

    def still_holds(self, now: PartitionBounds, promotion: int | None) -> bool:
        """Return whether it was the same source log, which has lost nothing at its end."""
        return (
            self.promotion == promotion
            and self.source_topic_id == now.source.topic_id
            and self.source_stop <= now.source.stop
        )


Memory: TypeAlias = Mapping[str, Mapping[TopicPartition, Earlier]]
"""By flow and partition."""


def compared_with(memory: Memory, now: Snapshot) -> Snapshot:
    """Return the snapshot with `seen` in each partition whose target ended further on before."""
    of_flow = memory.get(now.flow, {})
    return replace(
        now, partitions=tuple(_compared(of_flow, now, bounds) for bounds in now.partitions)
    )


def _compared(
    of_flow: Mapping[TopicPartition, Earlier], now: Snapshot, bounds: PartitionBounds
) -> PartitionBounds:
    earlier = of_flow.get(TopicPartition(bounds.topic, bounds.partition))
    if earlier is None or not earlier.still_holds(bounds, now.promotion):
        return bounds
    return (
        replace(bounds, seen=earlier.target)
        if earlier.target.stop > bounds.mirrored_stop
        else bounds
    )


def remembered(
    memory: Memory,
    snapshots: Sequence[Snapshot],
    behind: Mapping[str, Collection[TopicPartition]],
    *,
    is_part: bool,
) -> Memory:
    """Return the memory for the next audit; `behind` are the partitions with records in flight.

    A target that ended further on before is held to that until it has all of the source again. With
    `is_part` only some topics were looked at; the others stay as they are, as do partitions that
    could not be told.
    """
    flows: dict[str, Mapping[TopicPartition, Earlier]] = dict(memory) if is_part else {}
    for now in snapshots:
        before = memory.get(now.flow, {})
        kept = {
            partition: seen
            for partition, seen in before.items()
            if is_part or partition in now.untold
        }
        for bounds in now.partitions:
            partition = TopicPartition(bounds.topic, bounds.partition)
            end = SeenEnd(stop=bounds.mirrored_stop, at_ms=now.taken_ms)
            is_short = bounds.seen is not None and partition in behind[now.flow]
            kept[partition] = Earlier(
                source_topic_id=bounds.source.topic_id,
                source_stop=bounds.source.stop,
                target=bounds.seen if is_short and bounds.seen is not None else end,
                promotion=now.promotion,
            )
        flows[now.flow] = kept
    return flows


def encode(memory: Memory) -> str:
    """Return the file's text."""
    flows = {
        flow: [
            [
                *partition,
                str(seen.source_topic_id),
                seen.source_stop,
                seen.target.stop,
                seen.target.at_ms,
                seen.promotion,
            ]
            for partition, seen in sorted(partitions.items())
        ]
        for flow, partitions in memory.items()
    }
    return json.dumps({"version": FORMAT_VERSION, "flows": flows})


def decode(text: str) -> Memory:
    """Return what a file's text says; ValueError if it is none, or of another version."""
    try:
        document = read_json(text)
        if document["version"] != FORMAT_VERSION:
            raise ValueError(f"version {document['version']}, this program knows {FORMAT_VERSION}")
        return {
            str(flow): {
                TopicPartition(str(topic), int(partition)): Earlier(
                    source_topic_id=UUID(topic_id),
                    source_stop=int(source_stop),
                    target=SeenEnd(stop=int(stop), at_ms=_time(at_ms)),
                    promotion=None if promotion is None else int(promotion),
                )
                for topic, partition, topic_id, source_stop, stop, at_ms, promotion in rows
            }
            for flow, rows in document["flows"].items()
        }
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"not what an audit keeps: {error!r}") from error


def _time(value: object) -> int:
    if not isinstance(value, int) or not 0 <= value <= _LAST_MS:
        raise ValueError(f"{value!r} is no time in milliseconds")
    return value

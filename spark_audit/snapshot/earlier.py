"""The ends of the target's logs as earlier audits saw them, kept beside the result. Pure.

This memory tells a mirror that is behind from a target that has lost records (cut, emptied, or
begun anew), and since when records at the source's end have waited, whatever their own times say.
It also tells since when a transaction has kept all that lies behind it from being compared.

    {"version": 3, "flows": {FLOW: [[TOPIC, PARTITION, ...], ...]}}

Files of version 1, which say nothing of when the source's end was seen, and of version 2, which say
nothing of open transactions, are read too.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias
from uuid import UUID

from runtime.untrusted_json import read_json
from spark_audit.snapshot.bounds import PartitionBounds, SeenEnd, Snapshot
from wire.topic_partition import TopicPartition

FORMAT_VERSION: Final = 3
OPEN_LIMIT_MS: Final = 3_600_000
_LAST_MS: Final = 253_402_300_799_999
"""The end of the year 9999, behind which no time has a name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """One partition of a flow as an audit saw it; `promotion` had ended the flow by then."""

    source_topic_id: UUID
    source_stop: int
    target: SeenEnd
    promotion: int | None
    source: SeenEnd | None = None
    """The end of the source's log when an audit first saw the records that wait now."""
    held_at: SeenEnd | None = None
    """The source's stable end when an audit first saw that a transaction holds it there."""

    def still_holds(self, now: PartitionBounds, promotion: int | None) -> bool:
        """Return whether it was the same source log, which has lost nothing at its end."""
        return (
            self.promotion == promotion
            and self.source_topic_id == now.source.topic_id
            and self.source_stop <= now.source.stop
        )


Memory: TypeAlias = Mapping[str, Mapping[TopicPartition, Earlier]]
"""By flow and partition."""


def compared_with(memory: Memory, now: Snapshot, limit_ms: int = OPEN_LIMIT_MS) -> Snapshot:
    """Return the snapshot with `seen` in each partition whose target ended further on before.

    A topic that was audited, and that the target alone has now, has vanished on the source. What a
    transaction has held back for longer than `limit_ms` is not audited, and named.
    """
    of_flow = memory.get(now.flow, {})
    now = now.without_vanished(of_flow)
    held = (_held_back(of_flow, now, bounds, limit_ms) for bounds in now.partitions)
    return replace(
        now,
        partitions=tuple(_compared(of_flow, now, bounds) for bounds in now.partitions),
        unaudited=(*now.unaudited, *(why for why in held if why is not None)),
    )


def _held_back(
    of_flow: Mapping[TopicPartition, Earlier], now: Snapshot, bounds: PartitionBounds, limit_ms: int
) -> str | None:
    """Return what is said of offsets that one transaction has held back for too long."""
    place = TopicPartition(bounds.topic, bounds.partition)
    since = _held_since(of_flow.get(place), bounds, now)
    if since is None or now.taken_ms - since.at_ms <= limit_ms:
        return None
    hours = (now.taken_ms - since.at_ms) / 3_600_000
    return (
        f"{place}: a transaction has been open for {hours:,.1f} h at least: of {now.source} "
        f"{bounds.source.held_back:,} offsets from {bounds.source.stop} on were not compared; "
        "see `kafka-transactions.sh find-hanging`, or `broker transactions find-hanging`"
    )


def _held_since(earlier: Earlier | None, bounds: PartitionBounds, now: Snapshot) -> SeenEnd | None:
    """Return where a transaction holds the stable end, and since when; None if none does.

    Whenever a transaction ends, the stable end moves: at the same one it is the same transaction.
    """
    if bounds.source.held_back <= 0:
        return None
    if earlier is not None and earlier.held_at is not None:
        known = earlier.held_at
        is_same_log = earlier.source_topic_id == bounds.source.topic_id
        if is_same_log and known.stop == bounds.source.stop and known.at_ms <= now.taken_ms:
            return known
    return SeenEnd(stop=bounds.source.stop, at_ms=now.taken_ms)


def _compared(
    of_flow: Mapping[TopicPartition, Earlier], now: Snapshot, bounds: PartitionBounds
) -> PartitionBounds:
    earlier = of_flow.get(TopicPartition(bounds.topic, bounds.partition))
    if earlier is None or not earlier.still_holds(bounds, now.promotion):
        return bounds
    is_short = earlier.target.stop > bounds.mirrored_stop
    return replace(bounds, source_seen=earlier.source, seen=earlier.target if is_short else None)


def remembered(
    memory: Memory,
    snapshots: Sequence[Snapshot],
    behind: Mapping[str, Mapping[TopicPartition, int]],
    *,
    is_part: bool,
) -> Memory:
    """Return the memory for the next audit.

    `behind` has the first source offset that is in flight, of partitions that have one.

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
            first = behind[now.flow].get(partition)
            is_short = bounds.seen is not None and first is not None
            kept[partition] = Earlier(
                source_topic_id=bounds.source.topic_id,
                source_stop=bounds.source.stop,
                target=bounds.seen if is_short and bounds.seen is not None else end,
                promotion=now.promotion,
                source=_waiting(bounds, first, now.taken_ms),
                held_at=_held_since(before.get(partition), bounds, now),
            )
        flows[now.flow] = kept
    return flows


def _waiting(bounds: PartitionBounds, first: int | None, taken_ms: int) -> SeenEnd:
    """Return the end of the source as it is now, or as it was while the first in flight wait."""
    seen = bounds.source_seen
    if seen is not None and first is not None and first < seen.stop:
        return seen
    return SeenEnd(stop=bounds.source.stop, at_ms=taken_ms)


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
                *_values(seen.source, seen.held_at),
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
        if document["version"] not in {1, 2, FORMAT_VERSION}:
            raise ValueError(f"version {document['version']}, this program knows {FORMAT_VERSION}")
        return {str(flow): dict(map(_decoded, rows)) for flow, rows in document["flows"].items()}
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"not what an audit keeps: {error!r}") from error


def _decoded(row: Sequence[Any]) -> tuple[TopicPartition, Earlier]:
    topic, partition, topic_id, source_stop, stop, at_ms, promotion, *further = row
    if len(further) not in {0, 2, 4}:
        raise ValueError(f"{len(row)} values of {topic}-{partition}")
    seen, held_at, *_ = *map(_end, further[::2], further[1::2]), None, None
    return TopicPartition(str(topic), int(partition)), Earlier(
        source_topic_id=UUID(topic_id),
        source_stop=int(source_stop),
        target=SeenEnd(stop=int(stop), at_ms=_time(at_ms)),
        promotion=None if promotion is None else int(promotion),
        source=seen,
        held_at=held_at,
    )


def _values(source: SeenEnd | None, held_at: SeenEnd | None) -> list[int | None]:
    """Return stop and time of each; what comes last and is not known has none."""
    values = [
        value
        for one in (source, held_at)
        for value in ((None, None) if one is None else (one.stop, one.at_ms))
    ]
    while values and values[-1] is None:
        values.pop()
    return values


def _end(stop: object, at_ms: object) -> SeenEnd | None:
    if stop is None and at_ms is None:
        return None
    return SeenEnd(stop=int(str(stop)), at_ms=_time(at_ms))


def _time(value: object) -> int:
    if not isinstance(value, int) or not 0 <= value <= _LAST_MS:
        raise ValueError(f"{value!r} is no time in milliseconds")
    return value

"""From where a partition is begun that was never mirrored, where the flow has a `start`.

1. The flow looks for the first time (`mirror.topics.first_look`): its map says that it has begun,
   and which partitions were there. Those begin by `start`; all that come later, at their first
   record, because their records came while the flow ran.
2. A partition that is due is begun: the source is asked for the offset (`read_begins`), and the map
   keeps it, in one write with the first piece. From then on that offset counts, whatever `start`
   says and wherever the source's log ends: a crash before the first record skips nothing.

What the other direction has brought is no part of it: the begin lies behind that, as ever.
"""

from collections.abc import Collection, Mapping
from typing import Final, TypeAlias

from mirror.clusters.log_ends import Ends, LogEnds
from mirror.map.map_log import MapRecord
from mirror.state.partition import MirroredPartition
from offset_translation.map_records import Begun, StartDueKey, withdrawal
from offset_translation.map_state import MapState
from offset_translation.topic_identity import is_recreated
from runtime.configuration.flow_section import FlowConfig
from runtime.configuration.flow_start import LATEST_MS
from wire.errors import ErrorCode
from wire.net.cluster import Cluster
from wire.net.operations import LATEST, list_offsets
from wire.topic_partition import TopicPartition

Begins: TypeAlias = Mapping[TopicPartition, int | ErrorCode]
"""Source offsets, or why a leader would not say."""
NONE_SO_LATE: Final = -1
"""The answer to a time behind that of every record."""


def has_begun(state: MapState, config: FlowConfig) -> bool:
    """Whether the flow has begun. Of one of before there was a `start`, its topics tell.

    A flow of the whole file may have begun before its topics were parted into sets.
    """
    return (
        not state.begins.sets_begun.isdisjoint({config.topic_set or "", ""})
        or any(map(config.mirrors, state.topic_ids))
        or any(config.mirrors(one.topic) for one, pieces in state.maps.items() if len(pieces))
    )


def known_begin(state: MapState, partition: MirroredPartition) -> Begun | None:
    """Return where a partition was begun; None if that is its first record, or it never was.

    What the map has of an earlier topic of the name says nothing of this one.
    """
    return state.begins.of(partition.topic_partition, partition.source.topic_id)


def is_due(state: MapState, partition: MirroredPartition) -> bool:
    """Whether a partition begins by the flow's `start`, unless something of it was mirrored."""
    due = state.begins.due.get(partition.topic_partition)
    is_the_same = due is not None and not is_recreated(due, partition.source.topic_id)
    return is_the_same and known_begin(state, partition) is None


async def read_begins(
    source: Cluster, config: FlowConfig, due: Collection[TopicPartition], ends: Ends
) -> dict[TopicPartition, int | ErrorCode]:
    """Return the source offset at which each partition that is due begins; raises NetworkFault.

    `ends` were read before. What the source has taken since is not skipped: where no record is as
    late as a time, the answer is the end that was read before that was asked.
    """
    if not due or not config.start.leaves_records:
        return {}
    level = config.isolation_level
    stable = await list_offsets(source, due, LATEST, isolation_level=level)
    if config.start.at_ms == LATEST_MS:
        found = stable
    else:
        found = await list_offsets(source, due, config.start.at_ms, isolation_level=level)
    return {key: begin_at(found[key], stable[key], ends[key]) for key in due}


def begin_at(
    found: int | ErrorCode, stable: int | ErrorCode, ends: LogEnds | ErrorCode
) -> int | ErrorCode:
    """Return the offset to begin at, or why a leader would not say.

    `stable` is the end that a reader of committed records has: what is open there is not cut.
    """
    for answer in (found, stable, ends):
        if isinstance(answer, ErrorCode):
            return answer
    assert isinstance(found, int)
    assert isinstance(stable, int)
    assert isinstance(ends, LogEnds)
    end = min(stable, ends.end)
    return max(ends.start, end if found == NONE_SO_LATE else min(found, end))


def due_begin(
    state: MapState,
    config: FlowConfig,
    partition: MirroredPartition,
    begins: Begins,
    target: LogEnds,
) -> Begun | None:
    """Return what the map is to keep of a partition that begins now by `start`.

    None where it begins at its first record, as most do, or has begun.
    """
    begin = begins.get(partition.topic_partition)
    if not isinstance(begin, int) or isinstance(begin, ErrorCode) or not is_due(state, partition):
        return None
    return Begun(
        source_start=begin,
        target_start=target.end,
        topic_id=partition.source.topic_id,
        start=config.start.text,
    )


def why_not_yet(
    state: MapState, config: FlowConfig, partition: MirroredPartition, begins: Begins
) -> str | None:
    """Return why it cannot be told where a partition begins; None where it can, or is known."""
    if not config.start.leaves_records:
        return None
    key, where = partition.topic_partition, f"where `start: {config.start.text}` is"
    begin = begins.get(key)
    if isinstance(begin, ErrorCode):
        return f"{where}: {begin.name}"
    if not has_begun(state, config):
        return f"{where}: the worker that leads has not looked for the first time"
    return f"{where}: not asked yet" if is_due(state, partition) and begin is None else None


def settled_due(state: MapState, partition: MirroredPartition) -> list[MapRecord]:
    """Return the record by which a partition that goes on is due no more."""
    topic, index = partition.topic_partition
    if partition.topic_partition not in state.begins.due:
        return []
    return [withdrawal(StartDueKey(topic=topic, partition=index))]

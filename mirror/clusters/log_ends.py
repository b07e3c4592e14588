"""Both ends of logs, as their leaders tell them."""

from collections.abc import Iterable
from typing import Final, TypeAlias

import trio

from runtime.configuration.topic_names import TopicNames
from wire.errors import ErrorCode
from wire.net.cluster import Cluster
from wire.net.operations import list_offsets, log_ends
from wire.topic_partition import TopicPartition
from wire.values import frozen


@frozen
class LogEnds:
    """Where a log begins and ends."""

    start: int
    end: int


COMMITS_S: Final = 0.5
"""So long what a log holds may take to be committed, while followers do their work."""
LOOK_S: Final = 0.02

Ends: TypeAlias = dict[TopicPartition, LogEnds | ErrorCode]


async def read_ends(cluster: Cluster, where: Iterable[TopicPartition]) -> Ends:
    """Return both ends of each log, or why a leader would not say; raises NetworkFault."""
    wanted = set(where)
    starts = await list_offsets(cluster, wanted, -2)
    ends = await list_offsets(cluster, wanted, -1)
    answer: Ends = {}
    for key in wanted:
        start, end = starts[key], ends[key]
        if isinstance(start, ErrorCode):
            answer[key] = start
        elif isinstance(end, ErrorCode):
            answer[key] = end
        else:
            answer[key] = LogEnds(start=start, end=end)
    for topic in {topic for (topic, _), ends in answer.items() if isinstance(ends, ErrorCode)}:
        cluster.forget(topic)
    return answer


async def read_target_ends(
    cluster: Cluster, names: TopicNames, where: Iterable[TopicPartition]
) -> Ends:
    """Return the ends of the target's logs, by the source's names; raises NetworkFault."""
    there = {
        TopicPartition(names.on_target(partition.topic), partition.partition): partition
        for partition in where
    }
    return {there[partition]: ends for partition, ends in (await read_ends(cluster, there)).items()}


async def read_quiet_target_ends(
    cluster: Cluster, names: TopicNames, where: Iterable[TopicPartition]
) -> Ends:
    """Return the same; OFFSET_NOT_AVAILABLE for a log that holds uncommitted records.

    Batches of ours whose answers were lost may lie behind the high watermark. A writer that goes on
    before their fate is known takes their pieces of the map back; once they are committed, every
    offset behind them translates one hole too low. The committed end is asked for last, and again
    for a moment: a log that others write to as well is never quiet, but what it holds now is
    committed soon.
    """
    there = {
        TopicPartition(names.on_target(partition.topic), partition.partition): partition
        for partition in where
    }
    whole = await log_ends(cluster, there)
    found = await read_target_ends(cluster, names, there.values())
    needed: dict[TopicPartition, int] = {}
    for partition, key in there.items():
        end = whole[partition]
        if isinstance(end, ErrorCode):
            cluster.forget(partition[0])
            found[key] = end
        else:
            needed[key] = end
    give_up_s = trio.current_time() + COMMITS_S
    while waiting := [key for key in needed if _is_before(found[key], needed[key])]:
        if trio.current_time() >= give_up_s:
            return found | dict.fromkeys(waiting, ErrorCode.OFFSET_NOT_AVAILABLE)
        await trio.sleep(LOOK_S)
        found |= await read_target_ends(cluster, names, waiting)
    return found


def _is_before(ends: LogEnds | ErrorCode, end: int) -> bool:
    return isinstance(ends, LogEnds) and ends.end < end

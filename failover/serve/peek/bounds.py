"""Where a partition's log begins and ends, and where in it a question begins."""

from typing import Final

from failover.serve.peek.look import MOST_LOOKED, MOST_SHOWN
from failover.serve.peek.question import PeekQuestion
from wire.errors import ErrorCode
from wire.net import Cluster
from wire.net.errors import RequestRefused
from wire.net.operations import EARLIEST, LATEST, READ_COMMITTED, list_offsets
from wire.topic_partition import TopicPartition
from wire.values import frozen

NONE_THERE: Final = -1
"""What a broker answers where no record is as young as was asked for."""


@frozen
class PeekBounds:
    """Offsets of one log as its leader told them."""

    start: int
    end: int
    """Behind the last record that all replicas in sync have."""
    stable_end: int
    """Where the first open transaction begins, else the end."""


async def read_bounds(cluster: Cluster, place: TopicPartition) -> PeekBounds:
    """Ask the leader; raises NetworkFault, and RequestRefused with what the leader refuses by."""
    # The end comes last: what is committed between the two looks counts as open, and not as more.
    start = await _offset_at(cluster, place, EARLIEST, 0)
    stable_end = await _offset_at(cluster, place, LATEST, READ_COMMITTED)
    end = await _offset_at(cluster, place, LATEST, 0)
    return PeekBounds(start=start, end=end, stable_end=stable_end)


async def first_offset(
    cluster: Cluster, question: PeekQuestion, bounds: PeekBounds
) -> tuple[int, str | None]:
    """Return where to begin, and what to say where that is not where the question says.

    Raises NetworkFault.
    """
    if question.offset is not None:
        if question.offset < bounds.start:
            said = f"The log begins at offset {bounds.start:,}: what lay before is gone."
            return bounds.start, said
        if question.offset >= bounds.end:
            return bounds.end, f"The log ends at offset {bounds.end:,}: there is nothing there yet."
        return question.offset, None
    if question.time_ms is not None:
        found = await _offset_at(cluster, question.place, question.time_ms, 0)
        if found == NONE_THERE:
            return bounds.end, "No record is as young as that."
        return max(found, bounds.start), None
    span = MOST_SHOWN if question.key is None else MOST_LOOKED
    return max(bounds.start, bounds.end - span), None


async def _offset_at(
    cluster: Cluster, place: TopicPartition, timestamp: int, isolation_level: int
) -> int:
    answers = await list_offsets(cluster, [place], timestamp, isolation_level=isolation_level)
    found = answers[place]
    if isinstance(found, ErrorCode):
        raise RequestRefused(f"the offsets of {place}", found)
    return found

"""What is given up with a copy that is deleted, to be mirrored anew: each log by offset. Pure."""

from collections.abc import Iterable, Iterator

from mirror.clusters.log_ends import Ends, LogEnds
from mirror.state.partition import MirroredPartition
from runtime.configuration.config import FlowConfig
from wire.topic_partition import TopicPartition


def told_given_up(
    flow: FlowConfig, partitions: Iterable[MirroredPartition], target: Ends
) -> Iterator[str]:
    """Yield a line for each log of the copy that holds anything, or may; `target` are its ends.

    What the source has lost since it was mirrored is named by the source's offsets, too: this copy
    is the last.
    """
    for partition in sorted(partitions, key=lambda one: one.index):
        there = TopicPartition(partition.target_topic, partition.index)
        ends = target.get(partition.topic_partition)
        if not isinstance(ends, LogEnds):
            why = "" if ends is None else f" ({ends.name})"
            yield f"{flow.target} {there} is given up, and where it ends is not told{why}"
        elif ends.start < ends.end:
            yield (
                f"{flow.target} {there} is given up from offset {ends.start} to {ends.end - 1}"
                f"{_lost(flow, partition)}"
            )


def _lost(flow: FlowConfig, partition: MirroredPartition) -> str:
    """Return what of it the source has not, in words; empty where it has all."""
    if partition.target.copied_id is not None:
        return f": the copy of a former topic, which {flow.source} does not have any more"
    mirrored, end = partition.offset_map.mirrored_source_end, partition.source.end
    if end is None:
        return f"; whether {flow.source} has all of it is not known"
    if mirrored is None or mirrored <= end:
        return ""
    return f": {flow.source} has lost its offsets {end} to {mirrored - 1}, and this was their copy"

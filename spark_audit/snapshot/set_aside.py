"""Which source records a flow leaves out because they were set aside, and lie there.

The map says which offsets the mirror passed over. It is not believed alone: a record is explained
only where the `.diverged` topic on the target has it, by its site and offset.
"""

from collections.abc import Callable, Iterable, Mapping

from runtime.configuration.topic_names import diverged_topic
from runtime.diverged import OwnRecords, origin_of
from spark_audit.snapshot.seals import CannotTell
from wire.errors import ErrorCode
from wire.net import Cluster, NetworkFault
from wire.net.operations import EARLIEST, LATEST, list_offsets
from wire.record_batch import CorruptBatch
from wire.topic_partition import TopicPartition


async def read_set_aside(
    cluster: Cluster,
    source: str,
    said: Mapping[TopicPartition, Mapping[int, int]],
    *,
    name: str,
    copies: Callable[[str], str],
) -> dict[TopicPartition, tuple[tuple[int, int], ...]]:
    """Return by partition the offsets [start, stop) of `source` that were set aside and are saved.

    `said` are those that the map names, by start, and `copies` tells what a topic of `source` is
    called here. Raises CannotTell, with the cluster's name.
    """
    found: dict[TopicPartition, tuple[tuple[int, int], ...]] = {}
    for partition, parts in sorted(said.items()):
        if not parts:
            continue
        where = TopicPartition(diverged_topic(copies(partition.topic)), partition.partition)
        try:
            saved = await _saved(cluster, where, source)
        except (NetworkFault, CorruptBatch) as fault:
            raise CannotTell(f"cluster {name}: {where}: {fault}") from fault
        found[partition] = parts_of(saved, parts)
    return found


def parts_of(offsets: Iterable[int], said: Mapping[int, int]) -> tuple[tuple[int, int], ...]:
    """Return the offsets within the parts that are said, as parts [start, stop) in order."""
    parts: list[tuple[int, int]] = []
    for offset in sorted({one for one in offsets if _is_within(one, said)}):
        if parts and parts[-1][1] == offset:
            parts[-1] = parts[-1][0], offset + 1
        else:
            parts.append((offset, offset + 1))
    return tuple(parts)


def _is_within(offset: int, said: Mapping[int, int]) -> bool:
    return any(start <= offset < stop for start, stop in said.items())


async def _saved(cluster: Cluster, where: TopicPartition, source: str) -> set[int]:
    """Return the offsets at `source` of the records that lie in a `.diverged` partition."""
    start, stop = [
        (await list_offsets(cluster, [where], edge))[where] for edge in (EARLIEST, LATEST)
    ]
    for answer in (start, stop):
        if answer is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return set()  # somebody has deleted it: nothing is explained any more
        if isinstance(answer, ErrorCode):
            raise CannotTell(f"{where}: {answer.name}")
    offsets: set[int] = set()
    async for _, records in OwnRecords(cluster, where, start, stop, ()):
        origins = (origin_of(record) for record in records)
        offsets.update(one.offset for one in origins if one is not None and one.site == source)
    return offsets

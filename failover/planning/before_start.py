"""The records that a flow leaves on its source on purpose: those before its `start`. Pure.

They are not on the target and will not be. A promotion does not wait for them and does not count
them as lost; but it names them, because whoever moves will not find them.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from wire.topic_partition import TopicPartition
from wire.values import frozen

SHOWN: Final = 5
"""So many partitions are shown line by line, those that leave most first."""


@frozen
class KeptOnSource:
    """One partition's records before the flow's start."""

    begin: int
    """The source offset of the first record that is carried."""
    log_start: int | None
    """Where the source's log begins; None where the source does not tell."""
    start: str
    """The `start` by which the partition was begun."""

    @property
    def at_most(self) -> int:
        """Return how many records these are at most: their offsets."""
        return max(0, self.begin - (self.log_start or 0))


def at_most(left: Mapping[TopicPartition, KeptOnSource]) -> int:
    """Return how many records stay on the source, at most."""
    return sum(one.at_most for one in left.values())


def not_carried(records: int) -> str:
    """Return what is said of them beside a loss, "" where there are none."""
    return f"up to {records} records before the flow's start are not carried" if records else ""


def before_start_lines(left: Mapping[TopicPartition, KeptOnSource], source: str) -> Iterator[str]:
    """Yield the lines that a plan has of records before the flow's start; none where none are."""
    found = {partition: one for partition, one in left.items() if one.at_most}
    if not found:
        return
    total = at_most(found)
    starts = ", ".join(f"`start: {start}`" for start in Counter(o.start for o in found.values()))
    yield (
        f"stays    up to {total} records of {source} before the flow's start ({starts}) are not"
        f" carried, in {len(found)} partitions"
    )
    ordered = sorted(found.items(), key=lambda item: (-item[1].at_most, item[0]))
    for partition, one in ordered[:SHOWN]:
        yield f"         {partition}: offsets {one.log_start or 0} to {one.begin - 1}"
    if len(ordered) > SHOWN:
        yield f"         and {len(ordered) - SHOWN} partitions more"


def before_start_document(left: Mapping[TopicPartition, KeptOnSource]) -> list[Mapping[str, Any]]:
    """Return the JSON form: every partition that was begun by a `start`."""
    return [
        {
            "topic": partition.topic,
            "partition": partition.partition,
            "start": one.start,
            "begun_at": one.begin,
            "source_log_start": one.log_start,
            "records_at_most": one.at_most,
        }
        for partition, one in sorted(left.items())
    ]

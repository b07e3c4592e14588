"""The metrics of the partitions held here, of which there may be ten thousand: a part at a time."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from broker.replication.partition import Partition
from runtime.pages.exposition import ManyFamily, ManyLines

AT_ONCE: Final = 200
"""Partitions between two turns of all others: a millisecond or two."""

_OF_PARTITION: Final = ("topic", "partition")
SIZE: Final = ManyFamily(
    name="broker_log_size_bytes", text="Bytes of one partition's segments", labels=_OF_PARTITION
)
END: Final = ManyFamily(
    name="broker_log_end_offset", text="The next offset of one partition", labels=_OF_PARTITION
)
LAG: Final = ManyFamily(
    name="broker_follower_lag_records",
    text="Records that a follower of this leader has not fetched",
    labels=(*_OF_PARTITION, "follower"),
)
FAMILIES: Final = (SIZE, END, LAG)


@dataclass(slots=True)
class HeldCounts:
    """How many partitions are held here, and how those led here are replicated."""

    held: int = 0
    led: int = 0
    under_replicated: int = 0
    under_min_isr: int = 0

    def count(self, partition: Partition) -> None:
        """Count one more."""
        self.held += 1
        self.led += partition.is_led_here
        self.under_replicated += partition.is_under_replicated
        self.under_min_isr += partition.is_under_min_isr


class PartitionGauges:
    """Walks over the partitions at each scrape."""

    def __init__(self, partitions: Iterable[Partition]) -> None:
        self._partitions = partitions
        self.counts = HeldCounts()
        """Of the last walk."""

    async def lines(self) -> ManyLines:
        """Return a line for each partition and follower; the counts are of this walk then.

        A follower that was never heard of lags by everything.
        """
        lines, counts = ManyLines(FAMILIES), HeldCounts()
        for number, partition in enumerate(list(self._partitions)):
            if number % AT_ONCE == 0:
                await lines.give_turn()
            counts.count(partition)
            labels = f'topic="{partition.topic}",partition="{partition.index}"'
            lines.add(SIZE.name, labels, partition.log.size_bytes)
            lines.add(END.name, labels, partition.log_end_offset)
            for broker_id, lag in partition.follower_lags():
                lines.add(LAG.name, f'{labels},follower="{broker_id}"', lag)
        self.counts = counts
        return lines

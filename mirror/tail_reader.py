"""Read a small internal topic of one partition: all of it at first, then what is new each time."""

from collections.abc import AsyncIterator
from typing import Final

from wire.errors import ErrorCode
from wire.net import Cluster, NetworkFault
from wire.net.operations import EARLIEST, LATEST, list_offsets, read_partition
from wire.record_batch import BatchHeader, CorruptBatch, Record, crc_is_valid, iterate_records


class TopicUnreadable(NetworkFault):
    """The topic is missing, its leader would not tell, or a batch is damaged; says which."""


class TailReader:
    """Remembers how far it has read."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        """Begin at the start of the log."""
        self.topic: Final = topic
        self.next_offset = 0
        self._cluster = cluster

    async def read_new(self) -> AsyncIterator[tuple[BatchHeader, Record]]:
        """Yield the records up to the end that the log has now; raises NetworkFault.

        What was yielded before a fault is not yielded again, batch by batch.
        """
        where = (self.topic, 0)
        start = (await list_offsets(self._cluster, [where], EARLIEST))[where]
        end = (await list_offsets(self._cluster, [where], LATEST))[where]
        for found in (start, end):
            if isinstance(found, ErrorCode):
                raise TopicUnreadable(f"{self.topic}: {found.name}")
        first = max(start, self.next_offset)
        async for header, batch in read_partition(self._cluster, self.topic, 0, first, end):
            if not header.is_control:
                for record in self._records(header, batch):
                    if record.offset >= first:
                        yield header, record
            self.next_offset = header.next_offset
        self.next_offset = max(self.next_offset, end)

    def _records(self, header: BatchHeader, batch: memoryview) -> list[Record]:
        """Return the records of a batch; a damaged one must not be taken for an empty one."""
        if not crc_is_valid(batch):
            raise TopicUnreadable(f"{self.topic}: damaged batch at offset {header.base_offset}")
        try:
            return list(iterate_records(batch))
        except CorruptBatch as fault:
            at = f"{self.topic}: batch at offset {header.base_offset}"
            raise TopicUnreadable(f"{at}: {fault}") from fault


async def topic_exists(cluster: Cluster, topic: str) -> bool:
    """Whether the cluster has the topic; raises NetworkFault."""
    found = (await cluster.metadata([topic], refresh=True)).topics.get(topic)
    return found is not None and found.error_code == ErrorCode.NONE and bool(found.partitions)

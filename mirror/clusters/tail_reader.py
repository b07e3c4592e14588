"""Read a small internal topic of one partition: all of it at first, then what is new each time."""

from collections.abc import AsyncIterator, Callable
from typing import Final
from uuid import UUID

from offset_translation.map_records import lost_head
from offset_translation.topic_identity import NO_ID
from wire.errors import ErrorCode
from wire.net import Cluster, NetworkFault
from wire.net.errors import RequestRefused
from wire.net.operations import EARLIEST, LATEST, list_offsets, read_partition
from wire.net.retries import code_of
from wire.record_batch import BatchHeader, CorruptBatch, Record, crc_is_valid, iterate_records
from wire.topic_partition import TopicPartition


class TopicUnreadable(NetworkFault):
    """The topic is missing, its leader would not tell, or a batch is damaged; says which."""


class TailReader:
    """A reader that remembers how far it has read."""

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        *,
        damaged: Callable[[str], None] | None = None,
        is_map: bool = False,
    ) -> None:
        """Begin at the start of the log.

        Of what `is_map` nothing may be missing before the first record that is there: by the rest
        alone, groups would pass over records that lie on the target.

        ``damaged`` is told of batches that are damaged, once of each, and they are passed over, as
        checkpoints may be. Without it they are a fault: a map that lacks a piece would have records
        skipped.
        """
        self.topic: Final = topic
        self.next_offset = 0
        self.log_end = 0
        """Where the log ended when it was read last."""
        self.is_another = False
        """Whether the topic was made again: what we have read is of an earlier one.

        The new one is shorter than where we are, so its first records would never be read. Of a
        map these name the new mirror's producer id, and its batches would be sent back.
        """
        self._topic_id: UUID | None = None
        self._cluster = cluster
        self._damaged = damaged
        self._is_map = is_map
        self._stepped_to = -1

    @property
    def topic_id(self) -> UUID:
        """The id of the topic that was read last; zero where brokers tell none."""
        return self._topic_id or NO_ID

    async def read_new(self) -> AsyncIterator[tuple[BatchHeader, Record]]:
        """Yield the records up to the end that the log has now; raises NetworkFault.

        What was yielded before a fault is not yielded again, batch by batch.
        """
        where = TopicPartition(self.topic, 0)
        start = (await list_offsets(self._cluster, [where], EARLIEST))[where]
        end = (await list_offsets(self._cluster, [where], LATEST))[where]
        for found in (start, end):
            if isinstance(found, ErrorCode):
                raise TopicUnreadable(f"{self.topic}: {found.name}")
        self.log_end = end
        await self._compare(end)
        if self._is_map and start > self.next_offset:
            raise TopicUnreadable(f"{self.topic}: {lost_head(start)}")
        first = max(start, self.next_offset)
        reader = read_partition(self._cluster, self.topic, 0, first, end)
        while True:
            at = reader.position
            try:
                header, batch = await anext(reader)
                records = _records(header, batch)
            except StopAsyncIteration:
                break
            except CorruptBatch as fault:
                self._pass_over(at, fault)
                # Where it ends is under the checksum that failed: the next batch says so, or the
                # broker, by not sending it again.
                reader.position = at + 1
                continue
            for record in records:
                if record.offset >= first:
                    yield header, record
            self.next_offset = header.next_offset
        self.next_offset = max(self.next_offset, end)

    async def _compare(self, end: int) -> None:
        """Look whether the topic is still the one that was read so far, where brokers tell."""
        is_short = end < self.next_offset  # also while a new leader is behind
        view = await self._cluster.metadata([self.topic], refresh=is_short)
        seen = view.topics.get(self.topic)
        if seen is not None and seen.topic_id.int:
            self.is_another |= self._topic_id not in {None, seen.topic_id}
            self._topic_id = seen.topic_id

    def _pass_over(self, at: int, fault: CorruptBatch) -> None:
        if self._damaged is None:
            raise TopicUnreadable(f"{self.topic}: damaged batch at offset {at}: {fault}") from fault
        if at != self._stepped_to:
            self._damaged(f"damaged batch at offset {at}: {fault}")
        self._stepped_to = at + 1


def _records(header: BatchHeader, batch: memoryview) -> list[Record]:
    """Return the records of a batch; raises CorruptBatch."""
    if not crc_is_valid(batch):
        raise CorruptBatch(0, "wrong checksum")
    return [] if header.is_control else list(iterate_records(batch))


async def topic_is_shown(cluster: Cluster, topic: str) -> bool:
    """Whether the cluster has the topic and lets us see it; raises NetworkFault.

    For what a flow can do without: a user with the rights that a flow needs sees no other's topics,
    and Apache Kafka says of those that are not there the same.
    """
    try:
        return await topic_exists(cluster, topic)
    except RequestRefused as refused:
        if refused.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            return False
        raise


async def topic_exists(cluster: Cluster, topic: str) -> bool:
    """Whether the cluster has the topic.

    Raises NetworkFault, also where the broker says neither: a topic that we may not see may be
    there.
    """
    found = (await cluster.metadata([topic], refresh=True)).topics.get(topic)
    if found is None or found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return False
    if found.error_code != ErrorCode.NONE:
        raise RequestRefused(topic, code_of(found.error_code))
    return bool(found.partitions)

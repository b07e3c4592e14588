"""The checkpoints of one flow: the last commit of each group and partition, durable on the target.

Checkpoints of groups that are gone stay, as MirrorMaker's do: its client library takes the value of
each record for granted, and a tombstone would end `RemoteClusterUtils` with an exception.

Only what registered producers have written is believed (`runtime.coordination.map_writers`).
Others' records are counted, and what they would make the cleaner remove is written again.
"""

from collections.abc import Sequence
from typing import Final, TypeAlias

from mirror.clusters.malformed_records import OddRecords
from mirror.clusters.tail_reader import TailReader
from offset_translation import checkpoint
from offset_translation.binary import MalformedRecord
from offset_translation.checkpoint import Checkpoint
from runtime.configuration.config import FlowConfig
from runtime.coordination.map_writers import MapReading, UnbelievedRecords, Writers
from runtime.process.clock import now_ms
from runtime.process.fault_note import FaultNote
from wire.errors import ErrorCode
from wire.net.cluster import Cluster
from wire.net.errors import NetworkFault, RequestRefused
from wire.net.operations import LATEST, append, list_offsets, new_producer_id
from wire.net.retries import code_of
from wire.net.topic_creation import ensure_topic
from wire.record_batch import Record, build_batch
from wire.record_batch.header import SEQUENCES
from wire.topic_partition import TopicPartition

BATCH_BYTES: Final = 512 * 1024
"""Half of what brokers take by default."""

GroupPartition: TypeAlias = tuple[str, str, int]
"""(group, topic, partition)"""


class CheckpointsUnreadable(NetworkFault):
    """The checkpoint topic does not tell where it ends; the message names it."""


class CheckpointLog:
    """Read once, then written behind the commits that it tells of."""

    def __init__(
        self,
        target: Cluster,
        flow: FlowConfig,
        odd: OddRecords,
        fault: FaultNote,
        writers: Writers,
    ) -> None:
        """Know where the topic is; ``load`` reads it."""
        self.topic: Final = flow.names.checkpoints_topic
        self.applied: dict[GroupPartition, Checkpoint] = {}
        """The last checkpoint of each group and partition, by the source's names: tells a rewind
        from a run ahead."""
        self.unbelieved_records: Final = UnbelievedRecords()
        """The records that no registered producer has written; they are not ``applied``."""
        self._target = target
        self._names = flow.names
        self._is_of_ours = flow.mirrors if flow.topic_set is not None else lambda _: True
        """Whether a topic is of the flow's set: other sets' leaders write the same topic."""
        self._replication_factor = flow.replication_factor
        self._odd = odd
        self._fault = fault
        self._writers = writers
        self._reader = self._new_reader()
        self._producer: tuple[int, int] | None = None
        """Id and epoch; a new one is asked for behind each fault, so no sequence is in doubt."""
        self._own: set[int] = set()
        self._in_log: set[int] = set()
        self._next_sequence = 0
        self._unwritten: dict[GroupPartition, Checkpoint] = {}
        self._is_loaded = False
        self._is_gone = False
        """The target has said that there is no such topic."""

    async def load(self) -> None:
        """Create the topic if need be, and read it; raises NetworkFault."""
        await self._ensure_topic()
        await self._read()
        self._is_loaded = True

    async def catch_up(self) -> None:
        """Read what others have written since; raises NetworkFault."""
        if self._is_loaded and not self._is_gone:
            await self._read()

    def _new_reader(self) -> TailReader:
        return TailReader(self._target, self.topic, damaged=self._odd.note)

    async def _ensure_topic(self) -> None:
        """Have the topic, and a registry of its writers."""
        await ensure_topic(
            self._target,
            self.topic,
            replication_factor=self._replication_factor,
            configs={"cleanup.policy": "compact"},
        )
        where = TopicPartition(self.topic, 0)
        end = (await list_offsets(self._target, [where], LATEST))[where]
        if isinstance(end, ErrorCode):
            raise CheckpointsUnreadable(f"{self.topic}: {end.name}")
        seen = (await self._target.metadata([self.topic])).topics[self.topic]
        await self._writers.begin(end=end, topic_id=seen.topic_id)

    async def _read(self) -> None:
        reading, unbelieved_keys = MapReading(), set[bytes]()
        async for header, record in self._reader.read_new():
            if header.producer_id in self._own:
                continue
            if await self._writers.believes(header.producer_id, header.base_offset, reading):
                self._in_log.add(header.producer_id)
                self._replay(record)
            else:
                self.unbelieved_records.note(header.producer_id, record.offset)
                unbelieved_keys.add(record.key or b"")
        if unbelieved_keys:
            self._unwritten |= {
                group_partition: noted
                for group_partition, noted in self.applied.items()
                if checkpoint.encode(noted)[0] in unbelieved_keys
            }

    def _replay(self, record: Record) -> None:
        if record.value is None:
            return
        try:
            noted = checkpoint.decode(record.key or b"", record.value)
        except MalformedRecord as fault:
            self._odd.note(f"offset {record.offset}: {fault}")
            return
        topic = self._names.on_source(noted.topic)
        if topic is not None and self._is_of_ours(topic):
            self.applied[noted.group, topic, noted.partition] = noted

    @property
    def is_behind(self) -> bool:
        """Whether there is something to write."""
        return bool(self._unwritten) or self._is_gone

    def note(self, group_partition: GroupPartition, noted: Checkpoint) -> None:
        """Note a checkpoint that has just been committed; ``write`` makes it durable."""
        self.applied[group_partition] = noted
        self._unwritten[group_partition] = noted

    async def write(self) -> None:
        """Write the noted checkpoints; the next call tries again those that cannot be written now.

        A topic that was deleted is made again first, with all that it has held.
        """
        if self._is_gone and not await self._make_again():
            return
        waiting = list(self._unwritten.items())
        while waiting:
            written: list[tuple[GroupPartition, Checkpoint]] = []
            records: list[Record] = []
            size, stamp = 0, now_ms()
            while waiting and size < BATCH_BYTES:
                group_partition, noted = waiting.pop()
                key, value = checkpoint.encode(noted)
                records.append(Record(len(records), stamp, key, value))
                written.append((group_partition, noted))
                size += len(key) + len(value)
            if not await self._append(records):
                return
            for group_partition, noted in written:
                if self._unwritten.get(group_partition) is noted:
                    del self._unwritten[group_partition]

    async def _make_again(self) -> bool:
        try:
            await self._ensure_topic()
        except NetworkFault as fault:
            self._fault.note(f"{self.topic}: {fault}", self.topic)
            return False
        self._reader = self._new_reader()
        self._unwritten = self.applied.copy()
        self._is_gone = False
        return True

    async def _append(self, records: Sequence[Record]) -> bool:
        try:
            producer_id, producer_epoch = await self._registered()
            batch = build_batch(
                records,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                base_sequence=self._next_sequence,
            )
            answer = await append(self._target, self.topic, 0, batch)
            code = code_of(answer.error_code)
            if code is ErrorCode.NONE and answer.base_offset < self._reader.next_offset:
                # An id that was given twice: it was taken for a repetition of another's batch.
                code = ErrorCode.DUPLICATE_SEQUENCE_NUMBER
        except RequestRefused as refused:
            code = refused.code
        except NetworkFault as fault:
            self._producer = None
            self._fault.note(f"{self.topic}: {fault}", self.topic)
            return False
        if code is not ErrorCode.NONE:
            self._producer = None
            self._is_gone = code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            self._fault.note(f"{self.topic}: {code.name}", self.topic)
            return False
        self._next_sequence = (self._next_sequence + len(records)) % SEQUENCES
        self._fault.clear(self.topic)
        return True

    async def _registered(self) -> tuple[int, int]:
        """Return a producer id and epoch by which whatever is written is believed."""
        if self._producer is None:
            self._producer = await new_producer_id(self._target)
            self._own.add(self._producer[0])
            self._next_sequence = 0
        await self._writers.register(self._producer[0], self._in_log | self._own)
        return self._producer

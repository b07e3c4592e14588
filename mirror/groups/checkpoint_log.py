"""The checkpoints of one flow: the last commit of each group and partition, durable on the target.

Checkpoints of groups that are gone stay, as MirrorMaker's do: its client library takes the value of
each record for granted, and a tombstone would end `RemoteClusterUtils` with an exception.
"""

from typing import Final, TypeAlias

from mirror.clusters.malformed_records import OddRecords
from mirror.clusters.tail_reader import TailReader
from offset_translation import checkpoint
from offset_translation.binary import MalformedRecord
from offset_translation.checkpoint import Checkpoint
from runtime.clock import now_ms
from runtime.config import FlowConfig
from runtime.fault_note import FaultNote
from wire.errors import ErrorCode
from wire.net.cluster import Cluster
from wire.net.errors import NetworkFault, RequestRefused
from wire.net.operations import append
from wire.net.retries import code_of
from wire.net.topic_creation import ensure_topic
from wire.record_batch import Record, build_batch

BATCH_BYTES: Final = 512 * 1024
"""Half of what brokers take by default."""

GroupPartition: TypeAlias = tuple[str, str, int]
"""(group, topic, partition)"""


class CheckpointLog:
    """Read once, then written behind the commits that it tells of."""

    def __init__(
        self, target: Cluster, flow: FlowConfig, odd: OddRecords, fault: FaultNote
    ) -> None:
        """Know where the topic is; ``load`` reads it."""
        self.topic: Final = flow.names.checkpoints_topic
        self.applied: dict[GroupPartition, Checkpoint] = {}
        """The last checkpoint of each group and partition, by the source's names: tells a rewind
        from a run ahead."""
        self._target = target
        self._names = flow.names
        self._replication_factor = flow.replication_factor
        self._odd = odd
        self._fault = fault
        self._unwritten: dict[GroupPartition, Checkpoint] = {}
        self._is_gone = False
        """The target has said that there is no such topic."""

    async def load(self) -> None:
        """Create the topic if need be, and read it; raises NetworkFault."""
        await self._ensure_topic()
        reader = TailReader(self._target, self.topic, damaged=self._odd.note)
        async for _, record in reader.read_new():
            self._replay(record)

    async def _ensure_topic(self) -> None:
        await ensure_topic(
            self._target,
            self.topic,
            replication_factor=self._replication_factor,
            configs={"cleanup.policy": "compact"},
        )

    def _replay(self, record: Record) -> None:
        if record.value is None:
            return
        try:
            noted = checkpoint.decode(record.key or b"", record.value)
        except MalformedRecord as fault:
            self._odd.note(f"offset {record.offset}: {fault}")
            return
        topic = self._names.on_source(noted.topic)
        if topic is not None:
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
            if not await self._append(build_batch(records)):
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
        self._unwritten = self.applied.copy()
        self._is_gone = False
        return True

    async def _append(self, batch: bytes) -> bool:
        try:
            code = code_of((await append(self._target, self.topic, 0, batch)).error_code)
        except RequestRefused as refused:
            code = refused.code
        except NetworkFault as fault:
            self._fault.note(f"{self.topic}: {fault}", self.topic)
            return False
        if code is not ErrorCode.NONE:
            self._is_gone = code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            self._fault.note(f"{self.topic}: {code.name}", self.topic)
            return False
        self._fault.clear(self.topic)
        return True

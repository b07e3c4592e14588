"""One partition on this broker: its leadership, its high watermark, and who waits for it.

    log start          high watermark        log end
        |-- committed -------|-- not yet on ----|
                               every in-sync replica

Consumers see committed records only. While the leader alone is in sync both ends are one.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

import trio

from broker.context import Clock, NotLeader
from broker.log.partition_log import PartitionLog
from broker.log.results import (
    Appended,
    AppendResult,
    Duplicate,
    OffsetOutOfRange,
    Origin,
    Refused,
)
from wire.errors import ErrorCode
from wire.record_batch import Buffer, CorruptBatch, parse_header

NO_LEADER: Final = -1
ALL_IN_SYNC: Final = -1
"""The `acks` of a producer that waits for every in-sync replica."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leadership:
    """What the controller says of one partition."""

    topic: str
    index: int
    topic_id: UUID
    controller_epoch: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    version: int
    """Of the partition's state in ZooKeeper; a leader that changes the ISR writes against it."""


class OwnBatchRefused(RuntimeError):
    """The log refused a batch that this broker built, for instance as larger than it may be."""


class Wakeup:
    """Somebody who waits for any of several partitions to move; good for one task."""

    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event = trio.Event()

    def wake(self) -> None:
        self._event.set()

    async def wait(self) -> None:
        """Wait until woken since the last wait."""
        await self._event.wait()
        self._event = trio.Event()


class Partition:
    """One replica. Lives as long as the broker holds the partition; not thread-safe."""

    def __init__(
        self, broker_id: int, log: PartitionLog, leadership: Leadership, clock: Clock
    ) -> None:
        self.log = log
        self._clock = clock
        self.leadership = leadership
        self._broker_id = broker_id
        self._replica_ends: dict[int, int] = {}
        self._wakeups: set[Wakeup] = set()
        self._high_watermark = log.log_start_offset

    @property
    def topic(self) -> str:
        return self.leadership.topic

    @property
    def index(self) -> int:
        return self.leadership.index

    @property
    def leader_epoch(self) -> int:
        return self.leadership.leader_epoch

    @property
    def is_led_here(self) -> bool:
        return self.leadership.leader == self._broker_id

    @property
    def log_start_offset(self) -> int:
        return self.log.log_start_offset

    @property
    def log_end_offset(self) -> int:
        return self.log.log_end_offset

    @property
    def high_watermark(self) -> int:
        return self._high_watermark

    @property
    def last_stable_offset(self) -> int:
        """The end of what is decided; the high watermark until transactions are served."""
        return self._high_watermark

    def take(self, leadership: Leadership) -> None:
        """Follow the controller's newer word; a new epoch of leadership begins at the log's end."""
        begins = leadership.leader == self._broker_id and (
            leadership.leader_epoch != self.leadership.leader_epoch or not self._replica_ends
        )
        self.leadership = leadership
        if begins:
            self.log.assign_leader_epoch(leadership.leader_epoch)
            self._replica_ends = {self._broker_id: self.log.log_end_offset}
        if self.is_led_here:
            self._advance()
        self._wake_all()

    def resign(self) -> None:
        """Stop leading: every wait ends with NotLeader."""
        self.leadership = replace(self.leadership, leader=NO_LEADER)
        self._replica_ends = {}
        self._wake_all()

    def append_from_client(
        self, batch: Buffer, *, acks: int, is_fenced: bool, now_ms: int
    ) -> Appended:
        """Append a producer's batch, or say why not.

        A remembered duplicate is acknowledged even when fenced, so that a producer whose answer got
        lost learns the truth; only then does the fence hold, before anything else is looked at.
        Raises StorageError.
        """
        duplicate = self._find_duplicate(batch)
        if duplicate is not None:
            return duplicate
        if is_fenced:
            return Refused(
                error=ErrorCode.NOT_ENOUGH_REPLICAS,
                reason=f"writes to {self.topic} are fenced off (write.fence.topics)",
            )
        too_few = self._refuse_too_few_in_sync(acks)
        if too_few is not None:
            return too_few
        appended = self.log.append(
            batch, leader_epoch=self.leadership.leader_epoch, now_ms=now_ms, origin=Origin.CLIENT
        )
        if isinstance(appended, AppendResult):
            self._grown()
        return appended

    def append_own(self, batch: bytes | bytearray) -> int:
        """Append a batch that this broker built itself; return its first offset.

        Raises NotLeader, StorageError, and OwnBatchRefused when the log does not take it.
        """
        if not self.is_led_here:
            raise NotLeader(f"{self.topic}-{self.index} is led by {self.leadership.leader}")
        appended = self.log.append(
            batch,
            leader_epoch=self.leadership.leader_epoch,
            now_ms=self._clock.now_ms(),
            origin=Origin.COORDINATOR,
        )
        if isinstance(appended, Refused):
            raise OwnBatchRefused(f"{self.topic}-{self.index}: {appended.reason}")
        self._grown()
        return appended.base_offset

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Return whole batches up to the log's end, at least one; empty at the end.

        Raises StorageError. An offset before the log's start reads from the start.
        """
        found = self.log.read(max(offset, self.log.log_start_offset), max_bytes)
        return b"" if isinstance(found, OffsetOutOfRange) else found

    def _find_duplicate(self, batch: Buffer) -> Duplicate | None:
        try:
            header = parse_header(batch)
        except CorruptBatch:
            return None  # the log says so, unless the fence comes first
        return self.log.find_duplicate(header) if header.producer_id >= 0 else None

    def _refuse_too_few_in_sync(self, acks: int) -> Refused | None:
        needed = self.log.config.min_insync_replicas
        if acks != ALL_IN_SYNC or len(self.leadership.isr) >= needed:
            return None
        return Refused(
            error=ErrorCode.NOT_ENOUGH_REPLICAS,
            reason=f"{len(self.leadership.isr)} replicas in sync, min.insync.replicas={needed}",
        )

    def _grown(self) -> None:
        self._replica_ends[self._broker_id] = self.log.log_end_offset
        self._advance()

    def _advance(self) -> None:
        """Move the high watermark to the smallest end among the in-sync replicas; never back."""
        ends = [
            self._replica_ends.get(broker, self._high_watermark) for broker in self.leadership.isr
        ]
        committed = min(ends, default=self._high_watermark)
        if committed > self._high_watermark:
            self._high_watermark = committed
            self._wake_all()

    def _wake_all(self) -> None:
        for wakeup in self._wakeups:
            wakeup.wake()

    @contextmanager
    def waking(self, wakeup: Wakeup) -> Iterator[None]:
        """Wake `wakeup` whenever the high watermark or the leadership moves."""
        self._wakeups.add(wakeup)
        try:
            yield
        finally:
            self._wakeups.discard(wakeup)

    async def wait_committed(self, offset: int) -> None:
        """Wait until the record at `offset` is committed. Raises NotLeader."""
        epoch = self.leadership.leader_epoch
        if self.is_led_here and self._high_watermark > offset:
            return
        wakeup = Wakeup()
        with self.waking(wakeup):
            while self.is_led_here and self.leadership.leader_epoch == epoch:
                if self._high_watermark > offset:
                    return
                await wakeup.wait()
        raise NotLeader(f"{self.topic}-{self.index} is led by {self.leadership.leader}")

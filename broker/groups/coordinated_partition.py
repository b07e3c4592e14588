"""One partition of `__consumer_offsets` as its coordinator holds it: its log and its shard."""

from dataclasses import dataclass, field

import trio

from broker.coordinator_log import append_refusal, require_room
from broker.groups.records import batches
from broker.groups.shard import Shard
from broker.groups.write_operation import WriteOperation
from broker.led_partition import LedPartition, NotLeader
from broker.log.results import StorageError
from broker.replication.partition import OwnBatchRefused
from wire.errors import ErrorCode


@dataclass(slots=True, kw_only=True)
class CoordinatedPartition:
    """A partition this broker leads; `shard` is None until its log has been read."""

    led: LedPartition
    shard: Shard | None = None
    last_written: int = -1
    """The offset of the last record that the shard has replayed, -1 when there is none."""
    loading: trio.CancelScope = field(default_factory=trio.CancelScope)
    deleted_topics: set[str] = field(default_factory=set)
    """Deleted while the log was being read: what it holds of them is forgotten behind that."""

    @property
    def loaded(self) -> Shard:
        """The shard of a partition that is known to be loaded."""
        assert self.shard is not None
        return self.shard

    @property
    def is_safe(self) -> bool:
        """Whether everything the shard has replayed would survive a failover."""
        return self.last_written < self.led.high_watermark

    @property
    def next_deadline_ms(self) -> int | None:
        """When the shard has to be looked at again."""
        return None if self.shard is None else self.shard.next_deadline_ms

    def write(self, operation: WriteOperation) -> ErrorCode:
        """Append and replay what an operation has decided; nothing counts if the log has no room.

        Return what `append_refusal` says of a fault.
        """
        try:
            producer = operation.producer
            written = list(batches(operation.records, operation.wall_ms, producer))
            require_room(self.led, [batch for batch, _ in written])
            for batch, records in written:
                self.last_written = self.led.append_own(batch) + len(records) - 1
                for record in records:
                    if producer is None:
                        self.loaded.replay(record)
                    else:
                        self.loaded.replay_pending(producer[0], record)
        except (NotLeader, OwnBatchRefused, StorageError) as fault:
            return append_refusal(self.led, fault)
        return ErrorCode.NONE

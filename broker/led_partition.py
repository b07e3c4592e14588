"""A partition of an internal topic as its coordinator uses it, and who is told of leadership."""

from typing import Final, Protocol

CONSUMER_OFFSETS: Final = "__consumer_offsets"
TRANSACTION_STATE: Final = "__transaction_state"


class NotLeader(RuntimeError):
    """This broker does not lead the partition, or stopped leading it while somebody waited."""


class LedPartition(Protocol):
    """A partition that this broker leads, as a coordinator uses it.

    Offsets: `log_start_offset` is the first record still there, `log_end_offset` the next one to be
    written, `high_watermark` the end of what every in-sync replica holds. The log takes no batch of
    more than `largest_batch_bytes`.
    """

    @property
    def topic(self) -> str: ...
    @property
    def index(self) -> int: ...
    @property
    def leader_epoch(self) -> int: ...
    @property
    def log_start_offset(self) -> int: ...
    @property
    def log_end_offset(self) -> int: ...
    @property
    def high_watermark(self) -> int: ...
    @property
    def largest_batch_bytes(self) -> int: ...

    def append_own(self, batch: bytes | bytearray) -> int:
        """Append one batch built by this broker, offsets assigned here; return its first offset.

        Without an await, so that replaying the batch's records right after is atomic with it.
        Raises NotLeader, `broker.log.results.StorageError` for the disk's fault, and
        `broker.replication.partition.OwnBatchRefused` for a batch that the log does not take.
        """

    def read(self, offset: int, max_bytes: int) -> bytes | memoryview:
        """Return whole batches from the one that holds `offset` on, at least one if there is any.

        May end in an incomplete batch (`wire.record_batch.iterate_batches` stops there). Empty at
        the log's end. Reads up to the log's end, not only to the high watermark: a coordinator
        replays what it leads.
        """

    async def wait_committed(self, offset: int) -> None:
        """Wait until the high watermark is beyond `offset`, that is: the record there is safe.

        The caller owns the timeout. Raises NotLeader when leadership is lost meanwhile, and
        StorageError when the disk fails.
        """


class LeadershipListener(Protocol):
    """Told about the partitions of one internal topic; must not block (start a task instead)."""

    def on_leader(self, partition: LedPartition) -> None:
        """Note that this broker leads `partition` from now on (also: again, in a new epoch)."""

    def on_resigned(self, topic: str, index: int) -> None:
        """Note that this broker no longer leads that partition: forget what it held."""

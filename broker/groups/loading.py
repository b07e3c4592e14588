"""Reading one partition of `__consumer_offsets` back into a shard."""

import logging
from typing import Final

import trio

from broker.fairness import Turns
from broker.groups.records import LatestRecords, UnreadableRecord
from broker.groups.settings import GroupSettings
from broker.groups.shard import Shard
from broker.groups.write_operation import Topics
from broker.led_partition import LedPartition
from wire.record_batch import iterate_batches

READ_BYTES: Final = 64 * 1024
"""Small enough that other tasks of the broker run often while a large log is read: some hundred
commits, which take 8 ms."""

_log = logging.getLogger(__name__)


async def load(partition: LedPartition, settings: GroupSettings, topics: Topics) -> Shard:
    """Return the shard as the log describes it; sessions do not run yet.

    A record that cannot be read, or cannot be true, is named in the log and left out. Raises
    StorageError, and CorruptBatch for a log whose batches are damaged.
    """
    latest = LatestRecords()
    offset = partition.log_start_offset
    while offset < partition.log_end_offset:
        following = offset
        for header, batch in iterate_batches(partition.read(offset, READ_BYTES)):
            latest.add(header, batch)
            following = header.next_offset
        if following == offset:
            break
        offset = following
        await trio.lowlevel.checkpoint()
    shard, turns = Shard(settings, topics), Turns()
    for record in latest.decoded():
        if isinstance(record, UnreadableRecord):
            _leave_out(partition, record)
        else:
            shard.replay(record)
        await turns.pass_on()
    for pending in latest.pending():
        if isinstance(pending, UnreadableRecord):
            _leave_out(partition, pending)
        else:
            shard.replay_pending(*pending)
        await turns.pass_on()
    return shard


def _leave_out(partition: LedPartition, record: UnreadableRecord) -> None:
    _log.error(
        "%s-%d offset %d cannot be read and is left out: %s",
        partition.topic,
        partition.index,
        record.offset,
        record.reason,
    )

"""Reading one partition of `__transaction_state` back."""

import logging
from typing import Final

import trio

from broker.fairness import Turns
from broker.led_partition import LedPartition
from broker.transactions.shard import Transactions
from wire.primitives import MalformedMessage
from wire.record_batch import iterate_batches, iterate_records
from wire.transaction_state import UnknownKey, decode_key, decode_value

READ_BYTES: Final = 64 * 1024
"""Small enough that other tasks of the broker run often while a large log is read."""

_LOG = logging.getLogger(__name__)


async def load(partition: LedPartition) -> Transactions:
    """Return the transactions as the log describes them.

    A record that cannot be read is named in the log and left out. Raises StorageError, and
    CorruptBatch for a log whose batches are damaged.
    """
    latest: dict[bytes, tuple[int, bytes]] = {}
    offset = partition.log_start_offset
    while offset < partition.log_end_offset:
        following = offset
        for header, batch in iterate_batches(partition.read(offset, READ_BYTES)):
            following = header.next_offset
            for record in () if header.is_control else iterate_records(batch):
                if record.key is None:
                    continue
                if record.value is None:
                    latest.pop(record.key, None)
                else:
                    latest[record.key] = (record.offset, record.value)
        if following == offset:
            break
        offset = following
        await trio.lowlevel.checkpoint()
    transactions, turns = Transactions(), Turns()
    for key, (at, value) in latest.items():
        try:
            transactional_id = decode_key(key)
            if not isinstance(transactional_id, UnknownKey):
                transactions.replay((transactional_id, decode_value(value)))
        except MalformedMessage as fault:
            where = f"{partition.topic}-{partition.index} offset {at}"
            _LOG.error("%s cannot be read and is left out: %s", where, fault)
        await turns.pass_on()
    return transactions

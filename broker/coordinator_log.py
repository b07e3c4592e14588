"""The answers of coordinators, of groups and transactions, for the log that holds their state."""

import logging
from collections.abc import Sequence
from typing import TypeAlias

import trio

from broker.led_partition import LedPartition, NotLeader
from broker.log.results import StorageError
from broker.replication.partition import OwnBatchRefused
from wire.errors import ErrorCode

_LOG = logging.getLogger(__name__)

AppendFault: TypeAlias = NotLeader | OwnBatchRefused | StorageError


def require_room(led: LedPartition, batches: Sequence[bytes]) -> None:
    """Raise OwnBatchRefused if the log would not take one of several: then none is appended.

    What a coordinator has decided once is replayed whole, or not at all. Of a single one the log
    itself says so.
    """
    largest = max(map(len, batches), default=0)
    if len(batches) > 1 and largest > led.largest_batch_bytes:
        raise OwnBatchRefused(
            f"a batch of {largest} bytes is larger than max.message.bytes"
            f" ({led.largest_batch_bytes})",
            ErrorCode.MESSAGE_TOO_LARGE,
        )


def append_refusal(led: LedPartition, fault: AppendFault) -> ErrorCode:
    """Return the answer to whoever asked for what could not be appended.

    The state is still what the log says; clients ask again. NOT_COORDINATOR without leadership,
    COORDINATOR_NOT_AVAILABLE when the disk fails, UNKNOWN_SERVER_ERROR for records that the log
    does not take.
    """
    if isinstance(fault, NotLeader):
        return ErrorCode.NOT_COORDINATOR
    if isinstance(fault, OwnBatchRefused):
        _LOG.error("%s-%d refused its coordinator's records: %s", led.topic, led.index, fault)
        return ErrorCode.UNKNOWN_SERVER_ERROR
    _LOG.error("%s-%d cannot be written: %s", led.topic, led.index, fault)
    return ErrorCode.COORDINATOR_NOT_AVAILABLE


async def wait_safe(led: LedPartition, offset: int, timeout_ms: int) -> ErrorCode:
    """Wait until the record at `offset` would survive a failover.

    NOT_COORDINATOR when leadership ends first, COORDINATOR_NOT_AVAILABLE after `timeout_ms` or when
    the disk fails.
    """
    if offset < led.high_watermark:
        return ErrorCode.NONE
    try:
        with trio.fail_after(timeout_ms / 1000):
            await led.wait_committed(offset)
    except NotLeader:
        return ErrorCode.NOT_COORDINATOR
    except (trio.TooSlowError, StorageError):
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return ErrorCode.NONE

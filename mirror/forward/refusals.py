"""Refused batches: the state in which a partition stops, by error code, and what is told of it.

By any other code the partition goes on. Pure.
"""

from collections.abc import Sequence
from typing import Final

from mirror.state.partition_state import PartitionState
from wire.errors import ErrorCode
from wire.messages.produce import BatchIndexAndErrorMessage

STOPPING: Final[dict[ErrorCode, PartitionState]] = {
    ErrorCode.MESSAGE_TOO_LARGE: PartitionState.RECORD_TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE: PartitionState.RECORD_TOO_LARGE,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: PartitionState.NOT_AUTHORISED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: PartitionState.NOT_AUTHORISED,
    ErrorCode.INVALID_RECORD: PartitionState.TARGET_REFUSED,
    ErrorCode.INVALID_TIMESTAMP: PartitionState.TARGET_REFUSED,
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT: PartitionState.TARGET_REFUSED,
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE: PartitionState.TARGET_REFUSED,
    ErrorCode.INVALID_PRODUCER_EPOCH: PartitionState.TARGET_DIVERGED,
}
TAKEN_APART: Final = frozenset({PartitionState.RECORD_TOO_LARGE, PartitionState.TARGET_REFUSED})
"""What is refused so is sent again as the batches that it was joined of."""

NAMED: Final = 3
"""Records that are named; the others are counted. A broker may name a hundred."""
MESSAGE_LENGTH: Final = 200


def describe_records(
    errors: Sequence[BatchIndexAndErrorMessage], record_count: int, begin: int | None
) -> str:
    """Return which records a batch is refused for, as the broker says (KIP-467).

    `begin` is the source offset of its first record, behind which the others follow without a hole;
    None where that is not so. What names no record of the batch is left out; the text is empty
    where nothing is left.
    """
    own = [one for one in errors if 0 <= one.batch_index < record_count]
    named = [_record(one, begin) for one in own[:NAMED]]
    more = f"; and {len(own) - NAMED} records more" if len(own) > NAMED else ""
    return "; ".join(named) + more


def _record(error: BatchIndexAndErrorMessage, begin: int | None) -> str:
    where = f"record {error.batch_index} of the batch"
    if begin is not None:
        where = f"source offset {begin + error.batch_index}"
    message = error.batch_index_error_message
    return f"{where}: {message[:MESSAGE_LENGTH]}" if message else where

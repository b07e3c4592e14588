"""The states in which a partition stops whose batch the target refuses, by error code.

By any other code the partition goes on.
"""

from typing import Final

from mirror.state.partition_state import PartitionState
from wire.errors import ErrorCode

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

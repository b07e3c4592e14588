"""WriteTxnMarkers, key 27, v1: a transaction coordinator has the ends of transactions written.

v1: flexible
"""

from typing import ClassVar

from wire.schema import boolean, int16, int32, int64, message, string


@message
class WritableTxnMarkerPartitionResult:
    partition_index: int32
    error_code: int16


@message
class WritableTxnMarkerTopicResult:
    name: string
    partitions: tuple[WritableTxnMarkerPartitionResult, ...]


@message
class WritableTxnMarkerResult:
    producer_id: int64
    topics: tuple[WritableTxnMarkerTopicResult, ...]


@message
class WriteTxnMarkersResponse:
    """One error code for each marker and partition."""

    API_KEY: ClassVar[int] = 27
    VERSIONS: ClassVar[range] = range(1, 2)
    FLEXIBLE_SINCE: ClassVar[int] = 1

    markers: tuple[WritableTxnMarkerResult, ...]


@message
class WritableTxnMarkerTopic:
    name: string
    partition_indexes: tuple[int32, ...]


@message
class WritableTxnMarker:
    """`transaction_result` is true for a commit."""

    producer_id: int64
    producer_epoch: int16
    transaction_result: boolean
    topics: tuple[WritableTxnMarkerTopic, ...]
    coordinator_epoch: int32


@message
class WriteTxnMarkersRequest:
    """Ends of transactions, each for partitions that the asked broker leads."""

    API_KEY: ClassVar[int] = 27
    VERSIONS: ClassVar[range] = range(1, 2)
    FLEXIBLE_SINCE: ClassVar[int] = 1
    RESPONSE: ClassVar[type[WriteTxnMarkersResponse]] = WriteTxnMarkersResponse

    markers: tuple[WritableTxnMarker, ...]

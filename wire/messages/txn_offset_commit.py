"""TxnOffsetCommit, key 28, v0-5: store positions of a group as part of a transaction.

v1: throttled responses are answered before the pause (KIP-219)
v2: request committed_leader_epoch (KIP-320)
v3: request generation_id, member_id, group_instance_id; flexible (KIP-447)
v4: TRANSACTION_ABORTABLE may be answered (KIP-890)
v5: the group becomes part of the transaction without AddOffsetsToTxn (KIP-890)
"""

from typing import ClassVar

from wire.schema import int16, int32, int64, message, nullable_string, since, string


@message
class TxnOffsetCommitResponsePartition:
    partition_index: int32
    error_code: int16


@message
class TxnOffsetCommitResponseTopic:
    name: string
    partitions: tuple[TxnOffsetCommitResponsePartition, ...]


@message
class TxnOffsetCommitResponse:
    """One error code for each partition."""

    API_KEY: ClassVar[int] = 28
    VERSIONS: ClassVar[range] = range(6)
    FLEXIBLE_SINCE: ClassVar[int] = 3

    throttle_time_ms: int32 = 0
    topics: tuple[TxnOffsetCommitResponseTopic, ...]


@message
class TxnOffsetCommitRequestPartition:
    partition_index: int32
    committed_offset: int64
    committed_leader_epoch: int32 = since(2, default=-1, ignorable=True)
    committed_metadata: nullable_string = None


@message
class TxnOffsetCommitRequestTopic:
    name: string
    partitions: tuple[TxnOffsetCommitRequestPartition, ...]


@message
class TxnOffsetCommitRequest:
    """Positions that count once the transaction commits."""

    API_KEY: ClassVar[int] = 28
    VERSIONS: ClassVar[range] = range(6)
    FLEXIBLE_SINCE: ClassVar[int] = 3
    RESPONSE: ClassVar[type[TxnOffsetCommitResponse]] = TxnOffsetCommitResponse

    transactional_id: string
    group_id: string
    producer_id: int64
    producer_epoch: int16
    generation_id: int32 = since(3, default=-1)
    member_id: string = since(3, default="")
    group_instance_id: nullable_string = since(3, default=None)
    topics: tuple[TxnOffsetCommitRequestTopic, ...]

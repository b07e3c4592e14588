"""Produce, key 0, v0-12: append record batches.

v1: response throttle_time_ms
v2: response log_append_time_ms; records with timestamps (magic 1)
v3: request transactional_id; record batches (magic 2) only from here on
v4: KAFKA_STORAGE_ERROR may be answered
v5: response log_start_offset (KIP-207)
v6: throttled responses are answered before the pause (KIP-219)
v7: zstd allowed (KIP-110)
v8: response record_errors, error_message (KIP-467)
v9: flexible
v10: response current_leader, node_endpoints (KIP-951)
v11: TRANSACTION_ABORTABLE may be answered (KIP-890)
v12: partitions become part of the transaction without AddPartitionsToTxn (KIP-890)
"""

from typing import ClassVar

from wire.schema import (
    int16,
    int32,
    int64,
    message,
    nullable_string,
    records_,
    since,
    string,
    tagged,
)


@message
class BatchIndexAndErrorMessage:
    batch_index: int32
    batch_index_error_message: nullable_string = None


@message
class ProduceLeaderIdAndEpoch:
    leader_id: int32 = -1
    leader_epoch: int32 = -1


@message
class PartitionProduceResponse:
    index: int32
    error_code: int16
    base_offset: int64
    log_append_time_ms: int64 = since(2, default=-1, ignorable=True)
    log_start_offset: int64 = since(5, default=-1, ignorable=True)
    record_errors: tuple[BatchIndexAndErrorMessage, ...] = since(8, default=(), ignorable=True)
    error_message: nullable_string = since(8, default=None, ignorable=True)
    current_leader: ProduceLeaderIdAndEpoch = tagged(0, since=10, default=ProduceLeaderIdAndEpoch())


@message
class TopicProduceResponse:
    name: string
    partition_responses: tuple[PartitionProduceResponse, ...]


@message
class ProduceNodeEndpoint:
    node_id: int32
    host: string
    port: int32
    rack: nullable_string = None


@message
class ProduceResponse:
    """Where each partition's batch went."""

    API_KEY: ClassVar[int] = 0
    VERSIONS: ClassVar[range] = range(13)
    FLEXIBLE_SINCE: ClassVar[int] = 9

    responses: tuple[TopicProduceResponse, ...]
    throttle_time_ms: int32 = since(1, default=0, ignorable=True)
    node_endpoints: tuple[ProduceNodeEndpoint, ...] = tagged(0, since=10, default=())


@message
class PartitionProduceData:
    index: int32
    records: records_


@message
class TopicProduceData:
    name: string
    partition_data: tuple[PartitionProduceData, ...]


@message
class ProduceRequest:
    """Batches for some partitions, one each; with `acks` 0 nothing is answered."""

    API_KEY: ClassVar[int] = 0
    VERSIONS: ClassVar[range] = range(13)
    FLEXIBLE_SINCE: ClassVar[int] = 9
    RESPONSE: ClassVar[type[ProduceResponse]] = ProduceResponse

    transactional_id: nullable_string = since(3, default=None)
    acks: int16
    timeout_ms: int32
    topic_data: tuple[TopicProduceData, ...]

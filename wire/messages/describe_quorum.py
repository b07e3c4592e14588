"""DescribeQuorum, key 55, v0-1: who votes on a cluster's metadata, and how far each has come.

v1: response last_fetch_timestamp, last_caught_up_timestamp (KIP-836)

Version 2 adds names that nothing here asks for. The leader says its present time of itself.
"""

from typing import ClassVar

from wire.schema import int16, int32, int64, message, since, string


@message
class QuorumReplica:
    """Times are the leader's, in milliseconds; -1 is unknown."""

    replica_id: int32
    log_end_offset: int64
    last_fetch_timestamp: int64 = since(1, default=-1, ignorable=True)
    last_caught_up_timestamp: int64 = since(1, default=-1, ignorable=True)


@message
class QuorumPartition:
    partition_index: int32
    error_code: int16
    leader_id: int32
    leader_epoch: int32
    high_watermark: int64
    current_voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]


@message
class QuorumTopic:
    topic_name: string
    partitions: tuple[QuorumPartition, ...]


@message
class DescribeQuorumResponse:
    """The quorum of each partition asked for; there is one."""

    API_KEY: ClassVar[int] = 55
    VERSIONS: ClassVar[range] = range(2)
    FLEXIBLE_SINCE: ClassVar[int] = 0

    error_code: int16
    topics: tuple[QuorumTopic, ...]


@message
class DescribeQuorumRequestPartition:
    partition_index: int32


@message
class DescribeQuorumRequestTopic:
    topic_name: string
    partitions: tuple[DescribeQuorumRequestPartition, ...]


@message
class DescribeQuorumRequest:
    """A question for the quorum of `__cluster_metadata`, partition 0 (KIP-595)."""

    API_KEY: ClassVar[int] = 55
    VERSIONS: ClassVar[range] = range(2)
    FLEXIBLE_SINCE: ClassVar[int] = 0
    RESPONSE: ClassVar[type[DescribeQuorumResponse]] = DescribeQuorumResponse

    topics: tuple[DescribeQuorumRequestTopic, ...]

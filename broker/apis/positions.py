"""The positions that OffsetCommit and TxnOffsetCommit name, as far as there are such partitions."""

from typing import TypeAlias

from broker.context import Call
from broker.groups.offsets import OffsetToCommit
from wire.errors import ErrorCode
from wire.messages.offset_commit import OffsetCommitRequest
from wire.messages.txn_offset_commit import TxnOffsetCommitRequest
from wire.topic_partition import TopicPartition

Sorted: TypeAlias = tuple[tuple[OffsetToCommit, ...], dict[TopicPartition, ErrorCode]]


def sorted_out(request: OffsetCommitRequest | TxnOffsetCommitRequest, call: Call) -> Sorted:
    """Return what can be committed, and the errors of the rest.

    A partition that is named again and again counts by the last.
    """
    positions: dict[TopicPartition, OffsetToCommit] = {}
    missing: dict[TopicPartition, ErrorCode] = {}
    for topic in request.topics:
        known = call.node.metadata.topic(topic.name)
        for partition in topic.partitions:
            name = TopicPartition(topic.name, partition.partition_index)
            if known is None or partition.partition_index not in known.partitions:
                missing[name] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                continue
            positions[name] = OffsetToCommit(
                topic=topic.name,
                partition=partition.partition_index,
                offset=partition.committed_offset,
                leader_epoch=partition.committed_leader_epoch,
                metadata=partition.committed_metadata,
            )
    return tuple(positions.values()), missing

"""Small calls composed of requests, as several programs need them. Import from here."""

from wire.hot.group_offsets import GroupOffset
from wire.net.group_operations import (
    GroupDescription,
    commit_group_offsets,
    describe_groups,
    fetch_group_offsets,
    list_groups,
)
from wire.net.many_groups import commit_offsets_of, fetch_offsets_of
from wire.net.partition_operations import (
    EARLIEST,
    LATEST,
    READ_COMMITTED,
    PartitionReader,
    append,
    list_offsets,
    log_ends,
    read_partition,
)
from wire.net.producer_ids import new_producer_id
from wire.net.retries import GROUP_HAS_MEMBERS
from wire.topic_partition import TopicPartition

__all__ = [
    "EARLIEST",
    "GROUP_HAS_MEMBERS",
    "LATEST",
    "READ_COMMITTED",
    "GroupDescription",
    "GroupOffset",
    "PartitionReader",
    "TopicPartition",
    "append",
    "commit_group_offsets",
    "commit_offsets_of",
    "describe_groups",
    "fetch_group_offsets",
    "fetch_offsets_of",
    "list_groups",
    "list_offsets",
    "log_ends",
    "new_producer_id",
    "read_partition",
]

"""Requests that are odd, wrong or at a limit, by name: two brokers should answer them alike."""

from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

from wire.compression import Compression
from wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from wire.messages.delete_groups import DeleteGroupsRequest
from wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from wire.messages.describe_groups import DescribeGroupsRequest
from wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from wire.messages.find_coordinator import FindCoordinatorRequest
from wire.messages.heartbeat import HeartbeatRequest
from wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from wire.messages.sync_group import SyncGroupRequest
from wire.record_batch import Record, build_batch

TOPIC: Final = "odd"
"""Two partitions; ten records in partition 0, one batch; nothing in partition 1."""
GROUP: Final = "odd-group"
"""Has a position in partition 0 and no members."""
NO_SUCH_ID: Final = UUID(int=77)
WEEK_MS: Final = 7 * 24 * 3_600 * 1_000


def batch(count: int = 1, *, at_ms: int = 1_000, **fields: Any) -> bytes:
    """Return a batch for partition 1."""
    records = [
        Record(offset=n, timestamp_ms=at_ms, key=b"k", value=b"v" * 20) for n in range(count)
    ]
    return build_batch(records, **fields)


def damaged(position: int, **fields: Any) -> bytes:
    """Return a batch with one byte turned over."""
    data = bytearray(batch(3, **fields))
    data[position] ^= 0x55
    return bytes(data)


def produce(records: bytes, *, topic: str = TOPIC, partition: int = 1, acks: int = -1) -> Any:
    data = (PartitionProduceData(index=partition, records=records),)
    return ProduceRequest(
        acks=acks,
        timeout_ms=5_000,
        topic_data=(TopicProduceData(name=topic, partition_data=data),),
    )


def fetch(topic_id: UUID, offset: int, *, partition: int = 0, **fields: Any) -> Any:
    limits = {"partition_max_bytes": 1 << 20} | fields
    place = FetchPartition(partition=partition, fetch_offset=offset, **limits)
    topic = FetchTopic(topic_id=topic_id, partitions=(place,))
    return FetchRequest(max_wait_ms=100, min_bytes=1, topics=(topic,))


def session(topic_id: UUID, session_id: int, epoch: int) -> Any:
    place = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topic = FetchTopic(topic_id=topic_id, partitions=(place,))
    return FetchRequest(
        max_wait_ms=100, min_bytes=1, topics=(topic,), session_id=session_id, session_epoch=epoch
    )


def list_offsets(timestamp: int, *, partition: int = 0, **fields: Any) -> Any:
    place = ListOffsetsPartition(partition_index=partition, timestamp=timestamp, **fields)
    return ListOffsetsRequest(
        replica_id=-1, topics=(ListOffsetsTopic(name=TOPIC, partitions=(place,)),)
    )


def create(
    name: str, *, partitions: int = 1, copies: int = 1, validate: bool = True, **configs: str
) -> Any:
    settings = tuple(
        CreatableTopicConfig(name=key.replace("_", "."), value=value)
        for key, value in configs.items()
    )
    topic = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=copies,
        assignments=(),
        configs=settings,
    )
    return CreateTopicsRequest(topics=(topic,), timeout_ms=5_000, validate_only=validate)


def commit(group: str, *, topic: str = TOPIC, metadata: str = "", **fields: Any) -> Any:
    place = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=3, committed_metadata=metadata
    )
    topics = (OffsetCommitRequestTopic(name=topic, partitions=(place,)),)
    return OffsetCommitRequest(group_id=group, topics=topics, **fields)


def positions(group: str, topics: tuple[OffsetFetchRequestTopics, ...] | None) -> Any:
    return OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=group, topics=topics),))


def join(group: str, *, session_ms: int = 10_000, protocols: int = 1, member: str = "") -> Any:
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=10_000,
        member_id=member,
        protocol_type="consumer",
        protocols=tuple(
            JoinGroupRequestProtocol(name=f"p{n}", metadata=b"") for n in range(protocols)
        ),
    )


def configs(kind: int, name: str) -> Any:
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=("cleanup.policy",)
    )
    return DescribeConfigsRequest(resources=(resource,))


def alter(name: str, value: str | None, *, operation: int = 0, topic: str = TOPIC) -> Any:
    setting = IncrementalAlterConfigsAlterableConfig(
        name=name, config_operation=operation, value=value
    )
    resource = IncrementalAlterConfigsResource(
        resource_type=2, resource_name=topic, configs=(setting,)
    )
    return IncrementalAlterConfigsRequest(resources=(resource,), validate_only=True)


def delete_records(offset: int, *, topic: str = TOPIC) -> Any:
    place = DeleteRecordsPartition(partition_index=0, offset=offset)
    return DeleteRecordsRequest(
        topics=(DeleteRecordsTopic(name=topic, partitions=(place,)),), timeout_ms=5_000
    )


def epoch_end(epoch: int, *, current: int = -1, topic: str = TOPIC) -> Any:
    place = OffsetForLeaderPartition(partition=0, current_leader_epoch=current, leader_epoch=epoch)
    return OffsetForLeaderEpochRequest(
        topics=(OffsetForLeaderTopic(topic=topic, partitions=(place,)),)
    )


def grow(topic: str, count: int) -> Any:
    wanted = CreatePartitionsTopic(name=topic, count=count, assignments=None)
    return CreatePartitionsRequest(topics=(wanted,), timeout_ms=5_000, validate_only=True)


def delete_topic(**fields: Any) -> Any:
    given = {"topic_id": UUID(int=0)} | fields
    return DeleteTopicsRequest(topics=(DeleteTopicState(**given),), timeout_ms=5_000)


def metadata(**fields: Any) -> Any:
    return MetadataRequest(
        topics=(MetadataRequestTopic(**fields),), allow_auto_topic_creation=False
    )


def leave(group: str) -> Any:
    return LeaveGroupRequest(group_id=group, members=(MemberIdentity(member_id="nobody"),))


ODD_REQUESTS: Final[dict[str, Callable[[UUID], Any]]] = {
    "produce: a damaged checksum": lambda _: produce(damaged(17)),
    "produce: a damaged record": lambda _: produce(damaged(70)),
    "produce: an unknown topic": lambda _: produce(batch(), topic="nowhere"),
    "produce: an unknown partition": lambda _: produce(batch(), partition=9),
    "produce: a negative partition": lambda _: produce(batch(), partition=-1),
    "produce: acks 2": lambda _: produce(batch(), acks=2),
    "produce: two batches at once": lambda _: produce(batch() + batch()),
    "produce: half a batch": lambda _: produce(batch(5)[:-9]),
    "produce: nothing": lambda _: produce(b""),
    "produce: an unknown magic": lambda _: produce(damaged(16)),
    "produce: too large": lambda _: produce(batch(60_000)),
    "produce: a control batch": lambda _: produce(batch(is_control=True)),
    "produce: a hole at the end": lambda _: produce(batch(3, last_offset_delta=7)),
    "produce: a hole, compressed": lambda _: produce(
        batch(3, last_offset_delta=7, compression=Compression.LZ4)
    ),
    "produce: a producer id without sequence": lambda _: produce(
        batch(producer_id=56, producer_epoch=0)
    ),
    "produce: a first sequence above 0": lambda _: produce(
        batch(producer_id=57, producer_epoch=0, base_sequence=10)
    ),
    "produce: the same sequence again": lambda _: produce(
        batch(producer_id=57, producer_epoch=0, base_sequence=10)
    ),
    "produce: an older epoch": lambda _: produce(
        batch(producer_id=57, producer_epoch=-1, base_sequence=11)
    ),
    "produce: a newer epoch not from 0": lambda _: produce(
        batch(producer_id=57, producer_epoch=1, base_sequence=11)
    ),
    "produce: a sequence that wraps": lambda _: produce(
        batch(3, producer_id=58, producer_epoch=0, base_sequence=2**31 - 2)
    ),
    "produce: after the wrap": lambda _: produce(
        batch(producer_id=58, producer_epoch=0, base_sequence=1)
    ),
    "fetch: behind the end": lambda topic_id: fetch(topic_id, 11),
    "fetch: at the end": lambda topic_id: fetch(topic_id, 10),
    "fetch: before the start": lambda topic_id: fetch(topic_id, -1),
    "fetch: in the middle of a batch, one byte": lambda topic_id: fetch(
        topic_id, 5, partition_max_bytes=1
    ),
    "fetch: an unknown topic id": lambda _: fetch(NO_SUCH_ID, 0),
    "fetch: an unknown partition": lambda topic_id: fetch(topic_id, 0, partition=9),
    "fetch: a leader epoch to come": lambda topic_id: fetch(topic_id, 0, current_leader_epoch=99),
    "fetch: a diverging epoch": lambda topic_id: fetch(topic_id, 5, last_fetched_epoch=99),
    "fetch: an unknown session": lambda topic_id: session(topic_id, 12345, 1),
    "fetch: a new session": lambda topic_id: session(topic_id, 0, 0),
    "fetch: an end of an unknown session": lambda topic_id: session(topic_id, 12345, -1),
    "list offsets: the largest timestamp": lambda _: list_offsets(-3),
    "list offsets: the local start": lambda _: list_offsets(-4),
    "list offsets: the tiered end": lambda _: list_offsets(-5),
    "list offsets: an unknown meaning": lambda _: list_offsets(-9),
    "list offsets: later than all": lambda _: list_offsets(2**60),
    "list offsets: the largest timestamp of nothing": lambda _: list_offsets(-3, partition=1),
    "list offsets: an unknown partition": lambda _: list_offsets(-1, partition=9),
    "list offsets: a leader epoch to come": lambda _: list_offsets(-1, current_leader_epoch=99),
    "create: no name": lambda _: create(""),
    "create: dots only": lambda _: create(".."),
    "create: a space": lambda _: create("a b"),
    "create: 250 characters": lambda _: create("x" * 250),
    "create: again": lambda _: create(TOPIC),
    "create: no partitions": lambda _: create("new", partitions=0),
    "create: the default partitions and copies": lambda _: create("new", partitions=-1, copies=-1),
    "create: too many copies": lambda _: create("new", copies=5),
    "create: no copies": lambda _: create("new", copies=0),
    "create: an unknown setting": lambda _: create("new", no_such="1"),
    "create: a wrong number": lambda _: create("new", retention_ms="soon"),
    "create: a number below the limit": lambda _: create("new", segment_bytes="1"),
    "create: an unknown policy": lambda _: create("new", cleanup_policy="burn"),
    "create: valid but only validated": lambda _: create("new", cleanup_policy="compact"),
    "grow: to fewer": lambda _: grow(TOPIC, 1),
    "grow: to as many": lambda _: grow(TOPIC, 2),
    "grow: an unknown topic": lambda _: grow("nowhere", 5),
    "delete topic: an unknown name": lambda _: delete_topic(name="nowhere"),
    "delete topic: an unknown id": lambda _: delete_topic(topic_id=NO_SUCH_ID),
    "delete records: behind the end": lambda _: delete_records(99),
    "delete records: before the start": lambda _: delete_records(-5),
    "delete records: an unknown topic": lambda _: delete_records(0, topic="nowhere"),
    "metadata: an unknown name": lambda _: metadata(name="nowhere"),
    "metadata: an unknown id": lambda _: metadata(name=None, topic_id=NO_SUCH_ID),
    "metadata: a wrong name": lambda _: metadata(name="a b"),
    "epoch end: the present epoch": lambda _: epoch_end(0),
    "epoch end: an epoch to come": lambda _: epoch_end(99),
    "epoch end: a leader epoch to come": lambda _: epoch_end(0, current=99),
    "epoch end: an unknown topic": lambda _: epoch_end(0, topic="nowhere"),
    "commit: an unknown topic": lambda _: commit(GROUP, topic="nowhere"),
    "commit: much metadata": lambda _: commit(GROUP, metadata="m" * 5_000),
    "commit: a generation without a group": lambda _: commit(
        "fresh", generation_id_or_member_epoch=5, member_id="me"
    ),
    "commit: an unknown member": lambda _: commit(
        GROUP, generation_id_or_member_epoch=1, member_id="me"
    ),
    "commit: no group": lambda _: commit(""),
    "positions: of an unknown group": lambda _: positions("nobody", None),
    "positions: all": lambda _: positions(GROUP, None),
    "positions: where there are none": lambda _: positions(
        GROUP, (OffsetFetchRequestTopics(name=TOPIC, partition_indexes=(1, 7)),)
    ),
    "positions: of no group": lambda _: positions("", None),
    "join: too short a session": lambda _: join("fresh", session_ms=1),
    "join: too long a session": lambda _: join("fresh", session_ms=10_000_000),
    "join: no protocols": lambda _: join("fresh", protocols=0),
    "join: a member id required": lambda _: join("fresh"),
    "join: an unknown member": lambda _: join("fresh", member="me"),
    "join: no group": lambda _: join(""),
    "sync: an unknown member": lambda _: SyncGroupRequest(
        group_id=GROUP, generation_id=1, member_id="me", assignments=()
    ),
    "heartbeat: an unknown group": lambda _: HeartbeatRequest(
        group_id="nobody", generation_id=1, member_id="me"
    ),
    "heartbeat: an unknown member": lambda _: HeartbeatRequest(
        group_id=GROUP, generation_id=1, member_id="me"
    ),
    "leave: an unknown group": lambda _: leave("nobody"),
    "leave: an unknown member": lambda _: leave(GROUP),
    "describe group: unknown": lambda _: DescribeGroupsRequest(groups=("nobody",)),
    "delete group: unknown": lambda _: DeleteGroupsRequest(groups_names=("nobody",)),
    "coordinator: an unknown kind of key": lambda _: FindCoordinatorRequest(
        key_type=9, coordinator_keys=("x",)
    ),
    "coordinator: no key": lambda _: FindCoordinatorRequest(coordinator_keys=("",)),
    "configs: an unknown topic": lambda _: configs(2, "nowhere"),
    "configs: an unknown broker": lambda _: configs(4, "99"),
    "configs: of an unknown kind": lambda _: configs(77, "x"),
    "alter: an unknown setting": lambda _: alter("no.such", "1"),
    "alter: a wrong value": lambda _: alter("retention.ms", "soon"),
    "alter: an unknown topic": lambda _: alter("retention.ms", "1000", topic="nowhere"),
    "alter: append to no list": lambda _: alter("retention.ms", "1", operation=2),
    "alter: append to a list": lambda _: alter("cleanup.policy", "compact", operation=2),
    "produce: transactional without a transaction": lambda _: produce(
        batch(producer_id=55, producer_epoch=0, base_sequence=0, is_transactional=True)
    ),
}

"""A request of every API that is guarded, and what its handler would answer to it."""

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from wire.errors import ErrorCode
from wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from wire.messages.alter_client_quotas import (
    AlterClientQuotasEntry,
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
)
from wire.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResponse,
)
from wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
)
from wire.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    Member,
)
from wire.messages.consumer_group_describe import DescribedGroup as DescribedConsumerGroup
from wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from wire.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest, DeleteAclsResponse
from wire.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    DeleteRecordsTopicResult,
)
from wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from wire.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from wire.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from wire.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeProducersTopicRequest,
    DescribeProducersTopicResponse,
)
from wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseTopic,
    TopicRequest,
)
from wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    DescribeTransactionsState,
    DescribeTransactionsTopicData,
)
from wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    ElectLeadersTopicPartitions,
)
from wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    IncrementalAlterConfigsResponse,
)
from wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from wire.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    ListTransactionsState,
)
from wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponseTopic,
)
from wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponseTopic,
)
from wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
    OffsetForLeaderTopicResult,
)
from wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponseTopic,
)
from wire.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from wire.primitives import ZERO_UUID

TOPIC_FAILED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
GROUP_FAILED = ErrorCode.GROUP_AUTHORIZATION_FAILED
CLUSTER_FAILED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
ID_FAILED = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A request, its handler, and the error codes that somebody without any right gets."""

    request: Any
    handler: Callable[[Any], Any]
    refused: frozenset[ErrorCode]
    version: int

    def __str__(self) -> str:
        return f"{type(self.request).__name__}-v{self.version}"


def sample(
    request: Any, handler: Callable[[Any], Any], *refused: ErrorCode, version: int | None = None
) -> Sample:
    newest = request.VERSIONS.stop - 1
    return Sample(
        request=request,
        handler=handler,
        refused=frozenset(refused),
        version=newest if version is None else version,
    )


def codes(answer: Any) -> frozenset[int]:
    """Return all error codes of an answer but NONE, wherever they stand."""
    if isinstance(answer, tuple):
        return frozenset().union(*map(codes, answer))
    if not is_dataclass(answer) or isinstance(answer, type):
        return frozenset()
    found: frozenset[int] = frozenset()
    for field in fields(answer):
        value = getattr(answer, field.name)
        is_code = field.name.endswith("error_code") and value
        found |= {value} if is_code else codes(value)
    return found


def _gone(topic: str | None, topic_id: Any = ZERO_UUID) -> DeletableTopicResult:
    return DeletableTopicResult(name=topic, topic_id=topic_id, error_code=0)


def _state(transactional_id: str) -> DescribeTransactionsState:
    return DescribeTransactionsState(
        error_code=0,
        transactional_id=transactional_id,
        transaction_state="Empty",
        transaction_timeout_ms=1,
        transaction_start_time_ms=1,
        producer_id=1,
        producer_epoch=1,
        topics=(DescribeTransactionsTopicData(topic="t", partitions=(0,)),),
    )


def _group(group_id: str) -> DescribedGroup:
    return DescribedGroup(
        error_code=0,
        group_id=group_id,
        group_state="Empty",
        protocol_type="",
        protocol_data="",
        members=(),
    )


def _consumer_group(group_id: str) -> DescribedConsumerGroup:
    nothing = Assignment(topic_partitions=())
    member = Member(
        member_id="m",
        member_epoch=1,
        client_id="c",
        client_host="/h",
        subscribed_topic_names=("t",),
        assignment=nothing,
        target_assignment=nothing,
    )
    return DescribedConsumerGroup(
        error_code=0,
        group_id=group_id,
        group_state="Stable",
        group_epoch=1,
        assignment_epoch=1,
        assignor_name="uniform",
        members=(member,),
    )


RECORDS = (
    sample(
        ListOffsetsRequest(
            replica_id=-1,
            topics=(
                ListOffsetsTopic(
                    name="t", partitions=(ListOffsetsPartition(partition_index=0, timestamp=-1),)
                ),
            ),
        ),
        lambda asked: ListOffsetsResponse(
            topics=tuple(ListOffsetsTopicResponse(name=t.name, partitions=()) for t in asked.topics)
        ),
        TOPIC_FAILED,
    ),
    sample(
        DeleteRecordsRequest(
            topics=(
                DeleteRecordsTopic(
                    name="t", partitions=(DeleteRecordsPartition(partition_index=0, offset=1),)
                ),
            ),
            timeout_ms=1,
        ),
        lambda asked: DeleteRecordsResponse(
            topics=tuple(DeleteRecordsTopicResult(name=t.name, partitions=()) for t in asked.topics)
        ),
        TOPIC_FAILED,
    ),
    sample(
        OffsetForLeaderEpochRequest(
            topics=(
                OffsetForLeaderTopic(
                    topic="t",
                    partitions=(OffsetForLeaderPartition(partition=0, leader_epoch=1),),
                ),
            )
        ),
        lambda asked: OffsetForLeaderEpochResponse(
            topics=tuple(
                OffsetForLeaderTopicResult(topic=t.topic, partitions=()) for t in asked.topics
            )
        ),
        TOPIC_FAILED,
    ),
    sample(
        DescribeTopicPartitionsRequest(topics=(TopicRequest(name="t"),)),
        lambda asked: DescribeTopicPartitionsResponse(
            topics=tuple(
                DescribeTopicPartitionsResponseTopic(error_code=0, name=t.name, partitions=())
                for t in asked.topics
            )
        ),
        TOPIC_FAILED,
    ),
    sample(
        DescribeProducersRequest(
            topics=(DescribeProducersTopicRequest(name="t", partition_indexes=(0,)),)
        ),
        lambda asked: DescribeProducersResponse(
            topics=tuple(
                DescribeProducersTopicResponse(name=t.name, partitions=()) for t in asked.topics
            )
        ),
        TOPIC_FAILED,
    ),
)
TOPICS = (
    sample(
        CreateTopicsRequest(
            topics=(
                CreatableTopic(
                    name="t", num_partitions=1, replication_factor=1, assignments=(), configs=()
                ),
            )
        ),
        lambda asked: CreateTopicsResponse(
            topics=tuple(CreatableTopicResult(name=t.name, error_code=0) for t in asked.topics)
        ),
        TOPIC_FAILED,
    ),
    sample(
        DeleteTopicsRequest(topics=(DeleteTopicState(name="t", topic_id=ZERO_UUID),), timeout_ms=1),
        lambda asked: DeleteTopicsResponse(responses=tuple(_gone(t.name) for t in asked.topics)),
        TOPIC_FAILED,
    ),
    sample(
        DeleteTopicsRequest(topic_names=("t",), timeout_ms=1),
        lambda asked: DeleteTopicsResponse(responses=tuple(map(_gone, asked.topic_names))),
        TOPIC_FAILED,
        version=5,
    ),
    sample(
        CreatePartitionsRequest(
            topics=(CreatePartitionsTopic(name="t", count=2, assignments=None),),
            timeout_ms=1,
            validate_only=False,
        ),
        lambda asked: CreatePartitionsResponse(
            results=tuple(
                CreatePartitionsTopicResult(name=t.name, error_code=0) for t in asked.topics
            )
        ),
        TOPIC_FAILED,
    ),
    sample(
        DescribeConfigsRequest(
            resources=(
                DescribeConfigsResource(resource_type=2, resource_name="t"),
                DescribeConfigsResource(resource_type=4, resource_name="0"),
            )
        ),
        lambda _: DescribeConfigsResponse(results=()),
        TOPIC_FAILED,
        CLUSTER_FAILED,
    ),
    sample(
        AlterConfigsRequest(
            resources=(
                AlterConfigsResource(resource_type=2, resource_name="t", configs=()),
                AlterConfigsResource(resource_type=4, resource_name="", configs=()),
            ),
            validate_only=False,
        ),
        lambda _: AlterConfigsResponse(responses=()),
        TOPIC_FAILED,
        CLUSTER_FAILED,
    ),
    sample(
        IncrementalAlterConfigsRequest(
            resources=(
                IncrementalAlterConfigsResource(resource_type=2, resource_name="t", configs=()),
                IncrementalAlterConfigsResource(resource_type=4, resource_name="", configs=()),
            ),
            validate_only=False,
        ),
        lambda _: IncrementalAlterConfigsResponse(responses=()),
        TOPIC_FAILED,
        CLUSTER_FAILED,
    ),
)
_COMMITTED = OffsetCommitRequestTopic(
    name="t",
    partitions=(OffsetCommitRequestPartition(partition_index=0, committed_offset=1),),
)
GROUPS = (
    sample(
        JoinGroupRequest(
            group_id="g", session_timeout_ms=1, member_id="", protocol_type="c", protocols=()
        ),
        lambda _: JoinGroupResponse(error_code=0, leader="", member_id="", members=()),
        GROUP_FAILED,
    ),
    sample(
        SyncGroupRequest(group_id="g", generation_id=1, member_id="m", assignments=()),
        lambda _: SyncGroupResponse(error_code=0, assignment=b""),
        GROUP_FAILED,
    ),
    sample(
        HeartbeatRequest(group_id="g", generation_id=1, member_id="m"),
        lambda _: HeartbeatResponse(error_code=0),
        GROUP_FAILED,
    ),
    sample(
        ConsumerGroupHeartbeatRequest(
            group_id="g", member_id="m", member_epoch=0, subscribed_topic_names=("t",)
        ),
        lambda _: ConsumerGroupHeartbeatResponse(
            error_code=0, member_epoch=1, heartbeat_interval_ms=1
        ),
        GROUP_FAILED,
    ),
    sample(
        ConsumerGroupDescribeRequest(group_ids=("g",), include_authorized_operations=True),
        lambda asked: ConsumerGroupDescribeResponse(
            groups=tuple(map(_consumer_group, asked.group_ids))
        ),
        GROUP_FAILED,
    ),
    sample(
        LeaveGroupRequest(group_id="g"), lambda _: LeaveGroupResponse(error_code=0), GROUP_FAILED
    ),
    sample(
        FindCoordinatorRequest(key_type=0, coordinator_keys=("g",)),
        lambda asked: FindCoordinatorResponse(
            coordinators=tuple(
                Coordinator(key=key, node_id=1, host="h", port=1, error_code=0)
                for key in asked.coordinator_keys
            )
        ),
        GROUP_FAILED,
    ),
    sample(
        FindCoordinatorRequest(key_type=1, coordinator_keys=("x",)),
        lambda _: FindCoordinatorResponse(),
        ID_FAILED,
    ),
    sample(
        FindCoordinatorRequest(key="g"),
        lambda _: FindCoordinatorResponse(),
        GROUP_FAILED,
        version=0,
    ),
    sample(
        DescribeGroupsRequest(groups=("g",), include_authorized_operations=True),
        lambda asked: DescribeGroupsResponse(groups=tuple(map(_group, asked.groups))),
        GROUP_FAILED,
    ),
    sample(
        ListGroupsRequest(),
        lambda _: ListGroupsResponse(
            error_code=0, groups=(ListedGroup(group_id="g", protocol_type="consumer"),)
        ),
    ),
    sample(
        DeleteGroupsRequest(groups_names=("g",)),
        lambda asked: DeleteGroupsResponse(
            results=tuple(
                DeletableGroupResult(group_id=one, error_code=0) for one in asked.groups_names
            )
        ),
        GROUP_FAILED,
    ),
    sample(
        OffsetCommitRequest(group_id="g", topics=(_COMMITTED,)),
        lambda asked: OffsetCommitResponse(
            topics=tuple(
                OffsetCommitResponseTopic(name=t.name, partitions=()) for t in asked.topics
            )
        ),
        GROUP_FAILED,
    ),
    sample(
        OffsetFetchRequest(
            groups=(
                OffsetFetchRequestGroup(
                    group_id="g",
                    topics=(OffsetFetchRequestTopics(name="t", partition_indexes=(0,)),),
                ),
            )
        ),
        lambda asked: OffsetFetchResponse(
            groups=tuple(
                OffsetFetchResponseGroup(
                    group_id=one.group_id,
                    topics=tuple(
                        OffsetFetchResponseTopics(name=t.name, partitions=())
                        for t in one.topics or ()
                    ),
                )
                for one in asked.groups
            )
        ),
        GROUP_FAILED,
    ),
    *(
        sample(
            OffsetFetchRequest(
                group_id="g",
                topics=(OffsetFetchRequestTopic(name="t", partition_indexes=(0,)),),
            ),
            lambda asked: OffsetFetchResponse(
                topics=tuple(
                    OffsetFetchResponseTopic(name=t.name, partitions=()) for t in asked.topics or ()
                )
            ),
            GROUP_FAILED,
            version=version,
        )
        for version in (1, 7)
    ),
    sample(
        OffsetDeleteRequest(
            group_id="g",
            topics=(
                OffsetDeleteRequestTopic(
                    name="t", partitions=(OffsetDeleteRequestPartition(partition_index=0),)
                ),
            ),
        ),
        lambda asked: OffsetDeleteResponse(
            error_code=0,
            topics=tuple(
                OffsetDeleteResponseTopic(name=t.name, partitions=()) for t in asked.topics
            ),
        ),
        GROUP_FAILED,
    ),
)
TRANSACTIONS = (
    sample(
        InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1),
        lambda _: InitProducerIdResponse(error_code=0, producer_epoch=0),
        ID_FAILED,
    ),
    sample(
        InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1),
        lambda _: InitProducerIdResponse(error_code=0, producer_epoch=0),
        CLUSTER_FAILED,
    ),
    sample(
        AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="x",
            v3_and_below_producer_id=1,
            v3_and_below_producer_epoch=0,
            v3_and_below_topics=(AddPartitionsToTxnTopic(name="t", partitions=(0,)),),
        ),
        lambda _: AddPartitionsToTxnResponse(),
        ID_FAILED,
        version=3,
    ),
    sample(  # of brokers; the handler refuses everybody else
        AddPartitionsToTxnRequest(),
        lambda _: AddPartitionsToTxnResponse(),
    ),
    sample(
        WriteTxnMarkersRequest(markers=()),
        lambda _: WriteTxnMarkersResponse(markers=()),
    ),
    sample(
        AddOffsetsToTxnRequest(transactional_id="x", producer_id=1, producer_epoch=0, group_id="g"),
        lambda _: AddOffsetsToTxnResponse(error_code=0),
        ID_FAILED,
    ),
    sample(
        EndTxnRequest(transactional_id="x", producer_id=1, producer_epoch=0, committed=True),
        lambda _: EndTxnResponse(error_code=0),
        ID_FAILED,
    ),
    sample(
        TxnOffsetCommitRequest(
            transactional_id="x",
            group_id="g",
            producer_id=1,
            producer_epoch=0,
            topics=(
                TxnOffsetCommitRequestTopic(
                    name="t",
                    partitions=(
                        TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1),
                    ),
                ),
            ),
        ),
        lambda asked: TxnOffsetCommitResponse(
            topics=tuple(
                TxnOffsetCommitResponseTopic(name=t.name, partitions=()) for t in asked.topics
            )
        ),
        ID_FAILED,
    ),
    sample(
        DescribeTransactionsRequest(transactional_ids=("x",)),
        lambda asked: DescribeTransactionsResponse(
            transaction_states=tuple(map(_state, asked.transactional_ids))
        ),
        ID_FAILED,
    ),
    sample(
        ListTransactionsRequest(),
        lambda _: ListTransactionsResponse(
            error_code=0,
            transaction_states=(
                ListTransactionsState(
                    transactional_id="x", producer_id=1, transaction_state="Empty"
                ),
            ),
        ),
    ),
)
CLUSTER = (
    sample(
        DescribeClusterRequest(include_cluster_authorized_operations=True),
        lambda _: DescribeClusterResponse(error_code=0, cluster_id="c", brokers=()),
    ),
    sample(
        AlterReplicaLogDirsRequest(
            dirs=(
                AlterReplicaLogDir(
                    path="/d", topics=(AlterReplicaLogDirTopic(name="t", partitions=(0,)),)
                ),
            )
        ),
        lambda _: AlterReplicaLogDirsResponse(results=()),
        CLUSTER_FAILED,
    ),
    sample(
        DescribeLogDirsRequest(topics=None),
        lambda _: DescribeLogDirsResponse(results=()),
        CLUSTER_FAILED,
    ),
    sample(
        ElectLeadersRequest(
            topic_partitions=(ElectLeadersTopicPartitions(topic="t", partitions=(0,)),)
        ),
        lambda _: ElectLeadersResponse(replica_election_results=()),
        CLUSTER_FAILED,
    ),
    sample(
        AlterPartitionReassignmentsRequest(topics=()),
        lambda _: AlterPartitionReassignmentsResponse(error_code=0, responses=()),
        CLUSTER_FAILED,
    ),
    sample(
        ListPartitionReassignmentsRequest(),
        lambda _: ListPartitionReassignmentsResponse(error_code=0, topics=()),
        CLUSTER_FAILED,
    ),
    sample(
        DescribeUserScramCredentialsRequest(),
        lambda _: DescribeUserScramCredentialsResponse(error_code=0, results=()),
        CLUSTER_FAILED,
    ),
    sample(
        AlterUserScramCredentialsRequest(
            deletions=(ScramCredentialDeletion(name="alice", mechanism=1),)
        ),
        lambda _: AlterUserScramCredentialsResponse(results=()),
        CLUSTER_FAILED,
    ),
    sample(
        DescribeClientQuotasRequest(components=(), strict=False),
        lambda _: DescribeClientQuotasResponse(error_code=0, entries=()),
        CLUSTER_FAILED,
    ),
    sample(
        AlterClientQuotasRequest(
            entries=(AlterClientQuotasEntry(entity=(), ops=()),), validate_only=False
        ),
        lambda _: AlterClientQuotasResponse(entries=()),
        CLUSTER_FAILED,
    ),
    sample(
        DescribeAclsRequest(resource_type_filter=1, operation=1, permission_type=1),
        lambda _: DescribeAclsResponse(error_code=0, resources=()),
        CLUSTER_FAILED,
    ),
    sample(
        CreateAclsRequest(
            creations=(
                AclCreation(
                    resource_type=2,
                    resource_name="t",
                    principal="User:a",
                    host="*",
                    operation=3,
                    permission_type=3,
                ),
            )
        ),
        lambda _: CreateAclsResponse(results=()),
        CLUSTER_FAILED,
    ),
    sample(
        DeleteAclsRequest(
            filters=(DeleteAclsFilter(resource_type_filter=1, operation=1, permission_type=1),)
        ),
        lambda _: DeleteAclsResponse(filter_results=()),
        CLUSTER_FAILED,
    ),
)
SAMPLES = (*RECORDS, *TOPICS, *GROUPS, *TRANSACTIONS, *CLUSTER)

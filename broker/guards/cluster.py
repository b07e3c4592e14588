"""Guards of what concerns the cluster as a whole, and of what only its brokers may do."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from broker.context import Call, Handler
from broker.guards.guard import Stand, as_broker, may_topic, sorted_out
from wire.acls import CLUSTER_NAME, Operation, ResourceType
from wire.errors import ErrorCode
from wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlterClientQuotasResult,
)
from wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from wire.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse
from wire.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from wire.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from wire.messages.describe_cluster import DescribeClusterRequest
from wire.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from wire.messages.elect_leaders import (
    ElectLeadersPartitionResult,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ReplicaElectionResult,
)
from wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochEpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderTopicResult,
)

REFUSED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def needing(operation: Operation, refuse: Callable[[Any], Any]) -> Stand:
    """Return a guard that lets a request pass whole, or refuses it whole."""

    async def stand(request: Any, call: Call, handle: Handler) -> Any:  # noqa: ANN401 - one per API
        if call.rights.may_cluster(operation):
            return await handle(request, call)
        return refuse(request)

    return stand


async def broker_only(request: Any, call: Call, handle: Handler) -> Any:  # noqa: ANN401 - one per API
    """Take who has CLUSTER_ACTION for a broker; the handler refuses everybody else."""
    is_let = call.rights.may_cluster(Operation.CLUSTER_ACTION)
    return await handle(request, as_broker(call) if is_let else call)


async def write_txn_markers(request: Any, call: Call, handle: Handler) -> Any:  # noqa: ANN401 - one per API
    """Let administrators end a hanging transaction, too (KIP-664)."""
    is_let = call.rights.may_cluster(Operation.ALTER) or call.rights.may_cluster(
        Operation.CLUSTER_ACTION
    )
    return await handle(request, as_broker(call) if is_let else call)


async def offset_for_leader_epoch(
    request: OffsetForLeaderEpochRequest, call: Call, handle: Handler
) -> Any:  # noqa: ANN401 - the handler's
    """Let consumers ask about topics that they may describe (KIP-320), brokers about all."""
    if call.rights.may_cluster(Operation.CLUSTER_ACTION):
        return await handle(request, call)
    kept, refused = await sorted_out(
        request.topics, lambda topic: may_topic(call, Operation.DESCRIBE, topic.topic)
    )
    answer = await handle(replace(request, topics=kept), call)
    return replace(
        answer,
        topics=answer.topics
        + tuple(
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=tuple(
                    OffsetForLeaderEpochEpochEndOffset(
                        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, partition=one.partition
                    )
                    for one in topic.partitions
                ),
            )
            for topic in refused
        ),
    )


async def describe_cluster(request: DescribeClusterRequest, call: Call, handle: Handler) -> Any:  # noqa: ANN401 - the handler's
    """Tell everybody of the brokers, and of their own rights only who may describe the cluster."""
    answer = await handle(request, call)
    if not request.include_cluster_authorized_operations or answer.error_code:
        return answer
    return replace(answer, cluster_authorized_operations=told_of_cluster(call))


def told_of_cluster(call: Call) -> int:
    """Return the authorized operations on the cluster, none to who may not describe it."""
    if not call.rights.may_cluster(Operation.DESCRIBE):
        return 0
    return call.rights.told(ResourceType.CLUSTER, CLUSTER_NAME)


def no_alter_partition_reassignments(
    _: AlterPartitionReassignmentsRequest,
) -> AlterPartitionReassignmentsResponse:
    """Refuse it."""
    return AlterPartitionReassignmentsResponse(error_code=REFUSED, responses=())


def no_list_partition_reassignments(
    _: ListPartitionReassignmentsRequest,
) -> ListPartitionReassignmentsResponse:
    """Refuse it."""
    return ListPartitionReassignmentsResponse(error_code=REFUSED, topics=())


def no_elect_leaders(request: ElectLeadersRequest) -> ElectLeadersResponse:
    """Refuse it on top, and for each partition: before v1 there is no other place."""
    return ElectLeadersResponse(
        error_code=REFUSED,
        replica_election_results=tuple(
            ReplicaElectionResult(
                topic=topic.topic,
                partition_result=tuple(
                    ElectLeadersPartitionResult(partition_id=index, error_code=REFUSED)
                    for index in topic.partitions
                ),
            )
            for topic in request.topic_partitions or ()
        ),
    )


def no_alter_replica_log_dirs(request: AlterReplicaLogDirsRequest) -> AlterReplicaLogDirsResponse:
    """Refuse it for each partition."""
    return AlterReplicaLogDirsResponse(
        results=tuple(
            AlterReplicaLogDirTopicResult(
                topic_name=topic.name,
                partitions=tuple(
                    AlterReplicaLogDirPartitionResult(partition_index=index, error_code=REFUSED)
                    for index in topic.partitions
                ),
            )
            for asked in request.dirs
            for topic in asked.topics
        )
    )


def no_describe_log_dirs(_: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    """Refuse it; before v3 there is no place for an error, and Kafka tells of no folder."""
    return DescribeLogDirsResponse(error_code=REFUSED, results=())


def no_describe_user_scram_credentials(
    _: DescribeUserScramCredentialsRequest,
) -> DescribeUserScramCredentialsResponse:
    """Refuse it."""
    return DescribeUserScramCredentialsResponse(error_code=REFUSED, results=())


def no_alter_user_scram_credentials(
    request: AlterUserScramCredentialsRequest,
) -> AlterUserScramCredentialsResponse:
    """Refuse it for each user."""
    users = [one.name for one in request.deletions] + [one.name for one in request.upsertions]
    return AlterUserScramCredentialsResponse(
        results=tuple(
            AlterUserScramCredentialsResult(user=user, error_code=REFUSED)
            for user in dict.fromkeys(users)
        )
    )


def no_describe_client_quotas(_: DescribeClientQuotasRequest) -> DescribeClientQuotasResponse:
    """Refuse it."""
    return DescribeClientQuotasResponse(error_code=REFUSED)


def no_alter_client_quotas(request: AlterClientQuotasRequest) -> AlterClientQuotasResponse:
    """Refuse each entity."""
    return AlterClientQuotasResponse(
        entries=tuple(
            AlterClientQuotasResult(error_code=REFUSED, entity=entry.entity)
            for entry in request.entries
        )
    )


def no_describe_acls(_: DescribeAclsRequest) -> DescribeAclsResponse:
    """Refuse it."""
    return DescribeAclsResponse(error_code=REFUSED, resources=())


def no_create_acls(request: CreateAclsRequest) -> CreateAclsResponse:
    """Refuse each entry."""
    return CreateAclsResponse(
        results=tuple(AclCreationResult(error_code=REFUSED) for _ in request.creations)
    )


def no_delete_acls(request: DeleteAclsRequest) -> DeleteAclsResponse:
    """Refuse each filter."""
    return DeleteAclsResponse(
        filter_results=tuple(
            DeleteAclsFilterResult(error_code=REFUSED, matching_acls=()) for _ in request.filters
        )
    )

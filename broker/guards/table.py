"""Every API that is served, and the rights that it needs: one row each.

The rules are those of KafkaApis in Apache Kafka 3.9. What stands in a row is all that its guard,
or its handler, may ask about.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from broker.groups.answers import refused_sync
from broker.guards import cluster, consumer_groups, groups, settings, topics, transactions
from broker.guards.guard import AskedRight, Guard, Stand, let_pass
from wire.acls import SUPPORTED, Operation, ResourceType
from wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from wire.messages.alter_client_quotas import AlterClientQuotasRequest
from wire.messages.alter_configs import AlterConfigsRequest
from wire.messages.alter_partition import AlterPartitionRequest
from wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from wire.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from wire.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from wire.messages.api_versions import ApiVersionsRequest
from wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from wire.messages.controlled_shutdown import ControlledShutdownRequest
from wire.messages.create_acls import CreateAclsRequest
from wire.messages.create_partitions import CreatePartitionsRequest
from wire.messages.create_topics import CreateTopicsRequest
from wire.messages.delete_acls import DeleteAclsRequest
from wire.messages.delete_groups import DeleteGroupsRequest
from wire.messages.delete_records import DeleteRecordsRequest
from wire.messages.delete_topics import DeleteTopicsRequest
from wire.messages.describe_acls import DescribeAclsRequest
from wire.messages.describe_client_quotas import DescribeClientQuotasRequest
from wire.messages.describe_cluster import DescribeClusterRequest
from wire.messages.describe_configs import DescribeConfigsRequest
from wire.messages.describe_groups import DescribeGroupsRequest
from wire.messages.describe_log_dirs import DescribeLogDirsRequest
from wire.messages.describe_producers import DescribeProducersRequest
from wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from wire.messages.describe_transactions import DescribeTransactionsRequest
from wire.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from wire.messages.elect_leaders import ElectLeadersRequest
from wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from wire.messages.fetch import FetchRequest
from wire.messages.find_coordinator import FindCoordinatorRequest
from wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from wire.messages.init_producer_id import InitProducerIdRequest
from wire.messages.join_group import JoinGroupRequest
from wire.messages.leader_and_isr import LeaderAndIsrRequest
from wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from wire.messages.list_groups import ListGroupsRequest
from wire.messages.list_offsets import ListOffsetsRequest
from wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from wire.messages.list_transactions import ListTransactionsRequest
from wire.messages.metadata import MetadataRequest
from wire.messages.offset_commit import OffsetCommitRequest
from wire.messages.offset_delete import OffsetDeleteRequest
from wire.messages.offset_fetch import OffsetFetchRequest
from wire.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from wire.messages.produce import ProduceRequest
from wire.messages.sasl_authenticate import SaslAuthenticateRequest
from wire.messages.sasl_handshake import SaslHandshakeRequest
from wire.messages.stop_replica import StopReplicaRequest
from wire.messages.sync_group import SyncGroupRequest
from wire.messages.txn_offset_commit import TxnOffsetCommitRequest
from wire.messages.update_metadata import UpdateMetadataRequest
from wire.messages.write_txn_markers import WriteTxnMarkersRequest
from wire.schema import Request

_Rows = tuple[tuple[type[Request[Any]], Guard], ...]


def _topic(*operations: Operation) -> tuple[AskedRight, ...]:
    return tuple(AskedRight(one, ResourceType.TOPIC) for one in operations)


def _group(*operations: Operation) -> tuple[AskedRight, ...]:
    return tuple(AskedRight(one, ResourceType.GROUP) for one in operations)


def _transactional(*operations: Operation) -> tuple[AskedRight, ...]:
    return tuple(AskedRight(one, ResourceType.TRANSACTIONAL_ID) for one in operations)


def _cluster(*operations: Operation) -> tuple[AskedRight, ...]:
    return tuple(AskedRight(one, ResourceType.CLUSTER) for one in operations)


def _whole_cluster(operation: Operation, refuse: Any) -> Guard:  # noqa: ANN401 - one per API
    return Guard(cluster.needing(operation, refuse), _cluster(operation))


def _member(refuse: Any) -> Guard:  # noqa: ANN401 - one per API
    return Guard(groups.needing(_READ, refuse), _group(_READ))


_READ: Final = Operation.READ
_WRITE: Final = Operation.WRITE
_DESCRIBE: Final = Operation.DESCRIBE
_OPEN: Final = Guard(let_pass)
_ASKS_ITSELF: Final[Stand] = let_pass
_OF_BROKERS: Final = Guard(cluster.broker_only, _cluster(Operation.CLUSTER_ACTION))

_RECORDS: Final[_Rows] = (
    # Both handlers ask of each topic: a fetch session names topics that its request does not.
    (ProduceRequest, Guard(_ASKS_ITSELF, _topic(_WRITE) + _transactional(_WRITE))),
    (FetchRequest, Guard(topics.fetch, _topic(_READ) + _cluster(Operation.CLUSTER_ACTION))),
    (ListOffsetsRequest, Guard(topics.list_offsets, _topic(_DESCRIBE))),
    (DeleteRecordsRequest, Guard(topics.delete_records, _topic(Operation.DELETE))),
    (
        OffsetForLeaderEpochRequest,
        Guard(
            cluster.offset_for_leader_epoch,
            _topic(_DESCRIBE) + _cluster(Operation.CLUSTER_ACTION),
        ),
    ),
    (DescribeProducersRequest, Guard(topics.describe_producers, _topic(_READ))),
)
_TOPICS: Final[_Rows] = (
    (
        DescribeTopicPartitionsRequest,
        Guard(
            topics.describe_topic_partitions,
            tuple(AskedRight(one, ResourceType.TOPIC) for one in SUPPORTED[ResourceType.TOPIC]),
        ),
    ),
    (
        MetadataRequest,
        Guard(
            topics.metadata,
            # Of the others it tells which are authorized, to who asks.
            tuple(AskedRight(one, ResourceType.TOPIC) for one in SUPPORTED[ResourceType.TOPIC])
            + tuple(
                AskedRight(one, ResourceType.CLUSTER) for one in SUPPORTED[ResourceType.CLUSTER]
            ),
        ),
    ),
    (
        CreateTopicsRequest,
        Guard(
            topics.create_topics,
            _topic(Operation.CREATE, Operation.DESCRIBE_CONFIGS) + _cluster(Operation.CREATE),
        ),
    ),
    (DeleteTopicsRequest, Guard(topics.delete_topics, _topic(Operation.DELETE, _DESCRIBE))),
    (CreatePartitionsRequest, Guard(topics.create_partitions, _topic(Operation.ALTER))),
    (
        DescribeConfigsRequest,
        Guard(
            settings.describe_configs,
            _topic(Operation.DESCRIBE_CONFIGS) + _cluster(Operation.DESCRIBE_CONFIGS),
        ),
    ),
    (
        AlterConfigsRequest,
        Guard(
            settings.alter_configs,
            _topic(Operation.ALTER_CONFIGS) + _cluster(Operation.ALTER_CONFIGS),
        ),
    ),
    (
        IncrementalAlterConfigsRequest,
        Guard(
            settings.incremental_alter_configs,
            _topic(Operation.ALTER_CONFIGS) + _cluster(Operation.ALTER_CONFIGS),
        ),
    ),
)
_GROUPS: Final[_Rows] = (
    (JoinGroupRequest, Guard(groups.join, _group(_READ))),
    (SyncGroupRequest, _member(lambda _: refused_sync(groups.REFUSED))),
    (HeartbeatRequest, _member(lambda _: HeartbeatResponse(error_code=groups.REFUSED))),
    (LeaveGroupRequest, _member(lambda _: LeaveGroupResponse(error_code=groups.REFUSED))),
    (
        FindCoordinatorRequest,
        Guard(groups.find_coordinator, _group(_DESCRIBE) + _transactional(_DESCRIBE)),
    ),
    (
        DescribeGroupsRequest,
        # Of the others it tells which are authorized, to who asks.
        Guard(groups.describe_groups, _group(*SUPPORTED[ResourceType.GROUP])),
    ),
    (
        ConsumerGroupHeartbeatRequest,
        Guard(consumer_groups.heartbeat, _group(_READ) + _topic(_DESCRIBE)),
    ),
    (
        ConsumerGroupDescribeRequest,
        Guard(consumer_groups.describe, _group(*SUPPORTED[ResourceType.GROUP]) + _topic(_DESCRIBE)),
    ),
    (ListGroupsRequest, Guard(groups.list_groups, _group(_DESCRIBE) + _cluster(_DESCRIBE))),
    (DeleteGroupsRequest, Guard(groups.delete_groups, _group(Operation.DELETE))),
    (OffsetCommitRequest, Guard(groups.offset_commit, _group(_READ) + _topic(_READ))),
    (OffsetFetchRequest, Guard(groups.offset_fetch, _group(_DESCRIBE) + _topic(_DESCRIBE))),
    (OffsetDeleteRequest, Guard(groups.offset_delete, _group(Operation.DELETE) + _topic(_READ))),
)
_TRANSACTIONS: Final[_Rows] = (
    (
        InitProducerIdRequest,
        Guard(
            transactions.init_producer_id,
            _transactional(_WRITE) + _topic(_WRITE) + _cluster(Operation.IDEMPOTENT_WRITE),
        ),
    ),
    (
        AddPartitionsToTxnRequest,
        Guard(
            transactions.add_partitions_to_txn,
            _transactional(_WRITE) + _topic(_WRITE) + _cluster(Operation.CLUSTER_ACTION),
        ),
    ),
    (
        AddOffsetsToTxnRequest,
        Guard(transactions.add_offsets_to_txn, _transactional(_WRITE) + _group(_READ)),
    ),
    (
        EndTxnRequest,
        Guard(
            transactions.needing(_WRITE, lambda _: EndTxnResponse(error_code=transactions.REFUSED)),
            _transactional(_WRITE),
        ),
    ),
    (
        TxnOffsetCommitRequest,
        Guard(
            transactions.txn_offset_commit,
            _transactional(_WRITE) + _group(_READ) + _topic(_READ),
        ),
    ),
    (
        DescribeTransactionsRequest,
        Guard(transactions.describe_transactions, _transactional(_DESCRIBE) + _topic(_DESCRIBE)),
    ),
    (
        ListTransactionsRequest,
        Guard(transactions.list_transactions, _transactional(_DESCRIBE)),
    ),
    (
        WriteTxnMarkersRequest,
        Guard(cluster.write_txn_markers, _cluster(Operation.ALTER, Operation.CLUSTER_ACTION)),
    ),
)
_CLUSTER: Final[_Rows] = (
    (ApiVersionsRequest, _OPEN),
    (SaslHandshakeRequest, _OPEN),
    (SaslAuthenticateRequest, _OPEN),
    (
        DescribeClusterRequest,
        # Everybody is told of the brokers, and who may describe the cluster of their own rights.
        Guard(cluster.describe_cluster, _cluster(*SUPPORTED[ResourceType.CLUSTER])),
    ),
    (
        AlterReplicaLogDirsRequest,
        _whole_cluster(Operation.ALTER, cluster.no_alter_replica_log_dirs),
    ),
    (DescribeLogDirsRequest, _whole_cluster(_DESCRIBE, cluster.no_describe_log_dirs)),
    (ElectLeadersRequest, _whole_cluster(Operation.ALTER, cluster.no_elect_leaders)),
    (
        AlterPartitionReassignmentsRequest,
        _whole_cluster(Operation.ALTER, cluster.no_alter_partition_reassignments),
    ),
    (
        ListPartitionReassignmentsRequest,
        _whole_cluster(_DESCRIBE, cluster.no_list_partition_reassignments),
    ),
    (
        DescribeUserScramCredentialsRequest,
        _whole_cluster(_DESCRIBE, cluster.no_describe_user_scram_credentials),
    ),
    (
        AlterUserScramCredentialsRequest,
        _whole_cluster(Operation.ALTER, cluster.no_alter_user_scram_credentials),
    ),
    (
        DescribeClientQuotasRequest,
        _whole_cluster(Operation.DESCRIBE_CONFIGS, cluster.no_describe_client_quotas),
    ),
    (
        AlterClientQuotasRequest,
        _whole_cluster(Operation.ALTER_CONFIGS, cluster.no_alter_client_quotas),
    ),
    (DescribeAclsRequest, _whole_cluster(_DESCRIBE, cluster.no_describe_acls)),
    (CreateAclsRequest, _whole_cluster(Operation.ALTER, cluster.no_create_acls)),
    (DeleteAclsRequest, _whole_cluster(Operation.ALTER, cluster.no_delete_acls)),
    (LeaderAndIsrRequest, _OF_BROKERS),
    (StopReplicaRequest, _OF_BROKERS),
    (UpdateMetadataRequest, _OF_BROKERS),
    (ControlledShutdownRequest, _OF_BROKERS),
    (AlterPartitionRequest, _OF_BROKERS),
)

GUARDS: Final[Mapping[int, Guard]] = MappingProxyType(
    {
        request.API_KEY: guard
        for rows in (_RECORDS, _TOPICS, _GROUPS, _TRANSACTIONS, _CLUSTER)
        for request, guard in rows
    }
)
"""The guard of each API, by its key."""

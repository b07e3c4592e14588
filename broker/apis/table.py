"""The APIs that this broker serves, one row each. ApiVersions is derived from this table alone."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from broker.apis import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    alter_client_quotas,
    alter_configs,
    alter_partition,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    alter_user_scram_credentials,
    api_versions,
    consumer_group_describe,
    consumer_group_heartbeat,
    controlled_shutdown,
    create_acls,
    create_partitions,
    create_topics,
    delete_acls,
    delete_groups,
    delete_records,
    delete_topics,
    describe_acls,
    describe_client_quotas,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_topic_partitions,
    describe_transactions,
    describe_user_scram_credentials,
    elect_leaders,
    end_txn,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leader_and_isr,
    leave_group,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    list_transactions,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    sasl_authenticate,
    sasl_handshake,
    stop_replica,
    sync_group,
    txn_offset_commit,
    update_metadata,
    write_txn_markers,
)
from broker.apis.api import MOST_ELEMENTS, Api, ByHand
from broker.context import Handler
from broker.guards.table import GUARDS
from wire.hot import produce_served
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
from wire.messages.end_txn import EndTxnRequest
from wire.messages.fetch import FetchRequest
from wire.messages.find_coordinator import FindCoordinatorRequest
from wire.messages.heartbeat import HeartbeatRequest
from wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from wire.messages.init_producer_id import InitProducerIdRequest
from wire.messages.join_group import JoinGroupRequest
from wire.messages.leader_and_isr import LeaderAndIsrRequest
from wire.messages.leave_group import LeaveGroupRequest
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

_MOST_OF_A_CLUSTER: Final = 250_000
"""The controller tells of all partitions in one request, and would repeat a refused one for ever;
200,000 are what Kafka's own controller with ZooKeeper was made for."""


def _api(
    request: type[Request[Any]],
    handle: Handler,
    *,
    since: int | None = None,
    may_wait: bool = True,
    most_elements: int = MOST_ELEMENTS,
    answers_at_length: bool = False,
) -> Api:
    """Serve the versions that the message has, or only those from `since` on."""
    first = request.VERSIONS.start if since is None else since
    return Api(
        name=request.__name__.removesuffix("Request"),
        request=request,
        handle=handle,
        guard=GUARDS[request.API_KEY],
        versions=range(first, request.VERSIONS.stop),
        may_wait=may_wait,
        most_elements=most_elements,
        answers_at_length=answers_at_length,
    )


_PRODUCE_BY_HAND: Final = ByHand(
    read=produce_served.read_request, write=produce_served.answer_frame
)
_ROWS: Final[tuple[Api, ...]] = (
    # Produce is listed from 0, although only batches of v3+ are taken: librdkafka up to 2.8 reads
    # a range that starts higher as "cannot compress".
    replace(_api(ProduceRequest, produce.handle, may_wait=False), by_hand=_PRODUCE_BY_HAND),
    # Before v4 a fetch expects message sets of the old formats, which are never stored here.
    _api(FetchRequest, fetch.handle, since=4, answers_at_length=True),
    _api(ListOffsetsRequest, list_offsets.handle),
    _api(MetadataRequest, metadata.handle, answers_at_length=True),
    # The controller speaks the versions with topic ids only.
    _api(LeaderAndIsrRequest, leader_and_isr.handle, since=5, most_elements=_MOST_OF_A_CLUSTER),
    _api(StopReplicaRequest, stop_replica.handle, since=3, most_elements=_MOST_OF_A_CLUSTER),
    _api(UpdateMetadataRequest, update_metadata.handle, since=7, most_elements=_MOST_OF_A_CLUSTER),
    _api(ControlledShutdownRequest, controlled_shutdown.handle),
    _api(OffsetCommitRequest, offset_commit.handle),
    _api(OffsetFetchRequest, offset_fetch.handle, answers_at_length=True),
    _api(FindCoordinatorRequest, find_coordinator.handle),
    _api(JoinGroupRequest, join_group.handle),
    _api(HeartbeatRequest, heartbeat.handle),
    _api(LeaveGroupRequest, leave_group.handle),
    _api(SyncGroupRequest, sync_group.handle),
    _api(DescribeGroupsRequest, describe_groups.handle, answers_at_length=True),
    _api(ListGroupsRequest, list_groups.handle, answers_at_length=True),
    _api(SaslHandshakeRequest, sasl_handshake.handle),
    _api(ApiVersionsRequest, api_versions.handler(lambda: _ROWS)),
    _api(CreateTopicsRequest, create_topics.handle),
    _api(DeleteTopicsRequest, delete_topics.handle),
    _api(DeleteRecordsRequest, delete_records.handle),
    _api(InitProducerIdRequest, init_producer_id.handle),
    _api(AddPartitionsToTxnRequest, add_partitions_to_txn.handle),
    _api(AddOffsetsToTxnRequest, add_offsets_to_txn.handle),
    _api(EndTxnRequest, end_txn.handle),
    _api(WriteTxnMarkersRequest, write_txn_markers.handle),
    _api(TxnOffsetCommitRequest, txn_offset_commit.handle),
    _api(OffsetForLeaderEpochRequest, offset_for_leader_epoch.handle),
    _api(DescribeAclsRequest, describe_acls.handle, answers_at_length=True),
    _api(CreateAclsRequest, create_acls.handle),
    _api(DeleteAclsRequest, delete_acls.handle, answers_at_length=True),
    _api(DescribeConfigsRequest, describe_configs.handle, answers_at_length=True),
    _api(AlterConfigsRequest, alter_configs.handle),
    _api(AlterReplicaLogDirsRequest, alter_replica_log_dirs.handle),
    _api(DescribeLogDirsRequest, describe_log_dirs.handle, answers_at_length=True),
    _api(SaslAuthenticateRequest, sasl_authenticate.handle),
    _api(CreatePartitionsRequest, create_partitions.handle),
    _api(DeleteGroupsRequest, delete_groups.handle),
    _api(ElectLeadersRequest, elect_leaders.handle),
    _api(IncrementalAlterConfigsRequest, incremental_alter_configs.handle),
    _api(AlterPartitionReassignmentsRequest, alter_partition_reassignments.handle),
    _api(
        ListPartitionReassignmentsRequest,
        list_partition_reassignments.handle,
        answers_at_length=True,
    ),
    _api(OffsetDeleteRequest, offset_delete.handle),
    _api(DescribeClientQuotasRequest, describe_client_quotas.handle, answers_at_length=True),
    _api(AlterClientQuotasRequest, alter_client_quotas.handle),
    _api(DescribeUserScramCredentialsRequest, describe_user_scram_credentials.handle),
    _api(AlterUserScramCredentialsRequest, alter_user_scram_credentials.handle),
    _api(AlterPartitionRequest, alter_partition.handle),
    _api(DescribeClusterRequest, describe_cluster.handle),
    _api(DescribeProducersRequest, describe_producers.handle, answers_at_length=True),
    _api(DescribeTransactionsRequest, describe_transactions.handle, answers_at_length=True),
    _api(ListTransactionsRequest, list_transactions.handle, answers_at_length=True),
    _api(ConsumerGroupHeartbeatRequest, consumer_group_heartbeat.handle),
    _api(ConsumerGroupDescribeRequest, consumer_group_describe.handle, answers_at_length=True),
    _api(DescribeTopicPartitionsRequest, describe_topic_partitions.handle, answers_at_length=True),
)

APIS: Final[Mapping[int, Api]] = MappingProxyType({row.request.API_KEY: row for row in _ROWS})
"""Every served API by its key."""

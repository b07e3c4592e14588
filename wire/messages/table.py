"""The table of all messages. Who speaks a few of them does not load it: it takes 40 ms."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

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
from wire.messages.describe_quorum import DescribeQuorumRequest
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
from wire.schema import AnyRequest

APIS: Final[Mapping[int, type[AnyRequest]]] = MappingProxyType(
    {
        0: ProduceRequest,
        1: FetchRequest,
        2: ListOffsetsRequest,
        3: MetadataRequest,
        4: LeaderAndIsrRequest,
        5: StopReplicaRequest,
        6: UpdateMetadataRequest,
        7: ControlledShutdownRequest,
        8: OffsetCommitRequest,
        9: OffsetFetchRequest,
        10: FindCoordinatorRequest,
        11: JoinGroupRequest,
        12: HeartbeatRequest,
        13: LeaveGroupRequest,
        14: SyncGroupRequest,
        15: DescribeGroupsRequest,
        16: ListGroupsRequest,
        17: SaslHandshakeRequest,
        18: ApiVersionsRequest,
        19: CreateTopicsRequest,
        20: DeleteTopicsRequest,
        21: DeleteRecordsRequest,
        22: InitProducerIdRequest,
        23: OffsetForLeaderEpochRequest,
        24: AddPartitionsToTxnRequest,
        25: AddOffsetsToTxnRequest,
        26: EndTxnRequest,
        27: WriteTxnMarkersRequest,
        28: TxnOffsetCommitRequest,
        29: DescribeAclsRequest,
        30: CreateAclsRequest,
        31: DeleteAclsRequest,
        32: DescribeConfigsRequest,
        33: AlterConfigsRequest,
        34: AlterReplicaLogDirsRequest,
        35: DescribeLogDirsRequest,
        36: SaslAuthenticateRequest,
        37: CreatePartitionsRequest,
        42: DeleteGroupsRequest,
        43: ElectLeadersRequest,
        44: IncrementalAlterConfigsRequest,
        45: AlterPartitionReassignmentsRequest,
        46: ListPartitionReassignmentsRequest,
        47: OffsetDeleteRequest,
        48: DescribeClientQuotasRequest,
        49: AlterClientQuotasRequest,
        50: DescribeUserScramCredentialsRequest,
        51: AlterUserScramCredentialsRequest,
        55: DescribeQuorumRequest,
        56: AlterPartitionRequest,
        60: DescribeClusterRequest,
        61: DescribeProducersRequest,
        65: DescribeTransactionsRequest,
        66: ListTransactionsRequest,
        68: ConsumerGroupHeartbeatRequest,
        69: ConsumerGroupDescribeRequest,
        75: DescribeTopicPartitionsRequest,
    }
)
"""Every request this code can speak, by API key; `RESPONSE` of each is what answers it."""


def name_of(api_key: int) -> str:
    """Return `Heartbeat`, or `API 99` for a key unknown here."""
    request = APIS.get(api_key)
    return f"API {api_key}" if request is None else request.__name__.removesuffix("Request")

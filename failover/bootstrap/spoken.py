"""What is carried where connections are forwarded: which APIs, in which versions. Pure.

The answer to ApiVersions tells a client so, and clients choose among what it names. Produce and
Fetch end before the versions whose answers hold addresses (KIP-951), so what carries records is
passed on as it is. Ids of topics (KIP-516) differ between sites: a client that sees another one
takes the topic for a new one, and some then fail what they were to write. So no client hears of
them, and groups of the new protocol, which go by them (KIP-848), are not carried: their heartbeat
is named, and refused, as some clients wait for ever where it is not named. Metadata ends
before the version from which on clients rely on leader epochs: these are not shown, and librdkafka
takes one that is missing there for 0. A broker that leads by a later epoch refuses each such Fetch.
"""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from wire.errors import ErrorCode
from wire.headers import encode_response
from wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from wire.messages.alter_partition import AlterPartitionRequest
from wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from wire.messages.controlled_shutdown import ControlledShutdownRequest
from wire.messages.describe_quorum import DescribeQuorumRequest
from wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from wire.messages.end_txn import EndTxnRequest
from wire.messages.fetch import FetchRequest
from wire.messages.leader_and_isr import LeaderAndIsrRequest
from wire.messages.metadata import MetadataRequest
from wire.messages.produce import ProduceRequest
from wire.messages.sasl_handshake import SaslHandshakeRequest
from wire.messages.stop_replica import StopReplicaRequest
from wire.messages.table import APIS
from wire.messages.txn_offset_commit import TxnOffsetCommitRequest
from wire.messages.update_metadata import UpdateMetadataRequest
from wire.messages.write_txn_markers import WriteTxnMarkersRequest

_LAST: Final[Mapping[int, int]] = MappingProxyType(
    {ProduceRequest.API_KEY: 9, FetchRequest.API_KEY: 12, MetadataRequest.API_KEY: 8}
)
"""The last version without what matters of the other site: addresses of brokers, ids of topics,
leader epochs."""
_FIRST: Final[Mapping[int, int]] = MappingProxyType({SaslHandshakeRequest.API_KEY: 1})
"""Behind version 0 come tokens without heads. It is named, and not carried: librdkafka takes
brokers without it, up to its version 2.8, for some that know no handshake."""
_NOT_FOR_CLIENTS: Final = frozenset(
    request.API_KEY
    for request in (
        AlterPartitionRequest,
        ControlledShutdownRequest,
        DescribeQuorumRequest,
        LeaderAndIsrRequest,
        StopReplicaRequest,
        UpdateMetadataRequest,
        WriteTxnMarkersRequest,
    )
)
_BY_TOPIC_IDS: Final = frozenset(
    request.API_KEY
    for request in (
        ConsumerGroupDescribeRequest,
        ConsumerGroupHeartbeatRequest,
        DescribeTopicPartitionsRequest,
    )
)
NEW_GROUPS: Final = ConsumerGroupHeartbeatRequest.API_KEY
_TRANSACTIONS: Final = frozenset(
    request.API_KEY
    for request in (
        AddOffsetsToTxnRequest,
        AddPartitionsToTxnRequest,
        EndTxnRequest,
        TxnOffsetCommitRequest,
    )
)
CARRIED: Final[Mapping[int, range]] = MappingProxyType(
    {
        key: range(
            max(_FIRST.get(key, 0), request.VERSIONS.start),
            min(_LAST.get(key, request.VERSIONS.stop) + 1, request.VERSIONS.stop),
        )
        for key, request in APIS.items()
        if key not in _NOT_FOR_CLIENTS | _BY_TOPIC_IDS | _TRANSACTIONS
    }
)
"""By API key, the versions that are carried: of newer ones it is not known where addresses are."""
_NAMED: Final[Mapping[int, range]] = MappingProxyType(
    {**CARRIED, NEW_GROUPS: ConsumerGroupHeartbeatRequest.VERSIONS}
)
"""Those that clients are told of."""


class NotCarried(ValueError):
    """A request that is not carried; the message says why, and what to do."""


def require_carried(key: int, version: int) -> None:
    """Raise NotCarried unless requests of this API and version are carried, or refused by name."""
    if key in _TRANSACTIONS:
        raise NotCarried(
            f"a request of API {key}: transactions are not carried; such an application must reach "
            "the brokers themselves"
        )
    if version not in _NAMED.get(key, ()):
        raise NotCarried(
            f"a request of API {key}, version {version}: the answer to ApiVersions does not name it"
        )


def limited(answer: ApiVersionsResponse) -> ApiVersionsResponse:
    """Return the broker's answer without what is not carried."""
    limits = [
        ApiVersion(
            api_key=each.api_key,
            min_version=max(each.min_version, APIS[each.api_key].VERSIONS.start),
            max_version=min(each.max_version, _NAMED[each.api_key].stop - 1),
        )
        for each in answer.api_keys
        if each.api_key in _NAMED
    ]
    named = tuple(each for each in limits if each.min_version <= each.max_version)
    return replace(answer, api_keys=named)


def is_too_new(key: int, version: int) -> bool:
    """Tell whether it is an ApiVersions request of a version that is not known.

    Clients send their newest one before they know better. Since version 5 it names the cluster and
    the broker that are meant (KIP-1242), so that a broker elsewhere can refuse the connection.
    Here a connection leads to the active site on purpose.
    """
    return key == ApiVersionsRequest.API_KEY and version >= ApiVersionsRequest.VERSIONS.stop


def too_new_answer(correlation_id: int) -> bytes:
    """Return the whole answer that has the client ask again in a version that is known."""
    known = ApiVersionsRequest.VERSIONS
    answer = ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        api_keys=(
            ApiVersion(
                api_key=ApiVersionsRequest.API_KEY,
                min_version=known.start,
                max_version=known.stop - 1,
            ),
        ),
    )
    return b"".join(encode_response(correlation_id, answer, 0))

"""DescribeCluster: the live brokers and the controller."""

from typing import Final

from broker.context import Call
from wire.acls import SUPPORTED, ResourceType, bits_of
from wire.errors import ErrorCode
from wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKERS: Final = 1
UNKNOWN_OPERATIONS: Final = -(2**31)
ALL_CLUSTER_OPERATIONS: Final = bits_of(SUPPORTED[ResourceType.CLUSTER])


async def handle(request: DescribeClusterRequest, call: Call) -> DescribeClusterResponse:
    """Answer from what the controller last announced."""
    await call.node.wait_metadata()
    metadata = call.node.metadata
    if request.endpoint_type != BROKERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            error_message="These are brokers; the controller is one of them.",
            cluster_id=metadata.cluster_id,
            brokers=(),
        )
    operations = UNKNOWN_OPERATIONS
    if request.include_cluster_authorized_operations:
        operations = ALL_CLUSTER_OPERATIONS
    return DescribeClusterResponse(
        error_code=ErrorCode.NONE,
        cluster_id=metadata.cluster_id,
        controller_id=metadata.controller_id,
        brokers=tuple(
            DescribeClusterBroker(
                broker_id=broker.broker_id, host=at[0], port=at[1], rack=broker.rack
            )
            for broker in metadata.brokers.values()
            if (at := broker.at(call.listener)) is not None
        ),
        cluster_authorized_operations=operations,
    )

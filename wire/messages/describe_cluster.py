"""DescribeCluster, key 60, v0-1: brokers and controller, without topics.

v1: request endpoint_type; response endpoint_type (KIP-919)
"""

from typing import ClassVar

from wire.schema import boolean, int8, int16, int32, message, nullable_string, since, string


@message
class DescribeClusterBroker:
    broker_id: int32
    host: string
    port: int32
    rack: nullable_string = None


@message
class DescribeClusterResponse:
    """The brokers that are alive."""

    API_KEY: ClassVar[int] = 60
    VERSIONS: ClassVar[range] = range(2)
    FLEXIBLE_SINCE: ClassVar[int] = 0

    throttle_time_ms: int32 = 0
    error_code: int16
    error_message: nullable_string = None
    endpoint_type: int8 = since(1, default=1)
    cluster_id: string
    controller_id: int32 = -1
    brokers: tuple[DescribeClusterBroker, ...]
    cluster_authorized_operations: int32 = -(2**31)


@message
class DescribeClusterRequest:
    """Endpoint type 1 asks for brokers, 2 for controllers (KIP-700)."""

    API_KEY: ClassVar[int] = 60
    VERSIONS: ClassVar[range] = range(2)
    FLEXIBLE_SINCE: ClassVar[int] = 0
    RESPONSE: ClassVar[type[DescribeClusterResponse]] = DescribeClusterResponse

    include_cluster_authorized_operations: boolean
    endpoint_type: int8 = since(1, default=1)

"""The one client of the Kafka protocol, on trio: connections, clusters, composed operations."""

from wire.net.cluster import Cluster, open_cluster
from wire.net.connection import Connection
from wire.net.errors import (
    AuthenticationFailed,
    BrokerUnreachable,
    ConnectionClosed,
    NetworkFault,
    RequestRefused,
    RequestTimedOut,
    UnsupportedApi,
)
from wire.net.metadata import BrokerView, ClusterView, PartitionView, TopicView
from wire.net.pending import PendingAnswer
from wire.net.transport import Address

__all__ = [
    "Address",
    "AuthenticationFailed",
    "BrokerUnreachable",
    "BrokerView",
    "Cluster",
    "ClusterView",
    "Connection",
    "ConnectionClosed",
    "NetworkFault",
    "PartitionView",
    "PendingAnswer",
    "RequestRefused",
    "RequestTimedOut",
    "TopicView",
    "UnsupportedApi",
    "open_cluster",
]

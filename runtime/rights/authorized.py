"""What we ourselves may do with topics, as brokers tell it (KIP-430)."""

from collections.abc import Collection
from typing import Final

from wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from wire.net.cluster import NEWEST_METADATA, Cluster

NOT_TOLD: Final = -(2**31)
OPERATIONS_SINCE: Final = 8
"""The version of Metadata that can tell authorized operations."""


async def topic_operations(cluster: Cluster, topics: Collection[str]) -> dict[str, int]:
    """Return the bits of our operations on each topic; NOT_TOLD where no broker tells.

    Raises NetworkFault.
    """
    if not topics:
        return {}
    connection = await cluster.any_connection()
    if connection.version_of(MetadataRequest) < OPERATIONS_SINCE:
        return dict.fromkeys(topics, NOT_TOLD)
    answer = await connection.request(
        MetadataRequest(
            topics=tuple(MetadataRequestTopic(name=name) for name in sorted(topics)),
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=True,
        ),
        version=min(connection.version_of(MetadataRequest), NEWEST_METADATA),
    )
    return {topic.name or "": topic.topic_authorized_operations for topic in answer.topics}

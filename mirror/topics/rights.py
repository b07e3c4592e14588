"""The rights that a flow needs, and those of them that its user lacks (KIP-430 tells them)."""

from collections.abc import Collection, Mapping
from enum import IntEnum
from typing import Final

from wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from wire.net.cluster import Cluster

NOT_TOLD: Final = -(2**31)
OPERATIONS_SINCE: Final = 8
"""The version of Metadata that can tell authorized operations."""


class Operation(IntEnum):
    """AclOperation as it travels; in an answer its bit is set."""

    READ = 3
    WRITE = 4
    ALTER = 7
    DESCRIBE = 8
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11


SOURCE_RIGHTS: Final = (Operation.READ, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS)
TARGET_RIGHTS: Final = (
    Operation.READ,
    Operation.WRITE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)


NEEDED: Final = frozenset({Operation.READ, Operation.WRITE, Operation.DESCRIBE})
"""Without one of these nothing of a topic is mirrored; without another its settings are not."""


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
        )
    )
    return {topic.name or "": topic.topic_authorized_operations for topic in answer.topics}


def lacking(told: Mapping[str, int], needed: Collection[Operation]) -> dict[Operation, list[str]]:
    """Return the topics by the right that is missing; where nothing is told, nothing is missing."""
    missing: dict[Operation, list[str]] = {}
    for topic, bits in sorted(told.items()):
        for operation in needed:
            if bits != NOT_TOLD and not bits & (1 << operation):
                missing.setdefault(operation, []).append(topic)
    return missing


def told_lacking(site: str, missing: Mapping[Operation, Collection[str]]) -> dict[Operation, str]:
    """Return a line for each right that is missing."""
    return {
        operation: f"on {site} the right {operation.name} is missing for {', '.join(topics)}"
        for operation, topics in missing.items()
    }

"""AlterReplicaLogDirs, key 34, v0-2: which of a broker's log folders replicas lie in (KIP-113).

v1: the same
v2: flexible
"""

from typing import ClassVar

from wire.schema import int16, int32, message, string


@message
class AlterReplicaLogDirPartitionResult:
    partition_index: int32
    error_code: int16


@message
class AlterReplicaLogDirTopicResult:
    topic_name: string
    partitions: tuple[AlterReplicaLogDirPartitionResult, ...]


@message
class AlterReplicaLogDirsResponse:
    API_KEY: ClassVar[int] = 34
    VERSIONS: ClassVar[range] = range(3)
    FLEXIBLE_SINCE: ClassVar[int] = 2

    throttle_time_ms: int32 = 0
    results: tuple[AlterReplicaLogDirTopicResult, ...]


@message
class AlterReplicaLogDirTopic:
    name: string
    partitions: tuple[int32, ...]


@message
class AlterReplicaLogDir:
    path: string
    topics: tuple[AlterReplicaLogDirTopic, ...]


@message
class AlterReplicaLogDirsRequest:
    """For each folder, by its absolute path, the partitions that shall lie in it."""

    API_KEY: ClassVar[int] = 34
    VERSIONS: ClassVar[range] = range(3)
    FLEXIBLE_SINCE: ClassVar[int] = 2
    RESPONSE: ClassVar[type[AlterReplicaLogDirsResponse]] = AlterReplicaLogDirsResponse

    dirs: tuple[AlterReplicaLogDir, ...]

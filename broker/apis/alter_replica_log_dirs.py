"""AlterReplicaLogDirs: a replica stays in the log folder that it lies in; none is moved.

Checks and codes are Kafka's (ReplicaManager.alterReplicaLogDirs), but a move to another folder is
refused, where Kafka copies the log.
"""

from collections.abc import Mapping

from broker.context import Call
from broker.log.log_manager import LogFolder
from wire.errors import ErrorCode
from wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from wire.topic_partition import TopicPartition


async def handle(request: AlterReplicaLogDirsRequest, call: Call) -> AlterReplicaLogDirsResponse:
    """Answer for each partition; of one that is named for two folders the last counts."""
    folders = {str(folder.path.absolute()): folder for folder in call.node.logs.by_folder()}
    outcomes = {
        TopicPartition(topic.name, index): _outcome(
            TopicPartition(topic.name, index), folders, asked.path, call
        )
        for asked in request.dirs
        for topic in asked.topics
        for index in topic.partitions
    }
    return _answer(outcomes)


def _answer(outcomes: Mapping[TopicPartition, ErrorCode]) -> AlterReplicaLogDirsResponse:
    by_topic: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for name, error in outcomes.items():
        by_topic.setdefault(name.topic, []).append(
            AlterReplicaLogDirPartitionResult(partition_index=name.partition, error_code=error)
        )
    return AlterReplicaLogDirsResponse(
        results=tuple(
            AlterReplicaLogDirTopicResult(topic_name=topic, partitions=tuple(results))
            for topic, results in by_topic.items()
        )
    )


def _outcome(
    name: TopicPartition, folders: Mapping[str, LogFolder], path: str, call: Call
) -> ErrorCode:
    folder = folders.get(path)
    if folder is None:
        return ErrorCode.LOG_DIR_NOT_FOUND
    if folder.is_offline:
        return ErrorCode.KAFKA_STORAGE_ERROR
    view = call.node.metadata.topic(name.topic)
    if view is None or name.partition not in view.partitions:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    log = call.node.logs.get(*name)
    if log is None:
        return ErrorCode.REPLICA_NOT_AVAILABLE
    if log not in folder.logs:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE

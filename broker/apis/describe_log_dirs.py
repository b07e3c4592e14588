"""DescribeLogDirs: what lies in this broker's log folders, and how full their disks are."""

import shutil
from collections.abc import Callable, Iterable

from broker.context import Call
from broker.log.log_manager import LogFolder
from broker.log.partition_log import PartitionLog
from wire.errors import ErrorCode
from wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from wire.topic_partition import TopicPartition


async def handle(request: DescribeLogDirsRequest, call: Call) -> DescribeLogDirsResponse:
    """Answer for every folder; one that is offline has an error of its own."""
    is_wanted = _choice(request)
    return DescribeLogDirsResponse(
        results=tuple(_describe(folder, is_wanted, call) for folder in call.node.logs.by_folder())
    )


def _choice(request: DescribeLogDirsRequest) -> Callable[[TopicPartition], bool]:
    if request.topics is None:
        return lambda _: True
    named = {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    return lambda name: name in named


def _describe(
    folder: LogFolder, is_wanted: Callable[[TopicPartition], bool], call: Call
) -> DescribeLogDirsResult:
    path = folder.path.absolute()
    try:
        disk = None if folder.is_offline else shutil.disk_usage(path)
    except OSError:
        disk = None
    if disk is None:
        return DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=str(path))
    return DescribeLogDirsResult(
        error_code=ErrorCode.NONE,
        log_dir=str(path),
        topics=_topics([log for log in folder.logs if is_wanted(log.name)], call),
        total_bytes=disk.total,
        usable_bytes=disk.free,
    )


def _topics(logs: Iterable[PartitionLog], call: Call) -> tuple[DescribeLogDirsTopic, ...]:
    found: dict[str, list[DescribeLogDirsPartition]] = {}
    for log in logs:
        committed = call.node.partitions.high_watermark(log.name) or 0
        found.setdefault(log.name.topic, []).append(
            DescribeLogDirsPartition(
                partition_index=log.name.partition,
                partition_size=log.size_bytes,
                offset_lag=max(0, log.log_end_offset - committed),
                is_future_key=False,
            )
        )
    return tuple(
        DescribeLogDirsTopic(name=topic, partitions=tuple(partitions))
        for topic, partitions in found.items()
    )

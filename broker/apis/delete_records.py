"""DeleteRecords: move a log's start forward, on every replica."""

from dataclasses import replace
from functools import partial
from typing import Final

import trio

from broker.apis.timeouts import timeout_s
from broker.context import Call
from broker.controller.topics import INTERNAL_TOPICS
from broker.fairness import Turns
from broker.led_partition import NotLeader
from broker.log.results import StorageError
from broker.replication.partition import Partition
from wire.errors import ErrorCode
from wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from wire.values import frozen

UP_TO_HIGH_WATERMARK: Final = -1


@frozen(kw_only=False)
class Deletion:
    """The answer for one partition, and the low watermark to wait for before it is given."""

    answer: DeleteRecordsPartitionResult
    partition: Partition | None = None
    offset: int = 0

    async def wait(self) -> DeleteRecordsPartitionResult:
        """Return the answer once every living replica has moved its log's start, or is too late.

        The caller cancels the wait when the time is up (Kafka's DelayedDeleteRecords).
        """
        partition = self.partition
        if partition is None:
            return self.answer
        try:
            await partition.wait_low_watermark(self.offset)
        except NotLeader:
            return self._refused(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        except StorageError:
            return self._refused(ErrorCode.KAFKA_STORAGE_ERROR)
        return replace(self.answer, low_watermark=partition.low_watermark)

    def _refused(self, error: ErrorCode) -> DeleteRecordsPartitionResult:
        return replace(self.answer, low_watermark=-1, error_code=error)


async def handle(request: DeleteRecordsRequest, call: Call) -> DeleteRecordsResponse:
    """Delete what is led here, then wait for the followers as long as the client would.

    A follower hears of the new log start when its fetch is answered, and tells its own with the
    next one, so this takes about two of `replica.fetch.wait.max.ms`, as Kafka's. A follower that
    takes longer makes it REQUEST_TIMED_OUT: the records are deleted all the same.
    """
    turns = Turns()
    begun = [
        (topic.name, await turns.each(topic.partitions, partial(_delete, topic.name, call)))
        for topic in request.topics
    ]
    deadline = trio.current_time() + timeout_s(request.timeout_ms)
    answered: list[DeleteRecordsTopicResult] = []
    for name, deletions in begun:
        answers: list[DeleteRecordsPartitionResult] = []
        for deletion in deletions:
            answers.append(await _answer(deletion, deadline))
            await turns.pass_on()
        answered.append(DeleteRecordsTopicResult(name=name, partitions=tuple(answers)))
    return DeleteRecordsResponse(topics=tuple(answered))


async def _answer(deletion: Deletion, deadline: float) -> DeleteRecordsPartitionResult:
    with trio.move_on_at(deadline):
        return await deletion.wait()
    return replace(deletion.answer, error_code=ErrorCode.REQUEST_TIMED_OUT)


def _delete(topic: str, call: Call, asked: DeleteRecordsPartition) -> Deletion:
    if topic in INTERNAL_TOPICS and call.node.metadata.topic(topic) is not None:
        return _failed(asked, ErrorCode.INVALID_TOPIC_EXCEPTION)
    partition = call.node.led(topic, asked.partition_index)
    if not isinstance(partition, Partition):
        return _failed(asked, partition)
    if not partition.log.config.deletes:
        return _failed(asked, ErrorCode.POLICY_VIOLATION)
    offset = asked.offset
    if offset == UP_TO_HIGH_WATERMARK:
        offset = partition.high_watermark
    if not 0 <= offset <= partition.high_watermark:
        return _failed(asked, ErrorCode.OFFSET_OUT_OF_RANGE)
    try:
        if offset > partition.log_start_offset:
            partition.delete_before(offset)
    except StorageError:
        return _failed(asked, ErrorCode.KAFKA_STORAGE_ERROR)
    answer = DeleteRecordsPartitionResult(
        partition_index=asked.partition_index,
        low_watermark=partition.low_watermark,
        error_code=ErrorCode.NONE,
    )
    return Deletion(answer, partition, offset)


def _failed(asked: DeleteRecordsPartition, error: ErrorCode) -> Deletion:
    return Deletion(
        DeleteRecordsPartitionResult(
            partition_index=asked.partition_index, low_watermark=-1, error_code=error
        )
    )

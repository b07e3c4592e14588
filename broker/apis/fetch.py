"""Fetch: batches from files to the socket, at once or as soon as there is enough.

Fetch sessions (KIP-227) are declined, as the protocol allows: every answer has session id 0, so
clients name all partitions in every request.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Final

import trio

from broker.apis.answers import FileAnswer
from broker.context import Call
from broker.log.results import NOTHING, FileSlice, OffsetOutOfRange, StorageError
from broker.replication.partition import Partition, Wakeup
from broker.sending import stand_in
from wire.errors import ErrorCode
from wire.messages.fetch import (
    FetchableTopicResponse,
    FetchLeaderIdAndEpoch,
    FetchPartition,
    FetchPartitionData,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)

READ_COMMITTED: Final = 1
NO_SESSION: Final = 0
TOPIC_IDS_SINCE: Final = 13
CLAIMS_NOTHING: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One partition of the request, with the topic's name wherever it came from."""

    topic: str | None
    partition: FetchPartition


@dataclass(slots=True)
class Collected:
    """What one look at the partitions found."""

    answers: list[FetchPartitionData] = field(default_factory=list)
    slices: list[FileSlice] = field(default_factory=list)
    total_bytes: int = 0
    is_final: bool = False
    """An error or a changed leader is told at once, not after the wait."""


async def handle(request: FetchRequest, call: Call) -> FetchResponse | FileAnswer:
    """Answer when `min_bytes` are there, something is wrong, or `max_wait_ms` is over."""
    if request.session_id != NO_SESSION and request.session_epoch > 0:
        return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND, responses=())
    asked = list(_asked(request, call))
    found = _collect(asked, request, call)
    if not _suffices(found, asked, request):
        found = await _collect_when_ready(asked, request, call)
    call.node.metrics.record_bytes_out += found.total_bytes
    message = FetchResponse(responses=_grouped(request.topics, found.answers))
    return FileAnswer(message=message, slices=found.slices)


def _asked(request: FetchRequest, call: Call) -> Iterator[Asked]:
    for topic in request.topics:
        name: str | None = topic.topic
        if call.api_version >= TOPIC_IDS_SINCE:
            view = call.node.metadata.topic_by_id(topic.topic_id)
            name = None if view is None else view.name
        for partition in topic.partitions:
            yield Asked(topic=name, partition=partition)


def _suffices(found: Collected, asked: Sequence[Asked], request: FetchRequest) -> bool:
    enough = found.total_bytes >= request.min_bytes or found.is_final
    return enough or request.max_wait_ms <= 0 or not asked


async def _collect_when_ready(
    asked: Sequence[Asked], request: FetchRequest, call: Call
) -> Collected:
    """Look again whenever a high watermark moves, until there is enough or the time is up."""
    wakeup = Wakeup()
    with ExitStack() as watching, trio.move_on_after(request.max_wait_ms / 1000):
        for one in asked:
            partition = call.node.led(one.topic or "", one.partition.partition)
            if isinstance(partition, Partition):
                watching.enter_context(partition.waking(wakeup))
        while True:
            await wakeup.wait()
            found = _collect(asked, request, call)
            if _suffices(found, asked, request):
                return found
    return _collect(asked, request, call)


def _collect(asked: Sequence[Asked], request: FetchRequest, call: Call) -> Collected:
    """Locate what there is, in the order asked for, within the limits.

    The first batch found is given whatever its size, so that a large one cannot block a consumer.
    """
    found = Collected()
    budget = min(request.max_bytes, call.node.config.fetch_max_bytes)
    for one in asked:
        answer, piece = _locate(one, request, call, budget, first=found.total_bytes == 0)
        found.answers.append(answer)
        found.slices.append(piece)
        found.total_bytes += piece.length
        found.is_final |= answer.error_code != ErrorCode.NONE
        budget = max(0, budget - piece.length)
    return found


def _locate(
    one: Asked, request: FetchRequest, call: Call, budget: int, *, first: bool
) -> tuple[FetchPartitionData, FileSlice]:
    index = one.partition.partition
    if one.topic is None:
        return _failed(index, ErrorCode.UNKNOWN_TOPIC_ID), NOTHING
    partition = call.node.led(one.topic, index)
    if not isinstance(partition, Partition):
        return _not_led(one.topic, index, partition, call), NOTHING
    wrong_epoch = check_epoch(partition, one.partition.current_leader_epoch)
    if wrong_epoch is not ErrorCode.NONE:
        return _not_led(one.topic, index, wrong_epoch, call), NOTHING
    committed = partition.high_watermark
    if request.isolation_level == READ_COMMITTED:
        committed = partition.last_stable_offset
    limit = min(one.partition.partition_max_bytes, budget)
    try:
        piece = partition.log.locate(
            one.partition.fetch_offset, limit, minimum_one_batch=first, stop_offset=committed
        )
    except StorageError:
        return _failed(index, ErrorCode.KAFKA_STORAGE_ERROR), NOTHING
    if isinstance(piece, OffsetOutOfRange):
        return _failed(index, ErrorCode.OFFSET_OUT_OF_RANGE, partition), NOTHING
    return _data(index, ErrorCode.NONE, partition, request.isolation_level, piece), piece


def check_epoch(partition: Partition, claimed: int) -> ErrorCode:
    """Return whether a client's idea of the leader epoch is ours (KIP-320); -1 claims nothing."""
    if claimed in {CLAIMS_NOTHING, partition.leader_epoch}:
        return ErrorCode.NONE
    if claimed < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.UNKNOWN_LEADER_EPOCH


def _data(
    index: int, error: ErrorCode, partition: Partition, isolation_level: int, piece: FileSlice
) -> FetchPartitionData:
    return FetchPartitionData(
        partition_index=index,
        error_code=error,
        high_watermark=partition.high_watermark,
        last_stable_offset=partition.last_stable_offset,
        log_start_offset=partition.log_start_offset,
        aborted_transactions=() if isolation_level == READ_COMMITTED else None,
        records=stand_in(piece.length),
    )


def _failed(index: int, error: ErrorCode, partition: Partition | None = None) -> FetchPartitionData:
    return FetchPartitionData(
        partition_index=index,
        error_code=error,
        high_watermark=-1 if partition is None else partition.high_watermark,
        log_start_offset=-1 if partition is None else partition.log_start_offset,
        aborted_transactions=None,
        records=b"",
    )


def _not_led(topic: str, index: int, error: ErrorCode, call: Call) -> FetchPartitionData:
    """Say who leads, for clients that can read it (KIP-951)."""
    view = call.node.metadata.topic(topic)
    known = None if view is None else view.partitions.get(index)
    if known is None or call.api_version < 12:
        return _failed(index, error)
    return FetchPartitionData(
        partition_index=index,
        error_code=error,
        high_watermark=-1,
        aborted_transactions=None,
        current_leader=FetchLeaderIdAndEpoch(
            leader_id=known.leader, leader_epoch=known.leader_epoch
        ),
        records=b"",
    )


def _grouped(
    topics: Sequence[FetchTopic], answers: Sequence[FetchPartitionData]
) -> tuple[FetchableTopicResponse, ...]:
    """Give each topic of the request its share of the answers, which are in the same order."""
    left = iter(answers)
    return tuple(
        FetchableTopicResponse(
            topic=topic.topic,
            topic_id=topic.topic_id,
            partitions=tuple(next(left) for _ in topic.partitions),
        )
        for topic in topics
    )

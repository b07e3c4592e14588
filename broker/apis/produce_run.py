"""A run of plain Produce requests: all batches of a partition are appended together.

    R1 [p0 p1]  R2 [p0 p1]  R3 [p0 p1]   ─►   p0: R1 R2 R3   p1: R1 R2 R3   one write each

Either every partition takes all of its batches as they are, or nothing is done, and each request
is handled by itself. Nothing is awaited in between, so that both see the same broker.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from typing import NamedTuple, TypeAlias

import trio

from broker.apis.answers import LaterAnswer
from broker.apis.produce import NO_ANSWER, VALID_ACKS, ProduceLater, PromisedAnswer, failed
from broker.apis.timeouts import timeout_s
from broker.context import Call
from broker.controller.topics import INTERNAL_TOPICS
from broker.framing import CloseConnection
from broker.log.results import StorageError
from broker.replication.partition import ALL_IN_SYNC, Partition
from wire.errors import ErrorCode
from wire.hot.produce_run import PlainBatch, ProduceRun, answer_frames
from wire.messages.produce import PartitionProduceResponse


class RunFrames(NamedTuple):
    """The answers to a run as whole frames, in the order of the requests; none with acks=0."""

    frames: Sequence[bytes]


AnswersLater: TypeAlias = Sequence[tuple[int, LaterAnswer]]
"""The answer to each request of a run with its correlation id, in the order of the requests."""


def append_run(
    view: memoryview, run: ProduceRun, call: Call, *, as_frames: bool
) -> RunFrames | AnswersLater | None:
    """Append all batches of a run; None if its requests are to be handled one by one.

    `call` is of a client without limits to its rights. Frames are returned where that is wanted,
    and nothing has to come true first. Raises CloseConnection for a failure with acks=0.
    """
    node, topic = call.node, run.topic
    if (
        run.acks not in VALID_ACKS
        or topic in INTERNAL_TOPICS
        or node.dynamic.fence.refuses(run.client_id, topic)
    ):
        return None
    batches: dict[int, list[PlainBatch]] = {}
    for one in run.batches():
        batches.setdefault(one.partition, []).append(one)
    led: dict[int, Partition] = {}
    for index, of_one in batches.items():
        partition = node.led(topic, index)
        if not isinstance(partition, Partition):
            return None
        if not partition.takes_run(of_one, acks=run.acks):
            return None
        led[index] = partition
    appended = {index: _append(led[index], view, of_one, call) for index, of_one in batches.items()}
    if run.acks == NO_ANSWER:
        _close_on_failure(topic, appended)
        return RunFrames(())
    if as_frames and _is_settled(run.acks, led, appended):
        return RunFrames(answer_frames(run, _places(run, led, appended)))
    return _later(run, led, appended)


Placed: TypeAlias = Sequence[int] | StorageError
"""Where each batch of one partition begins, or why none was appended."""


def _append(
    partition: Partition, view: memoryview, run: Sequence[PlainBatch], call: Call
) -> Placed:
    try:
        offsets = partition.append_run(view, run)
    except StorageError as error:
        return error
    metrics = call.node.metrics
    metrics.records_in += sum([one.record_count for one in run])
    metrics.record_bytes_in += sum([one.size for one in run])
    return offsets


def _close_on_failure(topic: str, appended: Mapping[int, Placed]) -> None:
    for index, placed in appended.items():
        if isinstance(placed, StorageError):
            reason = ErrorCode.KAFKA_STORAGE_ERROR.name
            raise CloseConnection(f"acks=0 for {topic!r} {index}: {reason}")


def _is_settled(acks: int, led: Mapping[int, Partition], appended: Mapping[int, Placed]) -> bool:
    """Say whether everything was appended, and is committed where that is asked for."""
    for index, placed in appended.items():
        if isinstance(placed, StorageError):
            return False
        one = led[index]
        if acks == ALL_IN_SYNC and (
            one.high_watermark < one.log_end_offset or one.has_committed_too_thinly
        ):
            return False
    return True


def _places(
    run: ProduceRun, led: Mapping[int, Partition], appended: Mapping[int, Placed]
) -> Iterator[tuple[int, int]]:
    """Return each batch's base offset and its log's start, in the order of the batches."""
    following = {
        index: zip(placed, repeat(led[index].log_start_offset), strict=False)
        for index, placed in appended.items()
        if not isinstance(placed, StorageError)
    }
    if len(following) == 1:
        return next(iter(following.values()))
    return (next(following[one.partition]) for one in run.batches())


def _following(appended: Mapping[int, Placed]) -> dict[int, Iterator[int]]:
    """Return what yields the base offsets of each partition's batches, one after the other."""
    return {
        index: iter(placed)
        for index, placed in appended.items()
        if not isinstance(placed, StorageError)
    }


def _later(
    run: ProduceRun, led: Mapping[int, Partition], appended: Mapping[int, Placed]
) -> list[tuple[int, LaterAnswer]]:
    """Return an answer to each request that is given once what was promised has come true."""
    deadline = trio.current_time() + timeout_s(run.timeout_ms)
    following = _following(appended)

    def promised(one: PlainBatch) -> PromisedAnswer:
        partition, placed = led[one.partition], appended[one.partition]
        if isinstance(placed, StorageError):
            return PromisedAnswer(failed(one.partition, ErrorCode.KAFKA_STORAGE_ERROR, str(placed)))
        base_offset = next(following[one.partition])
        answer = PartitionProduceResponse(
            index=one.partition,
            error_code=ErrorCode.NONE,
            base_offset=base_offset,
            log_start_offset=partition.log_start_offset,
        )
        if run.acks != ALL_IN_SYNC:
            return PromisedAnswer(answer)
        last_offset = base_offset + one.record_count - 1
        return PromisedAnswer(answer, partition, last_offset, partition.term)

    return [
        (
            request.correlation_id,
            ProduceLater([(run.topic, [promised(one) for one in request.batches])], deadline),
        )
        for request in run.requests
    ]

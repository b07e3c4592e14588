"""Produce: append batches, one per partition, as they came.

The records stay where the socket put them until the log has written them; nothing looks inside.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple, TypeAlias

import trio

from broker.apis.answers import LaterAnswer
from broker.apis.timeouts import timeout_s
from broker.context import Call
from broker.controller.topics import INTERNAL_TOPICS
from broker.fairness import RECORDS_AT_ONCE, Turns
from broker.framing import CloseConnection
from broker.led_partition import NotLeader
from broker.log.record_scan import unpacked_at_once
from broker.log.results import Appended, AppendResult, BatchRefused, Duplicate, StorageError
from broker.log.validation import KeyCheck, RecordRules
from broker.replication.partition import ALL_IN_SYNC, Partition
from broker.transactions.decisions import Producer
from broker.transactions.verification import ASK_AGAIN
from wire.acls import Operation, ResourceType
from wire.errors import ErrorCode
from wire.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceLeaderIdAndEpoch,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from wire.record_batch import (
    HEADER_BYTES,
    BatchHeader,
    CorruptBatch,
    claims_transaction,
    parse_header,
)
from wire.values import frozen

NO_ANSWER: Final = 0
ABORTABLE_SINCE: Final = 11
ADDS_SINCE: Final = 12
ADMIN_CLIENT_ID: Final = "__admin_client"
"""Whom Apache Kafka lets write to internal topics (ReplicaManager.appendToLocalLog); all others
could feed the coordinators what they do not expect."""
Led: TypeAlias = Partition | ErrorCode
"""What a batch is for, or why it is not led here."""
_UNNAMED: Final = "a transactional batch without a transactional id"
VALID_ACKS: Final = frozenset({ALL_IN_SYNC, NO_ANSWER, 1})


class PromisedAnswer(NamedTuple):
    """An answer for one partition, and what must come true before it may be given."""

    answer: PartitionProduceResponse
    partition: Partition | None = None
    """None where there is nothing to wait for."""
    last_offset: int = -1
    term: int = -1
    """The partition's at the append: leadership lost and won back in between is another log."""

    @property
    def is_kept(self) -> bool:
        """Whether the answer may be given now.

        Not by the high watermark of a follower: what lies below it is what the next leader wrote.
        """
        partition = self.partition
        return partition is None or (
            partition.is_led_here
            and partition.term == self.term
            and partition.high_watermark > self.last_offset
        )

    @property
    def kept(self) -> PartitionProduceResponse:
        """The answer, now that the batch is committed."""
        if self.partition is not None and self.partition.has_committed_too_thinly:
            return failed(self.answer.index, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
        return self.answer

    async def wait(self, deadline: float) -> PartitionProduceResponse:
        """Return the answer once every in-sync replica has the batch, or why it has not."""
        if self.partition is None or self.is_kept:
            return self.kept
        with trio.move_on_at(deadline):
            try:
                await self.partition.wait_committed(self.last_offset, term=self.term)
            except NotLeader:
                return failed(self.answer.index, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            except StorageError as error:
                return failed(self.answer.index, ErrorCode.KAFKA_STORAGE_ERROR, str(error))
            else:
                return self.kept
        return failed(self.answer.index, ErrorCode.REQUEST_TIMED_OUT)


async def handle(request: ProduceRequest, call: Call) -> ProduceResponse | LaterAnswer | None:
    """Append everything first, then wait for the in-sync replicas if the producer wants that.

    With acks=0 nothing is answered; a failure ends the connection, so that the producer looks for
    the leader again (as Apache Kafka does).
    """
    unnamed = _is_transaction_of_nobody(request)
    refuses_all = unnamed or _is_anothers_transaction(request, call)
    turns = Turns()
    promised: list[tuple[str, Sequence[PromisedAnswer]]] = []
    for topic in request.topic_data:
        promises: list[PromisedAnswer] = []
        may_write = call.rights.may(Operation.WRITE, ResourceType.TOPIC, topic.name)
        for data in topic.partition_data:
            led = call.node.led(topic.name, data.index)
            checked = _UNCHECKED
            if refuses_all:
                promises.append(_refuse_transaction(data, _UNNAMED if unnamed else None))
                continue
            if not may_write:
                promises.append(
                    PromisedAnswer(failed(data.index, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
                )
                continue
            if isinstance(led, Partition):
                checked = await _check_before(led, data, request, call)
                led = call.node.led(topic.name, data.index)
            promises.append(_append(led, checked, topic.name, data, request, call))
            await turns.pass_on()
        promised.append((topic.name, promises))
    if request.acks == ALL_IN_SYNC:
        later = ProduceLater(promised, trio.current_time() + timeout_s(request.timeout_ms))
        return later.kept if later.is_ready else later
    appended = [(name, [promise.answer for promise in promises]) for name, promises in promised]
    if request.acks == NO_ANSWER:
        _close_on_failure(appended)
        return None
    return _response(appended)


@frozen
class Checked:
    """What has been found out of a batch before its turn.

    transaction   NONE where its transaction is known to be open, or is none
    """

    keys: KeyCheck | None = None
    transaction: ErrorCode = ErrorCode.NONE


_UNCHECKED: Final = Checked()


async def _check_before(
    led: Partition, data: PartitionProduceData, request: ProduceRequest, call: Call
) -> Checked:
    """Find out what takes long, or others have to be asked; the append must follow at once."""
    rules = led.record_rules()
    keys = None if rules is None else await _check_beside(data, rules, call)
    if request.transactional_id is None or not data.records:
        return _UNCHECKED if keys is None else Checked(keys=keys)
    assert isinstance(data.records, memoryview), "decoded records are views of the receive buffer"
    try:
        header = parse_header(data.records)
    except CorruptBatch:
        return Checked(keys=keys)
    if not header.is_transactional:
        return Checked(keys=keys)
    producer = Producer(producer_id=header.producer_id, epoch=header.producer_epoch)
    adds = call.api_version >= ADDS_SINCE
    error = await call.node.verifier.verify(led, request.transactional_id, producer, adds=adds)
    if error is ErrorCode.NONE and adds and _comes_before_the_first(led, header):
        error = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    return Checked(keys=keys, transaction=error)


def _comes_before_the_first(led: Partition, header: BatchHeader) -> bool:
    """Say whether the first batch of a producer here is one that others have to come before.

    With transaction version 2 each transaction begins with sequence 0. The batch before this one
    has been refused, as while the coordinator moved, and is sent once more.
    """
    return header.base_sequence != 0 and led.log.producer(header.producer_id) is None


async def _check_beside(
    data: PartitionProduceData, rules: RecordRules, call: Call
) -> KeyCheck | None:
    """Look at the records of what takes long before its turn, without stopping the others.

    That is very many records, or more bytes than are unpacked at once: what a batch says of itself
    does not tell how many those are. Another broker may lead the partition by the time that the
    answer is back.
    """
    if not data.records:
        return None
    assert isinstance(data.records, memoryview), "decoded records are views of the receive buffer"
    try:
        header = parse_header(data.records)
    except CorruptBatch:
        return None
    if header.record_count <= RECORDS_AT_ONCE:
        payload = unpacked_at_once(data.records, header)
        if payload is not None:
            return lambda _header, _batch: rules.check_unpacked(header, payload)
    refused = await call.aside.beside(partial(rules.check, header, data.records))
    return lambda _header, _batch: refused


def _response(
    answered: Sequence[tuple[str, Sequence[PartitionProduceResponse]]],
) -> ProduceResponse:
    return ProduceResponse(
        responses=tuple(
            TopicProduceResponse(name=name, partition_responses=tuple(answers))
            for name, answers in answered
        )
    )


@frozen(kw_only=False)
class ProduceLater(LaterAnswer):
    """The batches appended for one request, and the time by which its producer wants the answer."""

    promised: Sequence[tuple[str, Sequence[PromisedAnswer]]]
    deadline: float

    @property
    def is_ready(self) -> bool:
        return all(promise.is_kept for _, promises in self.promised for promise in promises)

    @property
    def kept(self) -> ProduceResponse:
        """The answer, now that it is ready."""
        return _response(
            [(name, [one.kept for one in promises]) for name, promises in self.promised]
        )

    async def wait(self) -> ProduceResponse:
        """Return the response once every promise is kept or failed, at the deadline at latest."""
        return _response(
            [
                (name, [await one.wait(self.deadline) for one in promises])
                for name, promises in self.promised
            ]
        )


def _is_transaction_of_nobody(request: ProduceRequest) -> bool:
    """Say whether a partition's first batch belongs to a transaction that the request names not."""
    return request.transactional_id is None and _claims_transaction(request)


def _is_anothers_transaction(request: ProduceRequest, call: Call) -> bool:
    """Say whether a batch belongs to a transaction in whose name the client may not write."""
    transactional_id = request.transactional_id
    return (
        transactional_id is not None
        and not call.rights.may(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id)
        and _claims_transaction(request)
    )


def _claims_transaction(request: ProduceRequest) -> bool:
    return any(
        data.records is not None and claims_transaction(data.records)  # type: ignore[arg-type]
        for topic in request.topic_data
        for data in topic.partition_data
    )


def _refuse_transaction(data: PartitionProduceData, reason: str | None) -> PromisedAnswer:
    """Refuse as Apache Kafka does, the whole request, before anything else is looked at.

    Appended, the batch would hold the last stable offset, and every read-committed reader, for
    ever: nobody would end its transaction.
    """
    return PromisedAnswer(
        failed(data.index, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, reason)
    )


def _not_in_transaction(error: ErrorCode, index: int, call: Call) -> PartitionProduceResponse:
    """Say why a batch is not part of an open transaction (KIP-890); some of it passes by itself."""
    if error in ASK_AGAIN:
        reason = f"the transaction's coordinator cannot be asked now: {error.name}"
        return failed(index, ErrorCode.NOT_ENOUGH_REPLICAS, reason)
    if error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
        return failed(index, error, "the first batch of a transaction has sequence 0")
    if error is ErrorCode.PRODUCER_FENCED:
        error = ErrorCode.INVALID_PRODUCER_EPOCH
    elif error is ErrorCode.INVALID_TXN_STATE and call.api_version >= ABORTABLE_SINCE:
        error = ErrorCode.TRANSACTION_ABORTABLE
    return failed(index, error, "the partition is not part of an open transaction")


def _append(
    led: Led,
    checked: Checked,
    topic: str,
    data: PartitionProduceData,
    request: ProduceRequest,
    call: Call,
) -> PromisedAnswer:
    """Append, and note at once what has to come true: the leadership may change at any await.

    The log's end is at or behind the batch's: later batches come after it. So waiting for the end
    as it is now waits for the batch too, also for a repeated one, and for nothing that comes later.
    """
    refused = _refuse_outright(topic, data, checked, request, call)
    if refused is not None:
        return PromisedAnswer(refused)
    if not isinstance(led, Partition):
        return PromisedAnswer(_not_led(topic, data.index, led, call))
    assert isinstance(data.records, memoryview), "decoded records are views of the receive buffer"
    is_fenced = call.node.dynamic.fence.refuses(call.client_id, topic)
    try:
        appended = led.append_from_client(
            data.records,
            acks=request.acks,
            is_fenced=is_fenced,
            check_keys=checked.keys,
            is_verified=request.transactional_id is not None,
        )
    except StorageError as error:
        return PromisedAnswer(failed(data.index, ErrorCode.KAFKA_STORAGE_ERROR, str(error)))
    _count(appended, len(data.records), call, is_fenced=is_fenced)
    answer = _answer(data.index, appended)
    if request.acks != ALL_IN_SYNC or isinstance(appended, BatchRefused):
        return PromisedAnswer(answer)
    return PromisedAnswer(answer, led, led.log_end_offset - 1, led.term)


def _refuse_outright(
    topic: str, data: PartitionProduceData, checked: Checked, request: ProduceRequest, call: Call
) -> PartitionProduceResponse | None:
    """Refuse what no partition would take, and what its transaction's coordinator does not know."""
    if request.acks not in VALID_ACKS:
        return failed(data.index, ErrorCode.INVALID_REQUIRED_ACKS)
    if topic in INTERNAL_TOPICS and call.client_id != ADMIN_CLIENT_ID:
        reason = f"Cannot append to internal topic {topic}"
        return failed(data.index, ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
    if checked.transaction is not ErrorCode.NONE:
        return _not_in_transaction(checked.transaction, data.index, call)
    if not data.records:
        return failed(data.index, ErrorCode.INVALID_RECORD, "no records")
    return None


def _count(appended: Appended, size: int, call: Call, *, is_fenced: bool) -> None:
    metrics = call.node.metrics
    if isinstance(appended, AppendResult):
        metrics.records_in += appended.last_offset - appended.base_offset + 1
        metrics.record_bytes_in += max(size, HEADER_BYTES)
    elif isinstance(appended, BatchRefused) and is_fenced:
        metrics.fenced_batches += 1


def _answer(index: int, appended: Appended) -> PartitionProduceResponse:
    match appended:
        case AppendResult():
            return PartitionProduceResponse(
                index=index,
                error_code=ErrorCode.NONE,
                base_offset=appended.base_offset,
                log_append_time_ms=appended.log_append_time_ms,
                log_start_offset=appended.log_start_offset,
            )
        case Duplicate():
            return PartitionProduceResponse(
                index=index,
                error_code=ErrorCode.NONE,
                base_offset=appended.base_offset,
                log_append_time_ms=-1,
                log_start_offset=appended.log_start_offset,
            )
        case BatchRefused():
            return failed(index, appended.error, appended.reason, appended.record_errors)


def failed(
    index: int,
    error: ErrorCode,
    reason: str | None = None,
    record_errors: Sequence[tuple[int, str]] = (),
) -> PartitionProduceResponse:
    """Return the answer for a partition of which nothing was appended."""
    return PartitionProduceResponse(
        index=index,
        error_code=error,
        base_offset=-1,
        record_errors=tuple(
            BatchIndexAndErrorMessage(batch_index=place, batch_index_error_message=line)
            for place, line in record_errors
        ),
        error_message=reason,
    )


def _not_led(topic: str, index: int, error: ErrorCode, call: Call) -> PartitionProduceResponse:
    """Say who leads, for clients that can read it (KIP-951)."""
    view = call.node.metadata.topic(topic)
    partition = None if view is None else view.partitions.get(index)
    if partition is None or call.api_version < 10:
        return failed(index, error)
    return PartitionProduceResponse(
        index=index,
        error_code=error,
        base_offset=-1,
        current_leader=ProduceLeaderIdAndEpoch(
            leader_id=partition.leader, leader_epoch=partition.leader_epoch
        ),
    )


def _close_on_failure(appended: list[tuple[str, list[PartitionProduceResponse]]]) -> None:
    for name, answers in appended:
        for answer in answers:
            if answer.error_code != ErrorCode.NONE:
                reason = ErrorCode(answer.error_code).name
                raise CloseConnection(f"acks=0 for {name!r} {answer.index}: {reason}")

"""From what somebody wants appended to what is written: checked, numbered, in order. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from broker.log import producer_state, validation
from broker.log.config import LogConfig
from broker.log.markers import read_marker
from broker.log.producer_state import (
    NO_PRODUCER_ID,
    SEQUENCES,
    ProducerEntry,
    ProducerTable,
)
from broker.log.results import AppendOrigin, BatchRefused
from broker.log.segment import NumberedBatch
from broker.log.validation import record_rules
from wire.errors import ErrorCode
from wire.hot.produce_run import PlainBatch
from wire.record_batch import BatchHeader, Buffer

NO_TIME = -1


class Context(NamedTuple):
    """The log as the batches will find it."""

    config: LogConfig
    producers: ProducerTable
    log_end_offset: int
    leader_epoch: int
    now_ms: int
    is_verified: bool = False
    """Whether a batch may begin its producer's transaction here (KIP-890)."""

    @property
    def append_time_ms(self) -> int:
        """The time to stamp batches with; -1 where the topic keeps the producer's time."""
        return self.now_ms if self.config.stamps_append_time else NO_TIME


def prepare_produced(
    batch: Buffer, header: BatchHeader, context: Context
) -> Sequence[NumberedBatch] | BatchRefused:
    """Number a producer's batch (checked, no duplicate) if its sequence comes next."""
    if header.producer_id != NO_PRODUCER_ID:
        known = context.producers.get(header.producer_id)
        refused = producer_state.check(known, header, AppendOrigin.CLIENT)
        if refused is not None:
            return refused
        is_open = known is not None and known.is_in_transaction
        if header.is_transactional and not is_open and not context.is_verified:
            return BatchRefused(
                error=ErrorCode.INVALID_TXN_STATE,
                reason=f"producer {header.producer_id} has no transaction open",
            )
    return (_number(header, batch, context.log_end_offset, context),)


class RunShape(NamedTuple):
    """What a run of batches comes to; times are those of the batches' newest records."""

    size: int
    largest: int
    record_count: int
    oldest_ms: int
    newest_ms: int


def shape_of(run: Sequence[PlainBatch]) -> RunShape:
    """Return what a run of at least one batch comes to."""
    size = largest = record_count = 0
    oldest_ms = newest_ms = run[0].max_timestamp
    for one in run:
        size += one.size
        largest = max(largest, one.size)
        record_count += one.record_count
        oldest_ms = min(oldest_ms, one.max_timestamp)
        newest_ms = max(newest_ms, one.max_timestamp)
    return RunShape(size, largest, record_count, oldest_ms, newest_ms)


def may_append_run(shape: RunShape, config: LogConfig, stamp_ms: int) -> bool:
    """Say whether `check_produced` would have nothing against any of these sound batches.

    A topic whose batches are stamped, or whose records are looked at, takes them one by one.
    """
    return (
        not config.stamps_append_time
        and record_rules(config, stamp_ms) is None
        and shape.largest <= config.max_message_bytes
        and shape.largest <= config.segment_bytes
        and shape.newest_ms - stamp_ms <= config.newest_ms
        and shape.oldest_ms >= 0
    )


def is_next_of_its_producer(run: Sequence[PlainBatch], producers: ProducerTable) -> bool:
    """Say whether all are of one producer, in order, and come next; of none is always next."""
    first = run[0]
    expected = first.base_sequence
    for one in run:
        if one.producer_id != first.producer_id:
            return False
        if first.producer_id != NO_PRODUCER_ID:
            if one.producer_epoch != first.producer_epoch or one.base_sequence != expected:
                return False
            expected = (expected + one.record_count) % SEQUENCES
    if first.producer_id == NO_PRODUCER_ID:
        return True
    known = producers.get(first.producer_id)
    return (
        producer_state.find_duplicate(known, first) is None
        and producer_state.check(known, first, AppendOrigin.CLIENT) is None
    )


def prepare_own(batches: Buffer, context: Context) -> Sequence[NumberedBatch] | BatchRefused:
    """Check and number what this broker built: one or more batches of any kind."""
    checked = validation.check_own(batches, context.config)
    if isinstance(checked, BatchRefused):
        return checked
    numbered: list[NumberedBatch] = []
    staged: dict[int, ProducerEntry] = {}
    offset = context.log_end_offset
    for header, batch in checked:
        if header.producer_id != NO_PRODUCER_ID:
            known = staged.get(header.producer_id) or context.producers.get(header.producer_id)
            refused = producer_state.check(
                known, header, AppendOrigin.COORDINATOR
            ) or producer_state.check_marker(
                known, read_marker(batch) if header.is_control else None
            )
            if refused is not None:
                return refused
            staged[header.producer_id] = producer_state.advance(
                known, header, offset, context.now_ms
            )
        numbered.append(_number(header, batch, offset, context))
        offset = numbered[-1].header.next_offset
    return numbered


def prepare_fetched(
    batches: Buffer, log_end_offset: int, *, is_empty: bool
) -> Sequence[NumberedBatch] | BatchRefused:
    """Check what a leader sent; offsets and epochs are the leader's."""
    checked = validation.check_fetched(batches, log_end_offset, is_empty=is_empty)
    if isinstance(checked, BatchRefused):
        return checked
    return [validation.as_fetched(header, batch) for header, batch in checked]


def _number(
    header: BatchHeader, batch: Buffer, base_offset: int, context: Context
) -> NumberedBatch:
    return validation.number(
        header,
        batch,
        base_offset=base_offset,
        leader_epoch=context.leader_epoch,
        append_time_ms=context.append_time_ms,
    )

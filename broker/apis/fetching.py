"""One partition of a Fetch: may it be read here, from where to where, and what is to be told."""

from typing import Final

from broker.context import Call
from broker.log.results import NOTHING, FileSlice, OffsetOutOfRange, StorageError
from broker.replication.fetch_sessions import CachedPartition
from broker.replication.partition import Partition
from broker.replication.preferred import RACK_AWARE, preferred_replica
from broker.replication.truncation import Divergence, UnknownEpoch, find_divergence
from broker.sending import stand_in
from wire.acls import Operation, ResourceType
from wire.errors import ErrorCode
from wire.messages.fetch import (
    AbortedTransaction,
    FetchEpochEndOffset,
    FetchLeaderIdAndEpoch,
    FetchPartitionData,
)
from wire.values import frozen

READ_COMMITTED: Final = 1
CLAIMS_NOTHING: Final = -1
LEADER_TOLD_SINCE: Final = 12
NONE_ABORTED: Final = None
"""What readers of everything are told of aborted transactions."""


@frozen
class FetchParams:
    """The reader of a Fetch, and the settings that hold for all its partitions (FetchParams)."""

    call: Call
    replica_id: int
    replica_epoch: int
    isolation_level: int
    rack_id: str
    reads_followers: bool
    max_bytes: int
    now_ms: int

    @property
    def is_follower(self) -> bool:
        return self.replica_id >= 0


@frozen
class LogReadResult:
    """The answer for one partition. Settled: the partition has no more to tell until it moves.

    Behind: there is more to read that did not fit, or that lies in the next segment.
    """

    data: FetchPartitionData
    piece: FileSlice
    is_final: bool = False
    is_settled: bool = False
    is_behind: bool = False


def read_partition(
    one: CachedPartition, params: FetchParams, budget: int, *, first: bool, notes_position: bool
) -> LogReadResult:
    """Look at one partition that somebody wants; watch it from now on."""
    partition = _resolve(one, params)
    if isinstance(partition, ErrorCode):
        one.attach(None)
        one.follower = None
        if partition is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            return _failed(one, partition)
        return _refused(one, partition, params)
    one.attach(partition)
    wrong = check_epoch(partition, one.asked.current_leader_epoch)
    if wrong is ErrorCode.NONE and params.is_follower:
        one.follower = partition.follower(params.replica_id)
        if one.follower is None:
            # The controller has added the replica, and this leader has not heard of it yet.
            wrong = ErrorCode.UNKNOWN_LEADER_EPOCH
    if wrong is not ErrorCode.NONE:
        one.follower = None
        return _refused(one, wrong, params)
    try:
        return _read(one, partition, params, budget, first=first, notes_position=notes_position)
    except StorageError:
        return _failed(one, ErrorCode.KAFKA_STORAGE_ERROR)


def _resolve(one: CachedPartition, params: FetchParams) -> Partition | ErrorCode:
    """Return the replica that may be read here, or what to answer."""
    node = params.call.node
    topic, index = one.key
    if one.name is None:
        if isinstance(topic, str):
            one.name = topic
        else:
            view = node.metadata.topic_by_id(topic)
            if view is None:
                return ErrorCode.UNKNOWN_TOPIC_ID
            one.name = view.name
    if not params.call.rights.may(Operation.READ, ResourceType.TOPIC, one.name):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    led = node.led(one.name, index)
    if isinstance(led, Partition):
        return _same_topic(one, led)
    if params.reads_followers:
        held = node.partitions.get(one.name, index)
        if held is not None and not held.is_stopped:
            return _same_topic(one, held)
    return led


def _same_topic(one: CachedPartition, partition: Partition) -> Partition | ErrorCode:
    """A topic that was created anew under its name is another one."""
    key = one.key[0]
    if isinstance(key, str) or key == partition.leadership.topic_id:
        return partition
    one.name = None
    return ErrorCode.INCONSISTENT_TOPIC_ID


def check_epoch(partition: Partition, claimed: int) -> ErrorCode:
    """Return whether a client's idea of the leader epoch is ours (KIP-320); -1 claims nothing.

    Since Fetch 11 a follower serves consumers too, so a client that claims nothing is not told that
    the leader changed: it goes on in a log that may have been cut meanwhile.
    """
    if claimed in {CLAIMS_NOTHING, partition.leader_epoch}:
        return ErrorCode.NONE
    if claimed < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.UNKNOWN_LEADER_EPOCH


def _read(
    one: CachedPartition,
    partition: Partition,
    params: FetchParams,
    budget: int,
    *,
    first: bool,
    notes_position: bool,
) -> LogReadResult:
    asked = one.asked
    if asked.fetch_offset < partition.log_start_offset:
        return _failed(one, ErrorCode.OFFSET_OUT_OF_RANGE, partition)
    try:
        divergence = find_divergence(partition.log, asked.fetch_offset, asked.last_fetched_epoch)
    except UnknownEpoch:
        return _failed(one, ErrorCode.OFFSET_OUT_OF_RANGE, partition)
    if divergence is not None:
        return LogReadResult(
            data=_data(one, partition, NOTHING, params, divergence=divergence),
            piece=NOTHING,
            is_final=True,
        )
    nearer = _nearer_replica(partition, params, asked.fetch_offset)
    if nearer is not None:
        return LogReadResult(
            data=_data(one, partition, NOTHING, params, preferred=nearer),
            piece=NOTHING,
            is_final=True,
        )
    stop = _readable_end(partition, params)
    is_held_back = params.is_follower and _is_held_back(partition, params)
    piece = partition.log.locate(
        asked.fetch_offset,
        0 if is_held_back else min(asked.partition_max_bytes, budget),
        minimum_one_batch=first and not is_held_back,
        stop_offset=stop,
    )
    if isinstance(piece, OffsetOutOfRange):
        return _failed(one, ErrorCode.OFFSET_OUT_OF_RANGE, partition)
    if notes_position and params.is_follower:
        partition.fetched_by(
            params.replica_id,
            asked.fetch_offset,
            asked.log_start_offset,
            broker_epoch=params.replica_epoch,
        )
    return LogReadResult(
        data=_data(one, partition, piece, params),
        piece=piece,
        is_settled=not piece.length and asked.fetch_offset >= stop,
        is_behind=piece.length > 0 and piece.end_offset < stop,
    )


def _nearer_replica(partition: Partition, params: FetchParams, fetch_offset: int) -> int | None:
    """Return the replica in the consumer's rack, None where this broker serves the consumer."""
    node = params.call.node
    selects = node.config.replica_selector_class == RACK_AWARE
    if not selects or not params.rack_id or params.is_follower:
        return None
    return preferred_replica(partition, node.metadata.brokers, params.rack_id, fetch_offset)


def _is_held_back(partition: Partition, params: FetchParams) -> bool:
    """Say whether a follower has to wait for its records, because too many went to such as it."""
    return (
        partition.leaves_slowly
        and params.replica_id not in partition.in_sync_replicas
        and params.call.node.partitions.quotas.leader.is_exceeded(params.now_ms)
    )


def _readable_end(partition: Partition, params: FetchParams) -> int:
    """Followers read all there is, consumers what is committed, some only what is decided."""
    if params.is_follower:
        return partition.log_end_offset
    if params.isolation_level == READ_COMMITTED:
        return partition.last_stable_offset
    return partition.high_watermark


def _data(
    one: CachedPartition,
    partition: Partition,
    piece: FileSlice,
    params: FetchParams,
    *,
    divergence: Divergence | None = None,
    preferred: int = -1,
) -> FetchPartitionData:
    aborted: tuple[AbortedTransaction, ...] | None = NONE_ABORTED
    if params.isolation_level == READ_COMMITTED:
        aborted = _aborted(one, partition, piece)
    return FetchPartitionData(
        partition_index=one.key[1],
        error_code=ErrorCode.NONE,
        high_watermark=partition.high_watermark,
        last_stable_offset=partition.last_stable_offset,
        log_start_offset=partition.log_start_offset,
        diverging_epoch=FetchEpochEndOffset()
        if divergence is None
        else FetchEpochEndOffset(epoch=divergence.epoch, end_offset=divergence.end_offset),
        aborted_transactions=aborted,
        preferred_read_replica=preferred,
        records=stand_in(piece.length),
    )


def _aborted(
    one: CachedPartition, partition: Partition, piece: FileSlice
) -> tuple[AbortedTransaction, ...]:
    """Return which of the transactions in the piece came to nothing."""
    if not piece.length:
        return ()
    return tuple(
        AbortedTransaction(producer_id=found.producer_id, first_offset=found.first_offset)
        for found in partition.log.aborted_transactions(one.asked.fetch_offset, piece.end_offset)
    )


def _failed(
    one: CachedPartition, error: ErrorCode, partition: Partition | None = None
) -> LogReadResult:
    return LogReadResult(
        data=FetchPartitionData(
            partition_index=one.key[1],
            error_code=error,
            high_watermark=-1 if partition is None else partition.high_watermark,
            log_start_offset=-1 if partition is None else partition.log_start_offset,
            aborted_transactions=NONE_ABORTED,
            records=b"",
        ),
        piece=NOTHING,
        is_final=True,
    )


def _refused(one: CachedPartition, error: ErrorCode, params: FetchParams) -> LogReadResult:
    """Say who leads, to clients that can read it (KIP-951)."""
    view = None if one.name is None else params.call.node.metadata.topic(one.name)
    known = None if view is None else view.partitions.get(one.key[1])
    if known is None or params.call.api_version < LEADER_TOLD_SINCE:
        return _failed(one, error)
    return LogReadResult(
        data=FetchPartitionData(
            partition_index=one.key[1],
            error_code=error,
            high_watermark=-1,
            aborted_transactions=NONE_ABORTED,
            current_leader=FetchLeaderIdAndEpoch(
                leader_id=known.leader, leader_epoch=known.leader_epoch
            ),
            records=b"",
        ),
        piece=NOTHING,
        is_final=True,
    )

"""The records of `__transaction_state`, as Kafka's transaction coordinator writes and reads them.

Every key and value starts with an int16 version. Key 0 is a transactional id. Values are read in
versions 0 and 1 (1 is flexible). They are written as Kafka 3.9 writes them, as 0, except where only
1 has a place for what is kept. A null value is a tombstone: the id has expired. Source of the
layouts: Kafka's `TransactionLogKey.json` and `TransactionLogValue.json`.
"""

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import ClassVar, Final

from wire.primitives import Buffer, MalformedMessage
from wire.schema import decode_prefix, encode, int8, int16, int32, int64, message, string, tagged
from wire.topic_partition import TopicPartition
from wire.values import frozen

KEY_VERSION: Final = 0
PLAIN, FLEXIBLE = 0, 1
"""Versions of a value."""
BUMPS_EPOCH: Final = 2
"""The transaction version whose clients get the next epoch with each end (KIP-890)."""
NO_TIMESTAMP: Final = -1
_VERSION_BYTES: Final = 2


class TransactionStatus(IntEnum):
    """How far a transaction has come, by the numbers that records have for it.

    PREPARE_EPOCH_FENCE and DEAD are never written.
    """

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5

    @property
    def label(self) -> str:
        """Kafka's name of it, as in ListTransactions."""
        return "".join(part.capitalize() for part in self.name.split("_"))


@frozen
class TransactionMetadata:
    """The state that is kept of a transactional id. Times in milliseconds; -1 where there is none.

    partitions   those that are part of the transaction, and lack its end
    """

    producer_id: int
    producer_epoch: int
    timeout_ms: int
    status: TransactionStatus
    partitions: frozenset[TopicPartition] = frozenset()
    updated_ms: int = NO_TIMESTAMP
    started_ms: int = NO_TIMESTAMP
    previous_producer_id: int = -1
    """The one before the last change of ids, -1 for none."""
    next_producer_id: int = -1
    """The one that follows once the end is complete, as epochs are used up; -1 for none."""
    client_version: int = 0
    """The transaction version of the client whose transaction it is: BUMPS_EPOCH, or less."""
    previous_epoch: int = -1
    """The one of the producer that asked for this one, -1 for none; no version holds it."""


@message
class _Partitions:
    topic: string
    partition_ids: tuple[int32, ...]


@message
class _Value:
    API_KEY: ClassVar[int] = -1
    VERSIONS: ClassVar[range] = range(2)
    FLEXIBLE_SINCE: ClassVar[int] = 1

    producer_id: int64
    previous_producer_id: int64 = tagged(0, since=1, default=-1)
    next_producer_id: int64 = tagged(1, since=1, default=-1)
    producer_epoch: int16
    transaction_timeout_ms: int32
    transaction_status: int8
    transaction_partitions: tuple[_Partitions, ...] | None
    transaction_last_update_timestamp_ms: int64
    transaction_start_timestamp_ms: int64
    client_transaction_version: int16 = tagged(2, since=1, default=0)


@message
class _Key:
    API_KEY: ClassVar[int] = -1
    VERSIONS: ClassVar[range] = range(1)
    FLEXIBLE_SINCE: ClassVar[int] = 1

    transactional_id: string


@frozen
class UnknownKey:
    """A key of a version unknown here."""

    version: int


def encode_key(transactional_id: str) -> bytes:
    """Return the key's bytes. Raises `wire.schema.Unencodable` beyond 32,767 bytes."""
    return KEY_VERSION.to_bytes(_VERSION_BYTES) + encode(
        _Key(transactional_id=transactional_id), KEY_VERSION
    )


def decode_key(key: Buffer) -> str | UnknownKey:
    """Return the transactional id; MalformedMessage if the key is damaged."""
    version = _version(key)
    if version not in _Key.VERSIONS:
        return UnknownKey(version=version)
    read, end = decode_prefix(_Key, key, version, _VERSION_BYTES)
    _expect_end(key, end)
    return read.transactional_id


def encode_value(value: TransactionMetadata) -> bytes:
    """Return the value's bytes: without partitions at all for EMPTY, as Kafka has it."""
    is_empty = value.status is TransactionStatus.EMPTY
    written = _Value(
        producer_id=value.producer_id,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        producer_epoch=value.producer_epoch,
        transaction_timeout_ms=value.timeout_ms,
        transaction_status=value.status,
        transaction_partitions=None
        if is_empty
        else tuple(
            _Partitions(topic=topic, partition_ids=indexes)
            for topic, indexes in by_topic(value.partitions).items()
        ),
        transaction_last_update_timestamp_ms=value.updated_ms,
        transaction_start_timestamp_ms=value.started_ms,
        client_transaction_version=value.client_version,
    )
    is_plain = (
        value.previous_producer_id == value.next_producer_id == -1 and value.client_version == 0
    )
    version = PLAIN if is_plain else FLEXIBLE
    return version.to_bytes(_VERSION_BYTES) + encode(written, version)


def decode_value(value: Buffer) -> TransactionMetadata:
    """Return what is kept; MalformedMessage if damaged, or of a version or status unknown here."""
    version = _version(value)
    if version not in _Value.VERSIONS:
        raise _malformed(f"unknown version {version}")
    read, end = decode_prefix(_Value, value, version, _VERSION_BYTES)
    _expect_end(value, end)
    try:
        status = TransactionStatus(read.transaction_status)
    except ValueError:
        raise _malformed(f"unknown status {read.transaction_status}") from None
    return TransactionMetadata(
        producer_id=read.producer_id,
        producer_epoch=read.producer_epoch,
        timeout_ms=read.transaction_timeout_ms,
        status=status,
        partitions=frozenset(
            TopicPartition(each.topic, index)
            for each in read.transaction_partitions or ()
            for index in each.partition_ids
        ),
        updated_ms=read.transaction_last_update_timestamp_ms,
        started_ms=read.transaction_start_timestamp_ms,
        previous_producer_id=read.previous_producer_id,
        next_producer_id=read.next_producer_id,
        client_version=read.client_transaction_version,
    )


def by_topic(partitions: frozenset[TopicPartition]) -> Mapping[str, tuple[int, ...]]:
    """Return the indexes of each topic's partitions, all in order."""
    found: dict[str, list[int]] = {}
    for topic, index in sorted(partitions):
        found.setdefault(topic, []).append(index)
    return MappingProxyType({topic: tuple(indexes) for topic, indexes in found.items()})


def _version(buffer: Buffer) -> int:
    if len(buffer) < _VERSION_BYTES:
        raise _malformed("shorter than its version")
    return int.from_bytes(buffer[:_VERSION_BYTES], signed=True)


def _expect_end(buffer: Buffer, end: int) -> None:
    if end != len(buffer):
        raise _malformed(f"{len(buffer) - end} bytes too many", end)


def _malformed(reason: str, position: int = 0) -> MalformedMessage:
    return MalformedMessage(reason, position=position, where="__transaction_state")

"""Decided records as batches for the log, and the log's batches as the last record of each key."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, TypeAlias, get_args

from broker.groups.consumer.member import contradiction as consumer_contradiction
from broker.groups.group import contradiction
from broker.groups.write_operation import GroupRecord
from wire import consumer_group_records
from wire.consumer_offsets import (
    GROUP_KEY_VERSION,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetKey,
    OffsetValue,
    UnknownKey,
    decode_group_value,
    decode_key,
    decode_offset_value,
    encode_group_value,
    encode_key,
    encode_offset_value,
)
from wire.primitives import Buffer, MalformedMessage, Reader, read_int16
from wire.record_batch import BatchHeader, Record, build_batch, iterate_records
from wire.record_batch.building import BatchFields
from wire.values import frozen

BATCH_BYTES: Final = 512 * 1024
"""An operation of many records becomes several batches of about this size: no message limit is
below it."""

_PER_RECORD_BYTES: Final = 32

_ORDER: Final = tuple(
    version.to_bytes(2)
    for version in (
        GROUP_KEY_VERSION,
        *sorted(key.VERSION for key in get_args(consumer_group_records.Key)),
    )
)
"""Groups before their members, and both before offsets, whose keys have other versions."""

Raw: TypeAlias = tuple[bytes, bytes | None]


def batches(
    records: list[GroupRecord], wall_ms: int, producer: tuple[int, int] | None = None
) -> Iterator[tuple[bytes, list[GroupRecord]]]:
    """Yield batches ready to append, each with the records that are in it.

    With a producer (id and epoch) they are part of its transaction.
    """
    fields: BatchFields = {}
    if producer is not None:
        producer_id, epoch = producer
        fields = {
            "producer_id": producer_id,
            "producer_epoch": epoch,
            "base_sequence": 0,  # not checked; Kafka writes the same
            "is_transactional": True,
        }
    encoded: list[Record] = []
    taken: list[GroupRecord] = []
    size = 0
    for record in records:
        key, value = _encode(record)
        grown = size + len(key) + len(value or b"") + _PER_RECORD_BYTES
        if encoded and grown > BATCH_BYTES:
            yield build_batch(encoded, **fields), taken
            encoded, taken, grown = [], [], grown - size
        size = grown
        encoded.append(
            Record(offset=len(encoded), timestamp_ms=wall_ms, key=key, value=value, headers=())
        )
        taken.append(record)
    if encoded:
        yield build_batch(encoded, **fields), taken


def _encode(record: GroupRecord) -> Raw:
    key, value = record
    if not isinstance(key, OffsetKey | GroupMetadataKey):
        assert not isinstance(value, OffsetValue | GroupMetadataValue)
        encoded = None if value is None else consumer_group_records.encode_value(value)
        return consumer_group_records.encode_key(key), encoded
    if value is None:
        return encode_key(key), None
    if isinstance(value, OffsetValue):
        return encode_key(key), encode_offset_value(value)
    assert isinstance(value, GroupMetadataValue)
    return encode_key(key), encode_group_value(value)


class ControlType(IntEnum):
    """The end of a transaction, as its marker says it; the second int16 of its key."""

    ABORT = 0
    COMMIT = 1


@frozen
class UnreadableRecord:
    """A record that cannot be read, or contradicts itself: where it is, and why."""

    offset: int
    reason: str


@dataclass(slots=True, kw_only=True)
class LatestRecords:
    """The last value of each key of a log, undecoded, so that superseded ones cost little.

    Records of a transaction count from its commit marker on, or never.
    """

    _latest: dict[bytes, tuple[int, bytes]] = field(default_factory=dict)
    _open: dict[int, dict[bytes, tuple[int, bytes | None]]] = field(default_factory=dict)
    record_count: int = 0

    def add(self, header: BatchHeader, batch: Buffer) -> None:
        """Take in one whole batch; CorruptBatch when it cannot be taken apart."""
        self.record_count += header.record_count
        if header.is_control:
            self._end_transaction(header.producer_id, batch)
            return
        written = (
            (record.key, (record.offset, record.value))
            for record in iterate_records(batch)
            if record.key is not None
        )
        if header.is_transactional:
            self._open.setdefault(header.producer_id, {}).update(written)
            return
        for key, entry in written:
            self._put(key, entry)

    def _put(self, key: bytes, entry: tuple[int, bytes | None]) -> None:
        """Take what counts now; what was written before it in an open transaction never will."""
        for pending in self._open.values():
            pending.pop(key, None)
        offset, value = entry
        if value is None:
            self._latest.pop(key, None)
        else:
            self._latest[key] = (offset, value)

    def _end_transaction(self, producer_id: int, batch: Buffer) -> None:
        pending = self._open.pop(producer_id, {})
        for record in iterate_records(batch):
            reader = Reader(record.key or b"")
            reader.take(read_int16)
            if reader.take(read_int16) == ControlType.COMMIT:
                for key, entry in pending.items():
                    self._put(key, entry)

    def pending(self) -> Iterator[tuple[int, GroupRecord] | UnreadableRecord]:
        """Yield what waits for the end of a transaction, each with its producer's id."""
        for producer_id, records in self._open.items():
            for raw_key, (offset, value) in records.items():
                try:
                    record = None if value is None else _decode(raw_key, value)
                except MalformedMessage as fault:
                    yield UnreadableRecord(offset=offset, reason=str(fault))
                else:
                    if record is not None:
                        yield producer_id, record

    def decoded(self) -> Iterator[GroupRecord | UnreadableRecord]:
        """Yield what holds at the log's end: groups first, then their offsets.

        In this order no group has to be invented for an offset before its own record comes. Keys
        of other kinds, of share groups for instance, are left out.
        """
        by_kind: dict[bytes, list[bytes]] = {kind: [] for kind in (*_ORDER, b"")}
        for raw_key in self._latest:
            by_kind[raw_key[:2] if raw_key[:2] in by_kind else b""].append(raw_key)
        for raw_keys in by_kind.values():
            for raw_key in raw_keys:
                offset, value = self._latest[raw_key]
                try:
                    record = _decode(raw_key, value)
                except MalformedMessage as fault:
                    yield UnreadableRecord(offset=offset, reason=str(fault))
                else:
                    if record is not None:
                        yield record


def _decode(raw_key: bytes, value: bytes) -> GroupRecord | None:
    key = decode_key(raw_key)
    match key:
        case GroupMetadataKey():
            group = decode_group_value(value)
            reason = contradiction(group)
            if reason is not None:
                raise MalformedMessage(reason, position=0, where="__consumer_offsets group value")
            return key, group
        case OffsetKey():
            return key, decode_offset_value(value)
        case UnknownKey():
            other = consumer_group_records.decode_key(raw_key)
            if other is None:
                return None
            told = consumer_group_records.decode_value(other, value)
            reason = consumer_contradiction(told)
            if reason is not None:
                raise MalformedMessage(reason, position=0, where="__consumer_offsets member value")
            return other, told

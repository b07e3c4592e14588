"""The log of groups read back: the last record of each key counts, transactions when committed."""

import pytest

from broker.groups.records import ControlType, LatestRecords, UnreadableRecord
from wire.consumer_offsets import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetKey,
    OffsetValue,
    encode_group_value,
    encode_key,
    encode_offset_value,
)
from wire.primitives import MalformedMessage, pack_int16
from wire.record_batch import BatchFields, Record, build_batch, iterate_batches

PARTITION = OffsetKey(group="g", topic="orders", partition=0)
OTHER = OffsetKey(group="g", topic="orders", partition=1)


def _value(offset: int) -> OffsetValue:
    return OffsetValue(offset=offset, commit_timestamp_ms=0)


def _record(key: bytes, value: bytes | None, offset: int = 0) -> Record:
    return Record(offset=offset, timestamp_ms=0, key=key, value=value, headers=())


def _offset(key: OffsetKey, offset: int | None) -> Record:
    value = None if offset is None else encode_offset_value(_value(offset))
    return _record(encode_key(key), value)


class Log:
    """Batches one after another, as a coordinator reads them."""

    def __init__(self) -> None:
        self.latest = LatestRecords()
        self._end = 0

    def add(self, record: Record, fields: BatchFields | None = None) -> "Log":
        chosen: BatchFields = {**(fields or {}), "base_offset": self._end}
        batch = build_batch([record], **chosen)
        self._end += 1
        for header, view in iterate_batches(batch):
            self.latest.add(header, view)
        return self

    def in_transaction(self, record: Record, producer_id: int = 7) -> "Log":
        return self.add(record, {"producer_id": producer_id, "is_transactional": True})

    def end(self, outcome: ControlType, producer_id: int = 7) -> "Log":
        marker = _record(pack_int16(0) + pack_int16(outcome), b"\x00\x00\x00\x00\x00\x00")
        return self.add(
            marker,
            {"producer_id": producer_id, "is_transactional": True, "is_control": True},
        )

    @property
    def offsets(self) -> dict[OffsetKey, int]:
        found: dict[OffsetKey, int] = {}
        for record in self.latest.decoded():
            assert not isinstance(record, UnreadableRecord)
            key, value = record
            assert isinstance(key, OffsetKey)
            assert isinstance(value, OffsetValue)
            found[key] = value.offset
        return found


def test_the_last_value_of_a_key_wins_and_a_tombstone_removes_it() -> None:
    log = Log().add(_offset(PARTITION, 1)).add(_offset(OTHER, 5)).add(_offset(PARTITION, 2))
    assert log.offsets == {PARTITION: 2, OTHER: 5}
    assert log.add(_offset(OTHER, None)).offsets == {PARTITION: 2}
    assert log.latest.record_count == 4


def test_an_offset_of_a_transaction_counts_from_its_commit_on() -> None:
    log = Log().add(_offset(PARTITION, 1)).in_transaction(_offset(PARTITION, 9))
    assert log.offsets == {PARTITION: 1}
    assert list(log.latest.pending())
    assert log.end(ControlType.COMMIT).offsets == {PARTITION: 9}
    assert not list(log.latest.pending())


@pytest.mark.parametrize("later", [2, None])
def test_what_was_committed_or_deleted_behind_it_is_not_taken_back(later: int | None) -> None:
    """As in Kafka (CommitRecordMetadataAndOffset.isOlderThan): the later record counts."""
    log = Log().in_transaction(_offset(PARTITION, 9)).add(_offset(PARTITION, later))
    told = {} if later is None else {PARTITION: later}
    assert log.end(ControlType.COMMIT).offsets == told


def test_an_aborted_transaction_leaves_no_trace() -> None:
    log = Log().add(_offset(PARTITION, 1)).in_transaction(_offset(PARTITION, 9))
    assert log.end(ControlType.ABORT).offsets == {PARTITION: 1}
    assert log.end(ControlType.COMMIT).offsets == {PARTITION: 1}


def test_transactions_of_several_producers_do_not_mix() -> None:
    log = Log().in_transaction(_offset(PARTITION, 1), 7).in_transaction(_offset(OTHER, 2), 8)
    assert log.end(ControlType.COMMIT, 8).offsets == {OTHER: 2}
    assert log.end(ControlType.ABORT, 7).offsets == {OTHER: 2}


def test_groups_come_before_their_offsets() -> None:
    group = GroupMetadataKey(group="g")
    value = GroupMetadataValue(protocol_type="consumer", generation=3)
    log = (
        Log().add(_offset(PARTITION, 1)).add(_record(encode_key(group), encode_group_value(value)))
    )
    assert list(log.latest.decoded()) == [(group, value), (PARTITION, _value(1))]


def test_records_of_other_protocols_are_left_out() -> None:
    log = Log().add(_record(pack_int16(10) + b"new", b"value")).add(_offset(PARTITION, 1))
    assert log.offsets == {PARTITION: 1}


@pytest.mark.parametrize(
    ("key", "value"),
    [(b"", b"value"), (encode_key(PARTITION), b""), (encode_key(PARTITION)[:-1], b"")],
)
def test_what_cannot_be_read_is_named_by_its_offset(key: bytes, value: bytes) -> None:
    log = Log().add(_offset(OTHER, 1)).add(_record(key, value))
    (damage,) = [record for record in log.latest.decoded() if isinstance(record, UnreadableRecord)]
    assert damage.offset == 1
    assert "__consumer_offsets" in damage.reason


def test_a_marker_that_cannot_be_read_stops_the_load() -> None:
    log = Log()
    fields: BatchFields = {"producer_id": 7, "is_transactional": True, "is_control": True}
    with pytest.raises(MalformedMessage):
        log.add(_record(b"\x00", b""), fields)

"""What is read from fetched batches: committed records, and a named hole for everything else."""

import pytest

from spark_audit.scan.committed import (
    AbortedTransaction,
    CommittedBatch,
    CommittedLog,
    Hole,
    HoleReason,
    SealedBatch,
)
from spark_audit.snapshot.origins import Brought, Part
from wire.compression import Compression
from wire.record_batch import (
    HEADER_BYTES,
    Record,
    UnsupportedMagic,
    build_batch,
    parse_header,
)
from wire.record_batch.checksum import crc32c
from wire.record_batch.header import pack_header

CRC_AT = 17
OFFSET_DELTA_AT = 3
"""In a record whose length and time delta take one byte each."""
ABORT_MARKER = b"\x00\x00\x00\x00"
COMMIT_MARKER = b"\x00\x00\x00\x01"


def _batch(*offsets: int, producer_id: int = -1, transactional: bool = False) -> bytes:
    records = [Record(offset, 1_000 + offset, b"k", b"v%d" % offset) for offset in offsets]
    return build_batch(
        records,
        base_offset=offsets[0],
        producer_id=producer_id,
        producer_epoch=0 if producer_id >= 0 else -1,
        is_transactional=transactional,
    )


def _marker(offset: int, producer_id: int, key: bytes) -> bytes:
    return build_batch(
        [Record(offset, 1_000, key, b"\x00" * 6)],
        base_offset=offset,
        producer_id=producer_id,
        producer_epoch=0,
        is_transactional=True,
        is_control=True,
    )


def _read(
    start: int,
    stop: int,
    *batches: bytes,
    aborted: tuple[AbortedTransaction, ...] = (),
    part: Part | None = None,
) -> list[int | tuple[HoleReason, int, int]]:
    """Return the offsets of records, and the holes as (reason, start, stop), in order."""
    log = CommittedLog(start, stop, part)
    found: list[int | tuple[HoleReason, int, int]] = []
    for one in log.feed(memoryview(b"".join(batches)), aborted):
        match one:
            case Hole():
                found.append((one.reason, one.start_offset, one.stop_offset))
            case CommittedBatch():
                found += [head.offset for head in one.heads()]
            case SealedBatch():
                pytest.fail("batches are opened")
    return found


def test_records_are_read_in_order_within_the_range() -> None:
    assert _read(1, 5, _batch(0, 1, 2), _batch(3, 4, 5)) == [1, 2, 3, 4]


def test_a_record_lies_where_its_place_in_the_batch_is_whatever_it_claims() -> None:
    """Brokers that do not look into records append them with any offset delta."""
    batch = bytearray(_batch(4, 5, 6))
    second = HEADER_BYTES + 1 + (batch[HEADER_BYTES] >> 1)
    assert batch[second + OFFSET_DELTA_AT] == 1 << 1
    batch[second + OFFSET_DELTA_AT] = 30 << 1
    batch[CRC_AT : CRC_AT + 4] = crc32c(batch[CRC_AT + 4 :]).to_bytes(4, "big")
    assert _read(4, 7, bytes(batch), _batch(7)) == [4, 5, 6]
    assert _read(5, 6, bytes(batch), _batch(7)) == [5]


def test_reading_ends_at_the_stop() -> None:
    log = CommittedLog(0, 2)
    list(log.feed(memoryview(_batch(0, 1, 2)), ()))
    assert log.is_done
    assert log.position == 2


def test_an_incomplete_batch_is_left_for_the_next_fetch() -> None:
    log = CommittedLog(0, 6)
    list(log.feed(memoryview(_batch(0, 1, 2) + _batch(3, 4, 5)[:-1]), ()))
    assert log.position == 3


def test_offsets_between_batches_are_a_gap() -> None:
    assert _read(0, 6, _batch(0, 1), _batch(4, 5)) == [0, 1, (HoleReason.GAP, 2, 4), 4, 5]


def test_offsets_missing_inside_a_batch_are_a_gap() -> None:
    assert _read(0, 4, _batch(0, 1, 3)) == [0, 1, (HoleReason.GAP, 2, 3), 3]


def test_a_log_that_goes_on_only_behind_the_stop_has_a_gap_up_to_it() -> None:
    assert _read(2, 5, _batch(7, 8)) == [(HoleReason.GAP, 2, 5)]


def test_markers_are_no_records() -> None:
    batches = (_batch(0, 1, producer_id=9, transactional=True), _marker(2, 9, COMMIT_MARKER))
    assert _read(0, 3, *batches) == [0, 1, (HoleReason.MARKER, 2, 3)]


def test_an_aborted_transaction_ends_at_its_own_marker() -> None:
    batches = (
        _batch(0, 1, producer_id=9, transactional=True),
        _batch(2, 3, producer_id=8, transactional=True),
        _marker(4, 9, ABORT_MARKER),
        _batch(5, 6, producer_id=9, transactional=True),
        _marker(7, 9, COMMIT_MARKER),
    )
    assert _read(0, 8, *batches, aborted=(AbortedTransaction(9, 0),)) == [
        (HoleReason.ABORTED, 0, 2),
        2,
        3,
        (HoleReason.MARKER, 4, 5),
        5,
        6,
        (HoleReason.MARKER, 7, 8),
    ]


def test_records_outside_transactions_of_an_aborting_producer_stay() -> None:
    assert _read(0, 2, _batch(0, 1, producer_id=9), aborted=(AbortedTransaction(9, 0),)) == [0, 1]


def test_a_batch_whose_checksum_fails_is_a_hole_and_the_next_is_read() -> None:
    broken = bytearray(_batch(0, 1))
    broken[-1] ^= 1
    assert _read(0, 4, bytes(broken), _batch(2, 3)) == [(HoleReason.CORRUPT, 0, 2), 2, 3]


def test_the_next_batch_says_where_a_broken_one_ends() -> None:
    broken = bytearray(_batch(0, 1, 2))
    broken[26] ^= 1  # the last offset delta lies under the checksum
    assert _read(0, 5, bytes(broken), _batch(3, 4)) == [(HoleReason.CORRUPT, 0, 3), 3, 4]


def test_a_broken_batch_at_the_end_is_passed_one_offset_at_a_time() -> None:
    broken = bytearray(_batch(0, 1, 2))
    broken[26] ^= 1
    log = CommittedLog(0, 3)
    for position in (1, 2, 3):
        list(log.feed(memoryview(bytes(broken)), ()))
        assert log.position == position


def test_records_that_do_not_decompress_are_a_hole() -> None:
    record = Record(0, 1_000, b"k", b"v" * 200)
    packed = build_batch([record], compression=Compression.GZIP)
    payload = b"no gzip at all"
    broken = pack_header(parse_header(packed), payload) + payload
    assert _read(0, 1, broken) == [(HoleReason.CORRUPT, 0, 1)]


def test_an_old_message_set_is_refused() -> None:
    old = bytearray(_batch(0, 1))
    old[16] = 1
    with pytest.raises(UnsupportedMagic):
        _read(0, 2, bytes(old))


def test_of_a_part_other_batches_are_holes_that_explain_nothing() -> None:
    log = (_batch(0, 1), _batch(2, 4, producer_id=7), _batch(6, 7), _batch(8, producer_id=8))
    brought = Brought(producer_ids=frozenset({7}), start=0, stop=1)
    gap = (HoleReason.GAP, 5, 6)
    there = Part(brought=brought, is_brought=True)
    others = [(HoleReason.ELSEWHERE, 6, 8), (HoleReason.ELSEWHERE, 8, 9)]
    assert _read(0, 9, *log, part=there) == [0, 1, 2, (HoleReason.GAP, 3, 4), 4, gap, *others]
    own = Part(brought=brought, is_brought=False)
    others = [(HoleReason.ELSEWHERE, 0, 2), (HoleReason.ELSEWHERE, 2, 5)]
    assert _read(0, 9, *log, part=own) == [*others, gap, 6, 7, 8]

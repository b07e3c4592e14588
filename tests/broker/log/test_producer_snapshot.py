"""Producer snapshots: Kafka's bytes, damage found, the right one chosen."""

import struct
from pathlib import Path

import pytest

from broker.log.producer_snapshot import CorruptSnapshot, Snapshots, decode, encode
from broker.log.producer_state import BatchMetadata, ProducerEntry, ProducerTable
from broker.log.results import Duplicate
from tests.broker.log.logs import NOW_MS, batch, one_log
from wire.record_batch import parse_header
from wire.record_batch.checksum import crc32c

ENTRY = ProducerEntry(
    producer_id=4000,
    epoch=3,
    batches=(BatchMetadata(9, 41, 1, 77), BatchMetadata(12, 44, 2, 88)),
    coordinator_epoch=6,
    last_timestamp_ms=88,
    transaction_first_offset=40,
    seen_ms=1000,
)


def test_the_bytes_are_those_of_kafkas_schema() -> None:
    body = struct.pack(">iqhiqiqiq", 1, 4000, 3, 12, 44, 2, 88, 6, 40)
    assert encode([ENTRY]) == struct.pack(">hI", 1, crc32c(body)) + body


def test_what_is_read_is_the_last_batch_seen_now() -> None:
    (entry,) = decode(encode([ENTRY]), now_ms=5)
    assert entry.batches == ENTRY.batches[-1:]
    assert (entry.epoch, entry.coordinator_epoch, entry.transaction_first_offset) == (3, 6, 40)
    assert entry.seen_ms == 5


def test_a_producer_without_batches_comes_back_without() -> None:
    marker_only = ProducerEntry(producer_id=1, epoch=0, seen_ms=0)
    (entry,) = decode(encode([marker_only]), now_ms=0)
    assert entry == marker_only


@pytest.mark.parametrize("place", range(len(encode([ENTRY]))))
def test_any_damaged_byte_is_found(place: int) -> None:
    damaged = bytearray(encode([ENTRY]))
    damaged[place] ^= 0x40
    with pytest.raises(CorruptSnapshot):
        decode(bytes(damaged), now_ms=0)


@pytest.mark.parametrize("length", [0, 1, 6, 9, 10, 40])
def test_any_cut_is_found(length: int) -> None:
    with pytest.raises(CorruptSnapshot):
        decode(encode([ENTRY])[:length], now_ms=0)


def test_the_last_readable_one_in_range_is_taken(tmp_path: Path) -> None:
    snapshots = Snapshots(tmp_path)
    for end in (10, 20, 30, 40):
        snapshots.write(ProducerTable([ENTRY], end_offset=end))
    (tmp_path / f"{30:020d}.snapshot").write_bytes(b"torn")
    again = Snapshots(tmp_path)
    assert again.load(0, 39, 0).end_offset == 20
    assert again.offsets == [10, 20, 40]
    assert again.load(0, 9, 0).end_offset == 0
    assert again.load(15, 19, 0).end_offset == 15
    again.delete_above(10)
    again.keep([])
    assert not list(tmp_path.iterdir())


def test_a_cut_log_remembers_what_stays_of_each_producer(tmp_path: Path) -> None:
    """The last five batches of a producer are repetitions on whoever leads next, too."""
    sent = [batch([b"%d" % number], producer=(7, 0, number)) for number in range(5)]
    with one_log(tmp_path) as log:
        for number, one in enumerate(sent):
            if number == 3:
                log.roll(NOW_MS)  # with a snapshot, which holds one batch
            log.append(one, leader_epoch=1, now_ms=NOW_MS)
        log.append(batch([b"of another"]), leader_epoch=1, now_ms=NOW_MS)
        log.truncate_to(5, now_ms=NOW_MS)
        found = [log.find_duplicate(parse_header(one)) for one in sent]
    assert [one.base_offset for one in found if isinstance(one, Duplicate)] == [0, 1, 2, 3, 4]

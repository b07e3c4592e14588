"""Records taken out of batches within limits; batches that are damaged, bombs, or too many."""

from collections.abc import Callable, Sequence

import pytest

from failover.serve.peek import look as limits
from failover.serve.peek.look import Ended, FoundBatch, PeekLook, TransactionState
from wire.compression import Compression
from wire.record_batch import Record, parse_header
from wire.record_batch.building import build_batch

COMMIT, ABORT = b"\x00\x00\x00\x01", b"\x00\x00\x00\x00"


def found(
    base: int,
    *keys: bytes,
    value: bytes = b"v",
    producer: int = -1,
    is_control: bool = False,
    is_aborted: bool = False,
    codec: Compression = Compression.NONE,
) -> FoundBatch:
    """Return a batch of records with these keys; with a producer it is part of a transaction."""
    batch = build_batch(
        [Record(base + at, 1_000, key, value) for at, key in enumerate(keys)],
        base_offset=base,
        producer_id=producer,
        is_transactional=producer >= 0,
        is_control=is_control,
        compression=codec,
    )
    return FoundBatch(parse_header(batch), memoryview(batch), is_aborted)


def looked(
    *batches: FoundBatch,
    start: int = 0,
    stable_end: int = 1_000_000,
    key: bytes | None = None,
    is_over: Callable[[], bool] = lambda: False,
) -> PeekLook:
    look = PeekLook(start=start, end=1_000_000, stable_end=stable_end, key=key)
    for one in batches:
        look.take(one, is_over)
    return look


def states(look: PeekLook) -> Sequence[TransactionState]:
    return [one.state for one in look.records]


def test_a_key_is_searched_for_from_an_offset_within_a_batch() -> None:
    look = looked(found(0, b"a", b"b", b"a"), found(10, b"a", b"c"), start=1, key=b"a")
    assert [one.offset for one in look.records] == [2, 10]
    assert (look.looked, look.next_offset, look.ended) == (4, 12, None)
    look.finish(Ended.END)
    assert look.next_offset == 1_000_000, "holes at the end hold nothing"


def test_a_look_ends_at_so_many_records_and_goes_on_behind_the_last() -> None:
    look = looked(found(5, *[b"k"] * 50), found(900, b"k"))
    assert len(look.records) == limits.MOST_SHOWN
    assert (look.ended, look.next_offset) == (Ended.ENOUGH, 5 + limits.MOST_SHOWN)


def test_a_key_that_never_comes_is_searched_for_in_a_bounded_window(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "MOST_LOOKED", 500)
    monkeypatch.setattr(limits, "MOST_READ_BYTES", 35_000)
    some = [b"k"] * 300
    look = looked(found(0, *some), found(300, *some), found(600, b"wanted"), key=b"wanted")
    assert (look.ended, look.next_offset) == (Ended.LOOKED, 500)
    large = [found(at, b"k", value=b"x" * 10_000) for at in range(9)]
    look = looked(*large, key=b"wanted")
    assert (look.ended, look.next_offset) == (Ended.READ, 4)


def test_a_bomb_and_a_damaged_batch_are_named_and_passed_over() -> None:
    bomb = found(3, b"k", value=bytes(limits.MOST_UNPACKED_BYTES), codec=Compression.ZSTD)
    assert bomb.header.batch_bytes < 10_000
    damaged = found(4, b"k")
    bent = bytearray(damaged.batch)
    bent[-1] ^= 1
    look = looked(bomb, damaged._replace(batch=memoryview(bent)), found(5, b"k"))
    assert [one.offset for one in look.records] == [5]
    [too_large, wrong] = look.faults
    assert "offsets 3 to 3 cannot be shown" in too_large
    assert "16777216 bytes" in too_large
    assert "its checksum is wrong" in wrong


def test_a_look_that_is_out_of_time_says_how_far_it_is_and_can_go_on() -> None:
    times = iter([False, True, True])
    batch = found(0, *[b"k"] * 5_000)
    look = looked(batch, key=b"wanted", is_over=lambda: next(times))
    assert (look.ended, look.next_offset) == (Ended.TIME, 2 * limits.LOOK_UP_EVERY - 1)
    behind = looked(batch, start=4_999, is_over=lambda: True)
    assert behind.next_offset == 5_000, "the same look again would come no further"
    assert "too many records" in behind.faults[0]


def test_what_became_of_a_transaction_is_known_or_open() -> None:
    batches = (
        found(0, b"plain"),
        found(1, b"k", producer=7),
        found(2, b"k", producer=8, is_aborted=True),
        found(3, ABORT, producer=8, is_control=True),
        found(4, b"k", producer=7),
        found(5, b"k", producer=9),
        found(6, COMMIT, producer=7, is_control=True),
        found(7, ABORT, producer=9, is_control=True),
        found(8, b"k", producer=7),
        found(9, b"\x00", producer=7, is_control=True),
    )
    state = TransactionState
    assert states(looked(*batches, stable_end=4)) == [
        state.NONE,
        state.COMMITTED,
        state.ABORTED,
        state.ABORT_MARKER,
        state.COMMITTED,  # its marker was seen, behind the last stable offset
        state.ABORTED,
        state.COMMIT_MARKER,
        state.ABORT_MARKER,
        state.OPEN,
        state.OTHER_MARKER,
    ]
    assert states(looked(*batches[:6], stable_end=4))[4:] == [state.OPEN, state.OPEN]


def test_long_values_are_cut_and_their_size_is_kept() -> None:
    [record] = looked(found(0, b"k" * 300, value=b"v" * 5_000)).records
    assert record.key == (b"k" * limits.MOST_KEY_BYTES, 300)
    assert record.value == (b"v" * limits.MOST_VALUE_BYTES, 5_000)

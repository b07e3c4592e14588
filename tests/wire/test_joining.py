"""Small batches made one: the same records, and an end before whatever cannot be in it."""

from collections.abc import Sequence
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire.compression import Compression
from wire.record_batch import (
    HEADER_BYTES,
    Record,
    build_batch,
    iterate_records,
    parse_header,
    stamp_append_time,
)
from wire.record_batch.header import CONTROL, LOG_APPEND_TIME, pack_header
from wire.record_batch.joining import (
    JOINED_BYTES,
    JOINED_RECORDS,
    MAX_RECORDS_EACH,
    ONE_BYTE,
    Joined,
    join_batches,
)

UNUSUAL = CONTROL | LOG_APPEND_TIME
NOBODY: frozenset[int] = frozenset()
FEW: Final = 4


def record(offset: int, timestamp_ms: int = 1_000, value: bytes = b"v") -> Record:
    return Record(offset, timestamp_ms, b"k%d" % offset, value, (("h", None),))


def single(offset: int, **fields: object) -> bytes:
    return build_batch([record(offset)], base_offset=offset, **fields)  # type: ignore[arg-type]


def join(
    batches: Sequence[bytes], refused: frozenset[int] = NOBODY, most_records: int = FEW
) -> Joined | None:
    return join_batches(
        memoryview(b"".join(batches)),
        0,
        most_records=most_records,
        unusual=UNUSUAL,
        refused=refused,
    )


def of_many(count: int, base: int) -> bytes:
    return build_batch(
        [record(offset, value=b"v" * offset) for offset in range(base, base + count)],
        base_offset=base,
    )


def records_of(joined: Joined, base_offset: int) -> list[Record]:
    header = parse_header(build_batch([record(0)]))._replace(
        base_offset=base_offset,
        last_offset_delta=joined.record_count - 1,
        base_timestamp=joined.base_timestamp,
        max_timestamp=joined.max_timestamp,
        record_count=joined.record_count,
    )
    return list(iterate_records(pack_header(header, joined.payload) + joined.payload))


@given(
    st.lists(
        st.lists(
            st.tuples(
                st.integers(0, 2**50), st.none() | st.binary(max_size=300), st.binary(max_size=300)
            ),
            min_size=1,
            max_size=FEW,
        ),
        min_size=2,
        max_size=80,
    ),
    st.integers(0, 2**40),
)
def test_the_records_are_the_same(
    written: list[list[tuple[int, bytes | None, bytes]]], base: int
) -> None:
    batches, expected, offset = [], [], base
    for each in written:
        records = [
            Record(offset + place, time, key, value, (("h", value),))
            for place, (time, key, value) in enumerate(each)
        ]
        batches.append(build_batch(records, base_offset=offset))
        expected += records
        offset += len(records)
    joined = join(batches)
    assert joined is not None
    assert joined.batches == len(batches)
    assert joined.stop == sum(map(len, batches))
    assert joined.max_timestamp == max(one.timestamp_ms for one in expected)
    assert records_of(joined, base) == expected


MANY: Final = st.lists(
    st.lists(
        st.tuples(
            st.integers(-2, 40) | st.integers(-9_000, 0),
            st.none() | st.binary(max_size=90),
            st.binary(max_size=9),
        ),
        min_size=1,
        max_size=MAX_RECORDS_EACH,
    ),
    min_size=2,
    max_size=8,
)


@given(MANY, st.integers(0, FEW), st.integers(0, 40))
def test_batches_of_more_records_are_the_same_or_as_they_were(
    written: list[list[tuple[int, bytes | None, bytes]]], most_records: int, apart_ms: int
) -> None:
    batches, expected, offset = [], [], 0
    for number, each in enumerate(written):
        records = [
            Record(offset + place, 1_000 + number * apart_ms + time, key, value)
            for place, (time, key, value) in enumerate(each)
        ]
        batches.append(build_batch(records, base_offset=offset))
        expected += records
        offset += len(records)
    joined = join(batches, most_records=most_records)
    if joined is None:
        return
    assert joined.batches >= 2
    assert joined.stop == sum(map(len, batches[: joined.batches]))
    taken = expected[: joined.record_count]
    assert joined.record_count == sum(map(len, written[: joined.batches]))
    assert joined.max_timestamp == max(one.timestamp_ms for one in taken)
    assert records_of(joined, 0) == taken


def test_batches_of_more_records_are_joined_while_numbers_and_times_take_one_byte() -> None:
    def timed(base: int, first_ms: int, last_ms: int) -> bytes:
        times = [first_ms, *[last_ms] * 15]
        return build_batch(
            [record(base + place, 1_000 + time) for place, time in enumerate(times)],
            base_offset=base,
        )

    in_time = [timed(base, base, base + 8) for base in range(0, 96, 16)]
    joined = join(in_time)
    assert joined is not None
    assert (joined.batches, joined.record_count) == (4, ONE_BYTE)  # the next begins anew
    for last_ms, batches in ((63, 4), (64, 2)):
        joined = join([*in_time[:2], timed(32, 32, last_ms), timed(48, last_ms, last_ms)])
        assert joined is not None
        assert joined.batches == batches
    assert join([timed(0, 5, 5), timed(16, 4, 5)]) is None  # a time before the first one's


@pytest.mark.parametrize("earlier_ms", [1, 63, 64, 65, 100, 1_000, 2**40])
@pytest.mark.parametrize("most_records", [0, FEW])
def test_records_behind_the_first_may_be_older(earlier_ms: int, most_records: int) -> None:
    times = [2**41, 2**41 + ONE_BYTE - 1, 2**41 + ONE_BYTE - 1 - earlier_ms]
    records = [record(offset, time) for offset, time in enumerate(times)]
    batches = [build_batch(records[:1], base_offset=0), build_batch(records[1:], base_offset=1)]
    joined = join(batches, most_records=most_records)
    assert (joined is not None) == bool(most_records)
    if joined is not None:
        assert records_of(joined, 0) == records


def damaged(batch: bytes) -> bytes:
    return batch[:-1] + bytes([batch[-1] ^ 1])


def append_stamped(offset: int) -> bytes:
    batch = bytearray(single(offset))
    stamp_append_time(batch, 5)
    return bytes(batch)


def with_payload(offset: int, payload: bytes) -> bytes:
    """Return a batch of one record whose checksum holds whatever the record is."""
    return pack_header(parse_header(single(offset)), payload) + payload


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(single(2, compression=Compression.ZSTD), id="compressed"),
        pytest.param(single(3), id="behind a hole"),
        pytest.param(single(2, is_control=True), id="a marker"),
        pytest.param(single(2, producer_id=7), id="of a refused producer"),
        pytest.param(single(2)[:-1], id="cut off"),
        pytest.param(single(2)[: HEADER_BYTES - 1], id="cut off in its header"),
        pytest.param(damaged(single(2)), id="damaged"),
        pytest.param(append_stamped(2), id="stamped by the broker"),
        pytest.param(with_payload(2, b"\x04\x00\x00\x00"), id="a record longer than its batch"),
        pytest.param(with_payload(2, b"\x06\x00\x00\x02\x01"), id="a record with a wrong number"),
        pytest.param(with_payload(2, b"\xff" * 9), id="a length that never ends"),
        pytest.param(with_payload(2, b""), id="no record at all"),
        pytest.param(with_payload(2, b"\x06\x01\x00\x00\x01"), id="a record with attributes"),
        pytest.param(with_payload(2, b"\x06\x00\x00\x00\x01\x00"), id="more than is counted"),
        pytest.param(
            build_batch(
                [record(2 + place, 1_000 + 16 * place) for place in range(5)], base_offset=2
            ),
            id="of many, over 64 ms",
        ),
        pytest.param(of_many(MAX_RECORDS_EACH + 1, 2), id="of very many"),
    ],
)
def test_what_cannot_be_joined_ends_it(other: bytes) -> None:
    first = [single(0), single(1)]
    joined = join([*first, other, single(3)], refused=frozenset({7}))
    assert joined is not None
    assert (joined.batches, joined.stop) == (2, sum(map(len, first)))
    assert records_of(joined, 0) == [record(0), record(1)]
    assert join([single(0), other], refused=frozenset({7})) is None or other == single(1)


def test_batches_whose_numbers_take_one_byte_are_joined_if_so_many_may_be() -> None:
    batches = [of_many(MAX_RECORDS_EACH, MAX_RECORDS_EACH * place) for place in range(4)]
    joined = join(batches, most_records=MAX_RECORDS_EACH)
    assert joined is not None
    assert joined.stop == sum(map(len, batches))
    assert records_of(joined, 0) == [
        record(offset, value=b"v" * offset) for offset in range(4 * MAX_RECORDS_EACH)
    ]


def test_batches_of_more_records_are_not_joined_whatever_may_be() -> None:
    count = MAX_RECORDS_EACH + 1
    assert join([of_many(count, 0), of_many(count, count)], most_records=2 * count) is None


def test_a_batch_alone_is_not_joined() -> None:
    assert join([single(4)]) is None
    assert join([]) is None


def test_a_joined_batch_has_bounds() -> None:
    large = [
        build_batch([record(offset, value=b"x" * 60_000)], base_offset=offset)
        for offset in range(9)
    ]
    joined = join(large)
    assert joined is not None
    assert joined.batches == 4
    assert len(joined.payload) < JOINED_BYTES
    many = join([single(offset) for offset in range(JOINED_RECORDS + 9)])
    assert many is not None
    assert many.record_count < JOINED_RECORDS + 1

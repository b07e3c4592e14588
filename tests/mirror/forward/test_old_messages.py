"""Messages of before Kafka 0.11 arrive as records of today."""

import zlib
from collections.abc import Sequence
from struct import pack
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror.forward.routing import JOINED_IN_COMPANY, Routed, route
from mirror.state.batches import Cursor
from offset_translation.map_records import MirrorProducer
from offset_translation.offset_map import OffsetMap
from offset_translation.runs import Place
from wire.compression import Compression, compress
from wire.record_batch import Record, build_batch, iterate_records

LOG_APPEND_TIME = 8
LZ4_CHECKSUM_AT = 6
CODECS = (Compression.NONE, Compression.GZIP, Compression.SNAPPY, Compression.LZ4)


class Old(NamedTuple):
    """One record of an old log."""

    offset: int
    time_ms: int
    key: bytes | None
    value: bytes | None


def text(value: bytes | None) -> bytes:
    return pack(">i", -1) if value is None else pack(">i", len(value)) + value


def message(one: Old, magic: int, attributes: int = 0) -> bytes:
    stamp = pack(">q", one.time_ms) if magic else b""
    body = pack(">bb", magic, attributes) + stamp + text(one.key) + text(one.value)
    return pack(">qiI", one.offset, len(body) + 4, zlib.crc32(body)) + body


def old_log(
    records: Sequence[Old], magic: int, codec: Compression = Compression.NONE, stamped: int = 0
) -> bytes:
    """Return them as a broker would have kept them, in one message if compressed."""
    if codec is Compression.NONE:
        return b"".join(message(one, magic, stamped and LOG_APPEND_TIME) for one in records)
    first, last = records[0].offset, records[-1].offset
    inner = b"".join(
        message(one._replace(offset=one.offset - first if magic else one.offset), magic)
        for one in records
    )
    attributes = codec | (stamped and LOG_APPEND_TIME)
    packed = bytearray(compress(codec, inner))
    if codec is Compression.LZ4 and not magic:
        packed[LZ4_CHECKSUM_AT + (8 if packed[4] & 8 else 0)] ^= 0x55  # wrong, as it was then
    return message(Old(last, stamped, None, bytes(packed)), magic, attributes)


@st.composite
def old_records(draw: st.DrawFn, first: int = 0) -> list[Old]:
    """Return records at ascending offsets, with the holes of compaction."""
    texts = st.none() | st.binary(max_size=20)
    found: list[Old] = []
    for gap in draw(st.lists(st.integers(1, 3), min_size=1, max_size=12)):
        offset = (found[-1].offset if found else first - 1) + gap
        found.append(Old(offset, draw(st.integers(0, 2**41)), draw(texts), draw(texts)))
    return found


def run(chunk: bytes, source: int = 0, *, joins: bool = True) -> Routed:
    producer = MirrorProducer(producer_id=7, producer_epoch=0)
    return route(
        chunk,
        Cursor(source, Place(source), 0),
        aborted=(),
        producer=producer,
        loop_ids=frozenset(),
        join_records=JOINED_IN_COMPANY if joins else 0,
    )


def arrived(routed: Routed) -> list[Record]:
    """Return what the target would hold, by its offsets."""
    return [
        record._replace(offset=forward.place + record.offset)
        for forward in routed.forwards
        for record in iterate_records(b"".join(map(bytes, forward.parts)))
    ]


@given(old_records(), st.sampled_from((0, 1)), st.sampled_from(CODECS), st.booleans())
def test_every_record_arrives_where_the_map_says(
    records: list[Old],
    magic: int,
    codec: Compression,
    joins: bool,
) -> None:
    routed = run(old_log(records, magic, codec), joins=joins)
    assert [one[1:4] for one in arrived(routed)] == [
        (one.time_ms if magic else -1, one.key, one.value) for one in records
    ]
    assert [one.offset for one in arrived(routed)] == list(range(len(records)))
    starts = [(0, 0)] if records[0].offset == 0 else []
    offset_map = OffsetMap.from_starts([*starts, *routed.starts], len(records))
    places = [offset_map.source_of_place(Place(place)) for place in range(len(records))]
    assert places == [one.offset for one in records]
    assert routed.cursor.source == records[-1].offset + 1
    assert routed.corrupt is None


@given(old_records(), st.integers(1, 2**41), st.sampled_from(CODECS[1:]))
def test_append_times_of_a_compressed_message_are_its_records_own(
    records: list[Old], stamped: int, codec: Compression
) -> None:
    routed = run(old_log(records, 1, codec, stamped))
    assert {one.timestamp_ms for one in arrived(routed)} == {stamped}


@given(old_records(), st.sampled_from(CODECS), st.data())
def test_a_chunk_may_begin_before_the_cursor_and_end_inside_a_message(
    records: list[Old], codec: Compression, data: st.DataObject
) -> None:
    whole = old_log(records, 1, codec)
    source = data.draw(st.integers(0, records[-1].offset))
    cut = message(Old(records[-1].offset + 1, 0, None, b"x" * 9), 1)
    tail = cut[: data.draw(st.integers(0, len(cut) - 1))]
    routed = run(whole + tail, source)
    assert [one.value for one in arrived(routed)] == [
        one.value for one in records if one.offset >= source
    ]
    assert routed.corrupt is None


def test_what_lies_before_a_damaged_message_passes_and_a_batch_of_today_behind_old_ones() -> None:
    records = [Old(place, 5, b"k", b"v%d" % place) for place in range(4)]
    damaged = bytearray(old_log(records, 1))
    damaged[-1] ^= 1
    routed = run(bytes(damaged))
    assert [one.value for one in arrived(routed)] == [b"v0", b"v1", b"v2"]
    assert (routed.cursor.source, routed.corrupt is None) == (3, False)
    today = build_batch([Record(0, 9, None, b"new")], base_offset=4)
    routed = run(old_log(records, 0) + today)
    assert [one.value for one in arrived(routed)] == [b"v0", b"v1", b"v2", b"v3", b"new"]


@pytest.mark.parametrize("codec", CODECS[1:])
def test_a_compressed_message_with_less_in_it_than_it_says_is_damaged(codec: Compression) -> None:
    inner = message(Old(0, 5, b"k", b"v"), 1)[:-1]
    routed = run(message(Old(0, 0, None, compress(codec, inner)), 1, codec))
    assert routed.forwards == []
    assert routed.corrupt is not None


@pytest.mark.parametrize("magic", [0, 1])
def test_a_batch_of_several_messages_says_so_lest_it_be_too_large_for_the_target(
    magic: int,
) -> None:
    view = old_log([Old(offset, 5, None, b"v") for offset in range(3)], magic)
    producer = MirrorProducer(producer_id=7, producer_epoch=0)
    for join_records, joined in ((JOINED_IN_COMPANY, [3]), (0, [1, 1, 1])):
        routed = route(
            view,
            Cursor(0, Place(0), 0),
            aborted=[],
            producer=producer,
            loop_ids=frozenset(),
            join_records=join_records,
        )
        assert [one.joined for one in routed.forwards] == joined

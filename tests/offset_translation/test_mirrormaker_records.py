"""Heartbeats and offset syncs: the bytes of MirrorMaker 2's schemas, and when a sync is told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offset_translation import heartbeat, offset_sync
from offset_translation.binary import MalformedRecord
from offset_translation.heartbeat import Heartbeat
from offset_translation.offset_map import OffsetMap
from offset_translation.offset_sync import OffsetSync, syncs_since
from tests.offset_translation.strategies import INT32, INT64, TOPICS


def test_a_heartbeat_is_written_as_mirrormaker_does() -> None:
    beat = Heartbeat(source="dc1", target="b", time_ms=258)
    assert heartbeat.encode(beat) == (b"\0\3dc1\0\1b", b"\0\0" + b"\0\0\0\0\0\0\1\2")


def test_an_offset_sync_is_written_as_mirrormaker_does() -> None:
    sync = OffsetSync(topic="orders", partition=3, upstream_offset=258, downstream_offset=7)
    assert offset_sync.encode(sync) == (
        b"\0\6orders\0\0\0\3",
        b"\0\0\0\0\0\0\1\2" + b"\0\0\0\0\0\0\0\7",
    )


@given(st.builds(Heartbeat, source=TOPICS, target=TOPICS, time_ms=INT64))
def test_heartbeats_survive_the_round_trip(one: Heartbeat) -> None:
    assert heartbeat.decode(*heartbeat.encode(one)) == one


@given(
    st.builds(
        OffsetSync,
        topic=TOPICS,
        partition=INT32,
        upstream_offset=INT64,
        downstream_offset=INT64,
    )
)
def test_offset_syncs_survive_the_round_trip(one: OffsetSync) -> None:
    assert offset_sync.decode(*offset_sync.encode(one)) == one


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_other_bytes_are_refused_by_name(key: bytes, value: bytes) -> None:
    for decode, encode in (
        (heartbeat.decode, heartbeat.encode),
        (offset_sync.decode, offset_sync.encode),
    ):
        try:
            one = decode(key, value)
        except MalformedRecord:
            continue
        assert encode(one) == (key, value)  # type: ignore[arg-type]


def test_a_heartbeat_of_a_version_to_come_is_refused() -> None:
    key, _ = heartbeat.encode(Heartbeat(source="a", target="b", time_ms=1))
    with pytest.raises(MalformedRecord, match="version 1"):
        heartbeat.decode(key, b"\0\1" + bytes(8))


def pairs(syncs: list[OffsetSync]) -> list[tuple[int, int]]:
    return [(sync.upstream_offset, sync.downstream_offset) for sync in syncs]


def test_syncs_tell_the_first_record_and_then_the_last() -> None:
    """
    source  ..aaaa--.bbbbb
    target    aaaabbbbb
    """
    holed = OffsetMap.from_starts([(2, 0), (9, 4)], 9)
    assert pairs(syncs_since("t", 0, holed, None)) == [(2, 0), (13, 8)]
    assert pairs(syncs_since("t", 0, holed, 7)) == [(13, 8)]
    assert syncs_since("t", 0, holed, 9) == []


def test_nothing_is_told_of_what_holds_no_record() -> None:
    assert syncs_since("t", 0, OffsetMap(), None) == []
    assert syncs_since("t", 0, OffsetMap.from_starts([(5, 0)], 0), None) == []


def test_a_piece_that_has_no_record_yet_is_not_told() -> None:
    waiting = OffsetMap.from_starts([(0, 0), (9, 4)], 4)
    assert pairs(syncs_since("t", 0, waiting, 0)) == [(3, 3)]


@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(1, 9)), min_size=1, max_size=6),
    st.integers(0, 40),
)
def test_a_sync_is_always_a_record_that_the_map_knows(
    shape: list[tuple[int, int]], target_end: int
) -> None:
    starts, source, target = [], 0, 0
    for hole, count in shape:
        source += hole
        starts.append((source, target))
        source, target = source + count, target + count
    known = OffsetMap.from_starts(starts, target_end)
    records = {
        piece.source_start + place: piece.target_start + place
        for piece in known.pieces()
        for place in range(piece.count)
    }
    for told in (None, 0, 3):
        for upstream, downstream in pairs(syncs_since("t", 0, known, told)):
            assert records[upstream] == downstream

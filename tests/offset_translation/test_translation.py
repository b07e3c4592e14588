"""Translation against the simplest model: a plain list of the source offsets that were mirrored."""

from bisect import bisect_left

from hypothesis import given
from hypothesis import strategies as st

from offset_translation.copies import NoCopy, copy_of, original_of
from offset_translation.map_records import (
    PieceStartKey,
    decode_key,
    piece_start,
    trimmed,
    withdrawal,
)
from offset_translation.map_state import MapState
from offset_translation.offset_map import OffsetMap
from offset_translation.runs import Place
from offset_translation.translation import (
    NotYet,
    Position,
    translate,
    translate_back,
    translate_clamped,
)
from wire.topic_partition import TopicPartition


@st.composite
def mirrored_logs(draw: st.DrawFn) -> tuple[int, list[int], int, int]:
    """Source start, the source offsets mirrored in order, source end, target start."""
    gaps = draw(st.lists(st.sampled_from([0, 0, 0, 0, 1, 2, 30]), max_size=40))
    start = draw(st.integers(0, 50))
    offset, offsets = start, []
    for gap in gaps:
        offset += gap
        offsets.append(offset)
        offset += 1
    return start, offsets, offset + draw(st.integers(0, 3)), draw(st.integers(0, 20))


def build(log: tuple[int, list[int], int, int]) -> OffsetMap:
    """Announce the first start, every hole, and a hole at the end; as the mirror does."""
    start, offsets, end, target_start = log
    expected, starts = start, [(start, target_start)]
    for position, offset in enumerate(offsets):
        if offset != expected:
            starts.append((offset, target_start + position))
        expected = offset + 1
    if end != expected:
        starts.append((end, target_start + len(offsets)))
    return OffsetMap.from_starts(starts, target_start + len(offsets))


@given(mirrored_logs(), st.integers(0, 1500))
def test_a_record_has_the_copy_that_was_written_for_it_or_none(
    log: tuple[int, list[int], int, int], source_offset: int
) -> None:
    _, offsets, _, target_start = log
    offset_map = build(log)
    copy = copy_of(offset_map, source_offset)
    if source_offset not in offsets:
        assert isinstance(copy, NoCopy)
        return
    assert copy == target_start + offsets.index(source_offset)
    assert original_of(offset_map, copy) == source_offset
    assert isinstance(original_of(offset_map, target_start + len(offsets)), NoCopy)


@given(mirrored_logs(), st.integers(-5, 1500))
def test_a_position_translates_to_the_next_record_not_read(
    log: tuple[int, list[int], int, int], source_offset: int
) -> None:
    start, offsets, end, target_start = log
    offset_map = build(log)
    answer = translate(offset_map, source_offset)
    # a hole right at the start moves it: nothing was mirrored before
    first = offset_map.mirrored_source_start
    assert first in (start, min(offsets, default=end), end)
    if source_offset < first:
        assert answer is NotYet.FORGOTTEN
    elif source_offset > end:
        assert answer is NotYet.UNMIRRORED
    else:
        assert answer == target_start + bisect_left(offsets, source_offset)


@given(mirrored_logs(), st.integers(-5, 1500), st.integers(-5, 1500))
def test_translation_never_goes_back(log: tuple[int, list[int], int, int], a: int, b: int) -> None:
    offset_map = build(log)
    low = translate_clamped(offset_map, min(a, b))
    high = translate_clamped(offset_map, max(a, b))
    assert low is not None
    assert high is not None
    assert low.target_offset <= high.target_offset


@given(mirrored_logs())
def test_every_mirrored_record_translates_there_and_back(
    log: tuple[int, list[int], int, int],
) -> None:
    _, offsets, end, target_start = log
    offset_map = build(log)
    for position, offset in enumerate(offsets):
        assert translate(offset_map, offset) == target_start + position
        assert translate_back(offset_map, target_start + position) == offset
    assert translate_back(offset_map, target_start + len(offsets)) == end
    assert translate_back(offset_map, target_start + len(offsets) + 1) is NotYet.UNMIRRORED


@given(mirrored_logs())
def test_the_position_after_a_crash_is_the_first_record_that_is_missing(
    log: tuple[int, list[int], int, int],
) -> None:
    _, offsets, end, target_start = log
    offset_map = build(log)
    for arrived in range(len(offsets)):
        # a hole may stand before the missing record, so the position may point into it
        offset_map.advance(target_start + arrived)
        position = offset_map.mirrored_source_end
        assert position is not None
        assert bisect_left(offsets, position) == arrived
    offset_map.advance(target_start + len(offsets))
    assert offset_map.mirrored_source_end == end


@given(mirrored_logs())
def test_pieces_hold_exactly_the_mirrored_records(log: tuple[int, list[int], int, int]) -> None:
    _, offsets, _, target_start = log
    pairs = [
        (piece.source_start + step, piece.target_start + step)
        for piece in build(log).pieces()
        for step in range(piece.count)
    ]
    assert pairs == [(offset, target_start + step) for step, offset in enumerate(offsets)]


@given(mirrored_logs(), st.integers(0, 1500), st.integers(0, 60))
def test_trimming_forgets_only_what_is_gone_on_both_sides(
    log: tuple[int, list[int], int, int], source_log_start: int, target_log_start: int
) -> None:
    whole, trimmed = build(log), build(log)
    trimmed.trim(source_log_start, target_log_start)
    for source_offset in range(log[2] + 2):
        before = translate(whole, source_offset)
        if isinstance(before, int) and (
            source_offset >= source_log_start or before >= target_log_start
        ):
            after = translate_clamped(trimmed, source_offset)
            assert after is not None
            assert after.target_offset == before


@given(mirrored_logs(), st.integers(0, 1500), st.integers(0, 60))
def test_a_replayed_trim_says_the_same_as_the_map_that_was_trimmed(
    log: tuple[int, list[int], int, int], source_log_start: int, target_log_start: int
) -> None:
    """In one stroke, with the pieces before it withdrawn or not, compacted away or not."""
    live = build(log)
    found = live.obsolete(source_log_start, target_log_start)
    starts = [piece_start("t", 0, source_start=s, place=Place(p)) for s, p in live_starts(log)]
    state = MapState()
    for key, value in (*starts, trimmed("t", 0, found.place)):
        state.replay(key, value)
    for place in found.pieces:
        gone = PieceStartKey(topic="t", partition=0, place=place)
        state.replay(*withdrawal(gone))
    compacted = MapState()
    for key, value in starts:
        decoded = decode_key(key)
        assert isinstance(decoded, PieceStartKey)
        if decoded.place not in found.pieces:
            compacted.replay(key, value)
    live.trim(source_log_start, target_log_start)
    for replayed in (state, compacted):
        replayed.advance({TopicPartition("t", 0): live.target_end})
        assert replayed.rejected == []
        assert list(replayed.maps[TopicPartition("t", 0)].pieces()) == list(live.pieces())


def live_starts(log: tuple[int, list[int], int, int]) -> list[tuple[int, int]]:
    """The boundaries of a map, holes at its end included."""
    return [(piece.source_start, piece.target_start) for piece in build(log).pieces()]


def test_an_empty_partition_translates_to_zero() -> None:
    assert translate(OffsetMap.from_starts([(0, 0)], 0), 0) == 0


def test_an_emptied_source_partition_translates_to_the_start_of_the_target() -> None:
    assert translate(OffsetMap.from_starts([(57, 0)], 0), 57) == 0


def test_a_map_without_pieces_knows_no_position() -> None:
    assert translate(OffsetMap(), 0) is NotYet.UNMIRRORED
    assert translate_clamped(OffsetMap(), 0) is None
    assert translate_back(OffsetMap(), 0) is NotYet.UNMIRRORED


def test_a_position_beyond_the_mirrored_end_waits_there() -> None:
    offset_map = OffsetMap.from_starts([(0, 0), (10, 6)], 8)
    assert translate(offset_map, 100) is NotYet.UNMIRRORED
    assert translate_clamped(offset_map, 100) == Position(
        source_offset=12, target_offset=8, is_exact=False
    )


def test_behind_a_seal_the_targets_own_records_are_never_skipped() -> None:
    """dc2 took over at 11 and wrote 11..19 itself; mirroring went on at source 25."""
    offset_map = OffsetMap()
    offset_map.announce(0, Place(0))
    offset_map.seal(11, 11)
    offset_map.advance(20)
    assert offset_map.mirrored_target_end == 11
    assert offset_map.is_sealed
    assert translate(offset_map, 11) == 11
    assert translate(offset_map, 12) is NotYet.UNMIRRORED
    assert translate_back(offset_map, 15) is NotYet.UNMIRRORED
    offset_map.begin_run(Place(11), 20)
    offset_map.announce(25, Place(11))
    offset_map.advance(22)
    assert translate(offset_map, 18) == 11
    assert translate(offset_map, 25) == 11
    assert translate(offset_map, 26) == 21
    assert translate(offset_map, 27) == 22
    assert translate_back(offset_map, 15) is NotYet.UNMIRRORED
    assert translate_back(offset_map, 20) == 25


def test_a_seal_wins_over_a_piece_that_begins_there_until_it_is_taken_back() -> None:
    offset_map = OffsetMap.from_starts([(0, 0), (12, 11)], 15)
    offset_map.seal(12, 11)
    offset_map.announce(12, Place(11))
    assert offset_map.is_sealed
    assert offset_map.mirrored_source_end == 12


def test_a_flow_that_goes_on_at_its_seal_has_one_piece_again() -> None:
    offset_map = OffsetMap.from_starts([(0, 0)], 11)
    offset_map.seal(11, 11)
    offset_map.unseal(11)
    offset_map.announce(11, Place(11))
    assert not offset_map.is_sealed
    assert [piece.count for piece in offset_map.pieces()] == [11]

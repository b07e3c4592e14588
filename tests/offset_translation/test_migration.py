"""Taking over from MirrorMaker: where it stopped, and positions of the time before."""

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offset_translation.map_state import MapState
from offset_translation.migration import Seed, SharedTail, find_agreed, seed_records
from offset_translation.offset_map import OffsetMap
from offset_translation.offset_sync import OffsetSync
from offset_translation.rebuilding import CannotAlign, LogDigest
from offset_translation.translation import translate, translate_clamped
from wire.topic_partition import TopicPartition

PLACE = TopicPartition("orders", 0)


def log(digests: list[int], first: int = 0, step: int = 1) -> LogDigest:
    offsets = array("q", (first + step * place for place in range(len(digests))))
    return LogDigest(offsets=offsets, digests=array("q", digests))


def seeded(seed: Seed, syncs: list[tuple[int, int]]) -> OffsetMap:
    """Return the map as it is read back from its topic."""
    state = MapState()
    for key, value in seed_records(
        seed,
        [
            OffsetSync(topic="orders", partition=0, upstream_offset=u, downstream_offset=d)
            for u, d in syncs
        ],
    ):
        state.replay(key, value)
    assert state.rejected == []
    state.advance({PLACE: seed.target_end})
    return state.maps[PLACE]


@given(st.integers(1, 40), st.integers(0, 20), st.integers(1, 40))
def test_the_record_behind_the_targets_last_one_comes_next(
    mirrored: int, beyond: int, kept: int
) -> None:
    source = log(list(range(mirrored + beyond)), first=7, step=2)
    target = log(list(range(mirrored))[-kept:])
    agreed = find_agreed(source, target)
    assert agreed.goes_on == 7 + 2 * (mirrored - 1) + 1
    assert len(agreed.source) == len(agreed.target) == min(mirrored, kept)


def test_records_that_mirrormaker_has_repeated_end_what_is_agreed() -> None:
    agreed = find_agreed(log([1, 2, 3, 4, 5, 6]), log([1, 2, 3, 2, 3, 4]))
    assert (list(agreed.source), list(agreed.target)) == ([1, 2, 3], [3, 4, 5])
    assert agreed.goes_on == 4


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        ([1, 2, 3], [], "last record is not in the source"),
        ([1, 2, 3], [1, 2, 9], "last record is not in the source"),
        ([1, 1, 1], [1], "end at source offset"),
        ([5, 6, 1, 5, 6, 2], [5, 6], "end at source offset"),
    ],
)
def test_what_cannot_be_told_is_not_guessed(
    source: list[int], target: list[int], reason: str
) -> None:
    with pytest.raises(CannotAlign, match=reason):
        find_agreed(log(source), log(target))


def test_the_map_goes_on_at_the_end_and_knows_the_synced_records() -> None:
    """
    source  ..a......b......cc.d | 30     a, b: offset syncs; cc.d: agreed
    target  3 5      9      12   | 15
    """
    agreed = SharedTail(source=[25, 26, 28], target=[12, 13, 14])
    known = seeded(
        Seed(partition=PLACE, agreed=agreed, target_start=3, target_end=15), [(10, 5), (17, 9)]
    )
    assert known.mirrored_source_end == 29
    assert known.mirrored_target_end == 15
    exact = {25: 10, 26: 13, 27: 14, 28: 14, 29: 15}
    bounded = {10: 3, 11: 6, 17: 6, 18: 10, 24: 10}
    assert {offset: translate(known, offset) for offset in exact | bounded} == exact | bounded
    before = translate_clamped(known, 2)
    assert before is not None
    assert before.target_offset == 3
    assert known.runs.start_of(known.place_end) == 15
    known.advance(18)
    assert translate(known, 31) == 17


def test_a_log_that_agrees_from_its_start_is_mapped_without_runs() -> None:
    agreed = SharedTail(source=[4, 5, 7], target=[0, 1, 2])
    known = seeded(Seed(partition=PLACE, agreed=agreed, target_start=0, target_end=3), [(5, 1)])
    assert len(known.runs) == 0
    assert [translate(known, offset) for offset in (4, 5, 6, 7, 8)] == [0, 1, 2, 2, 3]


def test_a_marker_behind_the_last_record_is_nobodys_record() -> None:
    """MirrorMaker with exactly-once support ends its transactions with one."""
    agreed = SharedTail(source=[4, 5], target=[0, 1])
    known = seeded(Seed(partition=PLACE, agreed=agreed, target_start=0, target_end=3), [])
    assert (known.mirrored_source_end, known.runs.start_of(known.place_end)) == (6, 3)


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[int], list[int], list[tuple[int, int]]]:
    """Return the source's offsets, those of each target record, and syncs MirrorMaker has told.

    The source has holes; MirrorMaker, killed now and then, goes back and repeats what follows.
    """
    gaps = draw(st.lists(st.integers(1, 3), min_size=1, max_size=20))
    offsets = [sum(gaps[: place + 1]) for place in range(len(gaps))]
    restarts = draw(st.lists(st.sampled_from(range(len(offsets))), max_size=3))
    copied: list[int] = []
    begin = 0
    for stop in restarts:
        copied += offsets[begin : max(begin, stop)]
        begin = draw(st.integers(0, max(begin, stop)))
    copied += offsets[begin:]
    told = draw(st.lists(st.sampled_from(range(len(copied))), max_size=10, unique=True))
    return offsets, copied, [(copied[d], d) for d in told]


@given(histories(), st.integers(1, 60))
def test_a_position_never_skips_a_record_that_has_not_been_read(
    history: tuple[list[int], list[int], list[tuple[int, int]]], read: int
) -> None:
    offsets, copied, syncs = history
    source = LogDigest(offsets=array("q", offsets), digests=array("q", offsets))
    first = max(0, len(copied) - read)
    target = log(copied[first:], first=first)
    agreed = find_agreed(source, target)
    assert agreed.goes_on == copied[-1] + 1
    seed = Seed(partition=PLACE, agreed=agreed, target_start=0, target_end=len(copied))
    known = seeded(seed, syncs)
    assert known.mirrored_source_end == agreed.goes_on
    assert known.runs.start_of(known.place_end) == len(copied)
    for position in range(agreed.goes_on + 1):
        goes_on = translate_clamped(known, position)
        assert goes_on is not None
        unread = {offset for offset in copied if offset >= position}
        assert unread <= set(copied[goes_on.target_offset :])

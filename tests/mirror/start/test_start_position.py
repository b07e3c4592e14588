"""Where a partition goes on, or why it does not."""

from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror.clusters.log_ends import LogEnds
from mirror.start.start_position import (
    OwnPart,
    Situation,
    Start,
    Stop,
    decide_start,
    passing_over,
    unless_own_is_unknown,
)
from mirror.state.partition_state import PartitionState
from offset_translation.map_records import PieceStartKey, Reached, SealKey
from offset_translation.offset_map import OffsetMap
from offset_translation.runs import Place
from offset_translation.topic_identity import NO_ID, is_recreated


def decide(offset_map: OffsetMap, source: tuple[int, int], target: tuple[int, int]) -> Start | Stop:
    return decide_start(
        "t",
        0,
        Situation(
            offset_map=offset_map,
            source=LogEnds(start=source[0], end=source[1]),
            target=LogEnds(start=target[0], end=target[1]),
        ),
    )


def stopped_as(decision: Start | Stop) -> PartitionState | None:
    return decision.state if isinstance(decision, Stop) else None


def test_a_new_partition_begins_at_the_sources_first_record() -> None:
    assert decide(OffsetMap(), (57, 90), (0, 0)) == Start(source=57, place=Place(0), announce=True)


def test_an_empty_partition_is_announced_once() -> None:
    offset_map = OffsetMap.from_starts([(57, 0)], 0)
    assert decide(offset_map, (57, 57), (0, 0)) == Start(source=57, place=Place(0), announce=False)


def test_a_target_that_was_emptied_by_retention_takes_the_mirror_behind_its_end() -> None:
    assert decide(OffsetMap(), (0, 90), (40, 40)) == Start(source=0, place=Place(40), announce=True)


def test_a_target_with_records_of_others_is_not_written() -> None:
    assert stopped_as(decide(OffsetMap(), (0, 90), (0, 4))) is PartitionState.TARGET_DIVERGED


def test_after_a_crash_it_goes_on_at_the_targets_end() -> None:
    offset_map = OffsetMap.from_starts([(0, 0), (10, 6)], 0)
    assert decide(offset_map, (0, 90), (0, 8)) == Start(source=12, place=Place(8), announce=False)


def test_announcements_whose_records_never_came_are_taken_back() -> None:
    offset_map = OffsetMap.from_starts([(0, 0), (10, 6), (20, 9)], 0)
    assert decide(offset_map, (0, 90), (0, 8)) == Start(
        source=12,
        place=Place(8),
        announce=False,
        withdraw=(PieceStartKey(topic="t", partition=0, place=Place(9)),),
    )


def test_records_deleted_before_they_were_mirrored_are_counted() -> None:
    decision = decide(OffsetMap.from_starts([(0, 0)], 0), (20, 90), (0, 8))
    assert isinstance(decision, Stop)
    assert decision.state is PartitionState.RETENTION_OVERRUN
    assert decision.lost_records == 12
    assert decision.skip_to == Start(source=20, place=Place(8), announce=True, left_out=12)


def test_what_somebody_has_decided_to_leave_out_begins_a_piece_behind_it() -> None:
    start = Start(source=12, place=Place(8), announce=False)
    assert passing_over(start, 12) == start
    assert passing_over(start, 0) == start
    passed = passing_over(start, 30)
    assert passed == Start(source=30, place=Place(8), announce=True, left_out=18)
    offset_map = OffsetMap.from_starts([(0, 0), (10, 6)], 8)
    offset_map.announce(passed.source, passed.place)
    offset_map.advance(9)
    assert offset_map.mirrored_source_end == 31


def test_a_source_that_ends_before_the_position_has_gone_back() -> None:
    decision = decide(OffsetMap.from_starts([(0, 0)], 0), (0, 5), (0, 8))
    assert stopped_as(decision) is PartitionState.SOURCE_WENT_BACK


def test_an_emptied_target_begins_anew_whatever_the_map_says() -> None:
    offset_map = OffsetMap.from_starts([(0, 0), (10, 6)], 0)
    assert decide(offset_map, (30, 90), (0, 0)) == Start(
        source=30,
        place=Place(0),
        announce=True,
        withdraw=(PieceStartKey(topic="t", partition=0, place=Place(6)),),
    )


def test_a_seal_without_records_behind_it_is_taken_back() -> None:
    offset_map = OffsetMap.from_starts([(0, 0)], 8)
    offset_map.seal(8, 8)
    assert decide(offset_map, (0, 90), (0, 8)) == Start(
        source=8,
        place=Place(8),
        announce=True,
        withdraw=(SealKey(topic="t", partition=0, target_end=8),),
    )


def test_records_behind_a_seal_are_the_targets_own() -> None:
    offset_map = OffsetMap.from_starts([(0, 0)], 8)
    offset_map.seal(8, 8)
    decision = decide(offset_map, (0, 90), (0, 11))
    assert isinstance(decision, Stop)
    assert decision.state is PartitionState.TARGET_DIVERGED
    assert "offsets 8 to 10 of the target's own writers" in decision.reason
    assert decision.own == OwnPart(8, 11)
    assert decision.skip_to == Start(source=8, place=Place(8), announce=True, run=11)


def test_a_topic_is_known_by_its_id_where_brokers_give_one() -> None:
    assert is_recreated(UUID(int=1), UUID(int=2))
    assert not is_recreated(UUID(int=1), UUID(int=1))
    assert not is_recreated(UUID(int=1), NO_ID)
    assert not is_recreated(None, UUID(int=1))


def arrived(pieces: list[tuple[int, int]], ends: tuple[int, int], log_end: int) -> OffsetMap:
    """What the other direction has brought into the source before it was sealed there."""
    offset_map = OffsetMap.from_starts(pieces, ends[1])
    offset_map.seal(*ends)
    offset_map.advance(log_end)
    return offset_map


def decide_back(
    offset_map: OffsetMap, source: tuple[int, int], target: tuple[int, int], came: OffsetMap
) -> Start | Stop:
    return decide_start(
        "t",
        0,
        Situation(
            offset_map=offset_map,
            source=LogEnds(start=source[0], end=source[1]),
            target=LogEnds(start=target[0], end=target[1]),
            arrived=came,
        ),
    )


def test_the_way_back_begins_behind_what_came_and_appends_to_the_targets_own() -> None:
    came = arrived([(0, 0), (10, 6)], (14, 10), 25)
    assert decide_back(OffsetMap(), (0, 25), (0, 14), came) == Start(
        source=10, place=Place(0), announce=True, run=14
    )


def test_records_that_were_lost_with_a_site_are_named_when_it_comes_back() -> None:
    came = arrived([(0, 0)], (10, 10), 25)
    decision = decide_back(OffsetMap(), (0, 25), (0, 13), came)
    assert isinstance(decision, Stop)
    assert decision.state is PartitionState.TARGET_DIVERGED
    assert decision.reason == "the target holds offsets 10 to 12 that the source never got"
    assert decision.skip_to == Start(source=10, place=Place(0), announce=True, run=13)
    assert decision.own == OwnPart(10, 13)


def test_nobody_decides_about_records_that_the_source_may_have_got() -> None:
    """Set aside or merged, they would be left out, or be there twice."""
    sealed = arrived([(0, 0)], (10, 10), 13)
    decision = decide(sealed, (0, 25), (0, 13))
    assert isinstance(decision, Stop)
    assert decision.own == OwnPart(10, 13)
    unsure = unless_own_is_unknown(decision, None)
    assert isinstance(unsure, Stop)
    assert (unsure.state, unsure.skip_to, unsure.own) == (decision.state, None, None)
    assert unsure.reason.startswith(f"{decision.reason}; or the source has got them: ")
    assert unsure.reason.endswith("see `failover recover --believe-maps`")
    back = Stop(state=PartitionState.SOURCE_WENT_BACK, reason="")
    assert unless_own_is_unknown(back, None) is back


@given(st.integers(0, 20), st.integers(0, 5), st.integers(0, 9))
def test_behind_what_was_set_aside_the_way_back_goes_on_and_leaves_it_out_for_good(
    mirrored: int, lost: int, own: int
) -> None:
    """Setting aside moves the seal of what came from the target behind its last record."""
    target_end = mirrored + lost
    came = arrived([(0, 0)], (target_end, mirrored), mirrored + own)
    start = decide_back(OffsetMap(), (0, mirrored + own), (0, target_end), came)
    assert isinstance(start, Start)
    assert (start.source, start.place) == (mirrored, 0)
    assert start.run == (target_end or None)
    assert came.mirrored_source_end == target_end, "the flow from there passes over it"


def test_a_site_that_comes_back_without_its_records_is_not_written() -> None:
    came = arrived([(0, 0)], (10, 10), 25)
    for offset_map in (OffsetMap(), OffsetMap.from_starts([(10, 0)], 0)):
        decision = decide_back(offset_map, (0, 25), (0, 0), came)
        assert isinstance(decision, Stop)
        assert "it has lost records of its own" in decision.reason
        assert decision.skip_to is None


def test_after_a_failback_the_first_flow_goes_on_behind_the_others_records() -> None:
    """dc1 to dc2 was sealed at 10; dc2 wrote 10..24, which dc1 has at 12..26; dc1 writes on."""
    offset_map = OffsetMap.from_starts([(0, 0)], 10)
    offset_map.seal(12, 10)
    came = OffsetMap.from_starts([(10, 0)], 0)
    came.begin_run(Place(0), 12)
    came.advance(27)
    came.seal(25, 27)
    came.advance(40)
    decision = decide_back(offset_map, (0, 40), (0, 25), came)
    assert decision == Start(source=27, place=Place(10), announce=True, run=25)
    offset_map.begin_run(Place(10), 25)
    offset_map.announce(27, Place(10))
    offset_map.advance(30)
    assert decide_back(offset_map, (0, 40), (0, 30), came) == Start(
        source=32, place=Place(15), announce=False
    )


def test_after_a_failback_what_retention_took_of_the_others_records_was_not_ours() -> None:
    """dc2 was active for longer than records are kept; a marker of it lay in 1,500."""
    offset_map = OffsetMap.from_starts([(0, 0)], 1_000)
    offset_map.seal(1_000, 1_000)
    came = OffsetMap.from_starts([(1_000, 0), (1_501, 500)], 0)
    came.begin_run(Place(0), 1_000)
    came.seal(2_001, 2_000)
    came.advance(2_000)
    goes_on = Start(source=2_000, place=Place(1_000), announce=True, run=2_001)
    assert decide_back(offset_map, (0, 2_000), (0, 2_001), came) == goes_on
    assert came.trim(1_800, 1_800) == (0,)
    assert decide_back(offset_map, (1_800, 2_000), (1_800, 2_001), came) == goes_on


def test_a_tail_that_the_target_has_lost_is_sent_again_and_never_its_own_records() -> None:
    offset_map = OffsetMap.from_starts([(0, 0), (27, 10)], 10)
    offset_map.seal(12, 10)
    offset_map.begin_run(Place(10), 25)
    came = OffsetMap.from_starts([(10, 0)], 0)
    came.begin_run(Place(0), 12)
    came.seal(22, 24)
    came.advance(40)
    decision = decide_back(offset_map, (0, 40), (0, 22), came)
    assert isinstance(decision, Start)
    assert (decision.place, decision.run) == (10, 22)
    assert {type(key).__name__ for key in decision.withdraw} == {"RunStartKey"}


def test_a_shared_target_goes_on_where_its_tail_says_whatever_others_have_written() -> None:
    for is_shared, run in ((True, None), (False, 30)):
        offset_map = OffsetMap.from_starts([(0, 0)], 0)
        offset_map.begin_run(Place(6), 9)
        came = arrived([(3, 0)], (30, 12), 40)
        decision = decide_start(
            "t",
            0,
            Situation(
                offset_map=offset_map,
                source=LogEnds(start=0, end=40),
                target=LogEnds(start=0, end=30),
                arrived=came,
                is_shared=is_shared,
                tail=Reached(place=Place(8), target_end=11),
            ),
        )
        assert isinstance(decision, Start)
        assert (decision.source, decision.place, decision.run) == (12, 8, run)


def test_a_target_that_has_records_of_its_own_is_no_trouble_while_both_directions_run() -> None:
    seen = Situation(
        offset_map=OffsetMap(),
        source=LogEnds(start=2, end=9),
        target=LogEnds(start=0, end=5),
        is_shared=True,
    )
    assert decide_start("t", 0, seen) == Start(source=2, place=Place(0), announce=True, run=5)


@pytest.mark.parametrize(("end", "is_placed"), [(10, True), (9, False)])
def test_what_the_other_direction_has_passed_over_by_now_is_no_lost_record(
    end: int, is_placed: bool
) -> None:
    """dc2 had ten records of its own; then a transaction was aborted there."""
    came = OffsetMap.from_starts([(0, 0), (15, 10)], 10)
    seen = Situation(
        offset_map=OffsetMap.from_starts([(0, 0)], 0),
        source=LogEnds(start=0, end=10),
        target=LogEnds(start=0, end=end),
        arrived=came,
        is_shared=True,
        tail=Reached(place=Place(0), target_end=0),
    )
    decision = decide_start("t", 0, seen)
    assert isinstance(decision, Start) is is_placed
    if isinstance(decision, Stop):
        assert decision.reason == (
            "the target ends at 9, but offsets up to 9 were mirrored from there: "
            "it has lost records of its own"
        )


@pytest.mark.parametrize(
    ("behind", "set_aside", "source"),
    [
        (8, {}, 8),  # all of the hole came back
        (9, {}, 8),  # where a marker was, a record may lie by now
        (9, {8: 9}, 9),
        (10, {8: 9}, 9),
    ],
)
def test_behind_a_failback_a_hole_is_read_again_but_for_what_came_back_or_was_set_aside(
    behind: int, set_aside: dict[int, int], source: int
) -> None:
    offset_map = OffsetMap.from_starts([(0, 0), (behind, 5)], 8)
    offset_map.begin_run(Place(5), 8)
    arrived = OffsetMap.from_starts([(5, 5)], 8)
    seen = Situation(
        offset_map=offset_map,
        source=LogEnds(start=0, end=12),
        target=LogEnds(start=0, end=8),
        arrived=arrived,
        was_returned=True,
        reads_holes_again=True,
        set_aside=set_aside,
    )
    key = PieceStartKey(topic="t", partition=0, place=Place(5))
    is_read = source < behind
    assert decide_start("t", 0, seen) == Start(
        source=source,
        place=Place(5),
        announce=is_read,
        withdraw=(key,) if is_read else (),
    )
    unknown = replace(seen, arrived=None)
    assert decide_start("t", 0, unknown) == Start(source=behind, place=Place(5), announce=False)

"""Where a partition goes on, or why it does not."""

from uuid import UUID

from mirror.partition_state import PartitionState
from mirror.start_position import (
    NO_ID,
    LogEnds,
    Start,
    Stop,
    decide_start,
    is_recreated,
    passing_over,
)
from offset_translation.map_records import PieceStartKey, SealKey
from offset_translation.offset_map import OffsetMap


def decide(offset_map: OffsetMap, source: tuple[int, int], target: tuple[int, int]) -> Start | Stop:
    return decide_start(
        "t",
        0,
        offset_map=offset_map,
        source=LogEnds(start=source[0], end=source[1]),
        target=LogEnds(start=target[0], end=target[1]),
    )


def stopped_as(decision: Start | Stop) -> PartitionState | None:
    return decision.state if isinstance(decision, Stop) else None


def test_a_new_partition_begins_at_the_sources_first_record() -> None:
    assert decide(OffsetMap(), (57, 90), (0, 0)) == Start(source=57, target=0, announce=True)


def test_an_empty_partition_is_announced_once() -> None:
    offset_map = OffsetMap.from_starts([(57, 0)], 0)
    assert decide(offset_map, (57, 57), (0, 0)) == Start(source=57, target=0, announce=False)


def test_a_target_that_was_emptied_by_retention_takes_the_mirror_behind_its_end() -> None:
    assert decide(OffsetMap(), (0, 90), (40, 40)) == Start(source=0, target=40, announce=True)


def test_a_target_with_records_of_others_is_not_written() -> None:
    assert stopped_as(decide(OffsetMap(), (0, 90), (0, 4))) is PartitionState.TARGET_DIVERGED


def test_after_a_crash_it_goes_on_at_the_targets_end() -> None:
    offset_map = OffsetMap.from_starts([(0, 0), (10, 6)], 0)
    assert decide(offset_map, (0, 90), (0, 8)) == Start(source=12, target=8, announce=False)


def test_announcements_whose_records_never_came_are_taken_back() -> None:
    offset_map = OffsetMap.from_starts([(0, 0), (10, 6), (20, 9)], 0)
    assert decide(offset_map, (0, 90), (0, 8)) == Start(
        source=12,
        target=8,
        announce=False,
        withdraw=(PieceStartKey(topic="t", partition=0, target_start=9),),
    )


def test_records_deleted_before_they_were_mirrored_are_counted() -> None:
    decision = decide(OffsetMap.from_starts([(0, 0)], 0), (20, 90), (0, 8))
    assert isinstance(decision, Stop)
    assert decision.state is PartitionState.RETENTION_OVERRUN
    assert decision.lost_records == 12
    assert decision.skip_to == Start(source=20, target=8, announce=True, left_out=12)


def test_what_somebody_has_decided_to_leave_out_begins_a_piece_behind_it() -> None:
    start = Start(source=12, target=8, announce=False)
    assert passing_over(start, 12) == start
    assert passing_over(start, 0) == start
    passed = passing_over(start, 30)
    assert passed == Start(source=30, target=8, announce=True, left_out=18)
    offset_map = OffsetMap.from_starts([(0, 0), (10, 6)], 8)
    offset_map.announce(passed.source, passed.target)
    assert offset_map.source_position(9) == 31


def test_a_source_that_ends_before_the_position_has_gone_back() -> None:
    decision = decide(OffsetMap.from_starts([(0, 0)], 0), (0, 5), (0, 8))
    assert stopped_as(decision) is PartitionState.SOURCE_WENT_BACK


def test_an_emptied_target_begins_anew_whatever_the_map_says() -> None:
    offset_map = OffsetMap.from_starts([(0, 0), (10, 6)], 0)
    assert decide(offset_map, (30, 90), (0, 0)) == Start(
        source=30,
        target=0,
        announce=True,
        withdraw=(PieceStartKey(topic="t", partition=0, target_start=6),),
    )


def test_a_seal_without_records_behind_it_is_taken_back() -> None:
    offset_map = OffsetMap.from_starts([(0, 0)], 8)
    offset_map.seal(8, 8)
    assert decide(offset_map, (0, 90), (0, 8)) == Start(
        source=8,
        target=8,
        announce=True,
        withdraw=(SealKey(topic="t", partition=0, target_end=8),),
    )


def test_records_behind_a_seal_are_the_targets_own() -> None:
    offset_map = OffsetMap.from_starts([(0, 0)], 8)
    offset_map.seal(8, 8)
    decision = decide(offset_map, (0, 90), (0, 11))
    assert isinstance(decision, Stop)
    assert decision.state is PartitionState.TARGET_DIVERGED
    assert "behind target offset 8" in decision.reason


def test_a_topic_is_known_by_its_id_where_brokers_give_one() -> None:
    assert is_recreated(UUID(int=1), UUID(int=2))
    assert not is_recreated(UUID(int=1), UUID(int=1))
    assert not is_recreated(UUID(int=1), NO_ID)
    assert not is_recreated(None, UUID(int=1))

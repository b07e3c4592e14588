"""The pure parts of draining and of moving groups."""

from dataclasses import replace

from failover.moving.drain import SourceLogs, missing
from failover.moving.groups import HAS_MEMBERS, IS_AHEAD, BothMaps, Moved, choose
from offset_translation.offset_map import OffsetMap
from wire.net.operations import GroupOffset
from wire.topic_partition import TopicPartition

P0, P1, P2 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("t", 2)
LOGS = SourceLogs(starts={P0: 0, P1: 70, P2: 0}, ends={P0: 10, P1: 70, P2: 5})


def test_what_is_missing_is_counted_by_partition() -> None:
    assert missing(LOGS, {P0: 4, P1: None, P2: 5}) == {P0: 6}
    assert missing(LOGS, {P0: None, P1: 3, P2: None}) == {P0: 10, P2: 5}


def test_a_log_whose_records_are_all_gone_has_nothing_to_drain() -> None:
    assert missing(LOGS, {P0: 10, P1: None, P2: 7}) == {}


MAPS = BothMaps(
    forward={
        P0: OffsetMap.from_starts([(2, 2), (10, 6)], 11),
        P1: OffsetMap.from_starts([(0, 0)], 3),
    }
)


def position(offset: int) -> GroupOffset:
    """A stored position."""
    return GroupOffset(offset=offset, metadata="")


def test_positions_are_translated_exactly_and_only_forward() -> None:
    source = {P0: position(12), P1: position(2), P2: position(9)}
    target = {P0: position(5), P1: position(3)}
    assert choose(MAPS, source, target, is_idle=True) == Moved(
        positions={P0: 8},
        committed={P0: 8},
        left={P1: IS_AHEAD.format(current=3, stored=2, wanted=2)},
        ahead=1,
    )


def test_a_position_that_is_there_already_is_not_committed_again() -> None:
    moved = choose(MAPS, {P0: position(12)}, {P0: position(8)}, is_idle=True)
    assert (moved.positions, moved.committed, moved.left) == ({P0: 8}, {}, {})


def test_a_group_with_members_on_the_target_is_left_alone() -> None:
    moved = choose(MAPS, {P0: position(12)}, {}, is_idle=False)
    assert moved == Moved(left={P0: HAS_MEMBERS})


def test_a_group_with_members_on_the_target_is_left_only_where_something_was_to_be_moved() -> None:
    there = choose(MAPS, {P0: position(12)}, {P0: position(8)}, is_idle=False)
    assert (there.positions, there.left) == ({P0: 8}, {})
    behind = choose(MAPS, {P0: position(12)}, {P0: position(7)}, is_idle=False)
    assert behind == Moved(left={P0: HAS_MEMBERS})


def test_a_position_before_the_targets_log_start_goes_on_at_the_first_record_left() -> None:
    maps = replace(MAPS, target_starts={P0: 9})
    wanted = Moved(positions={P0: 9}, committed={P0: 9}, cut={P0: 9})
    assert choose(maps, {P0: position(12)}, {}, is_idle=True) == wanted
    assert choose(maps, {P0: position(12)}, {P0: position(3)}, is_idle=True) == wanted
    there = choose(maps, {P0: position(12)}, {P0: position(9)}, is_idle=True)
    assert (there.positions, there.committed) == ({P0: 9}, {})
    behind = choose(maps, {P0: position(14)}, {}, is_idle=True)
    assert (behind.committed, behind.cut) == ({P0: 10}, {})

"""What `mirror offsets` says of a group where records have flowed both ways."""

from dataclasses import replace

import pytest

from mirror.commands.group_rows import (
    Exactness,
    GroupRow,
    GroupsSeen,
    KnownCheckpoint,
    group_rows,
    summary,
)
from mirror.commands.position_table import rows_table
from mirror.commands.position_words import Line, PositionsUnreadable
from mirror.commands.positions import check_within
from offset_translation.checkpoint import Checkpoint
from offset_translation.offset_map import OffsetMap
from offset_translation.runs import Place
from runtime.program.page import page_text
from tests.mirror.building import CONFIG
from wire.topic_partition import TopicPartition

PLACE = TopicPartition("orders", 0)


def row(
    sight: GroupsSeen, source: int | None, target: int, *, applied: int | None = None
) -> GroupRow:
    """Return the row of a group with these positions; ``source`` None: the source is lost."""
    one = Checkpoint(
        group="g",
        topic="orders",
        partition=0,
        upstream_offset=20,
        downstream_offset=applied or 0,
        metadata="",
    )
    [found] = group_rows(
        "g",
        source=None if source is None else {PLACE: source},
        target={PLACE: target},
        checkpoints={}
        if applied is None
        else {PLACE: KnownCheckpoint(checkpoint=one, written_ms=1)},
        sight=sight,
    )
    return found


def after_a_failover() -> GroupsSeen:
    """dc1's 0..13 are dc2's 0..9; dc2 went on with 10..24, which dc1 has at 14..28."""
    came = OffsetMap.from_starts([(0, 0), (6, 2)], 10)
    came.seal(14, 10)
    came.advance(25)
    back = OffsetMap.from_starts([(10, 0)], 0)
    back.begin_run(Place(0), 14)
    back.advance(29)
    return GroupsSeen(
        maps={PLACE: back},
        backward={PLACE: came},
        source_ends={PLACE: 25},
        target_starts={PLACE: 0},
    )


def with_a_tail_that_was_kept() -> GroupsSeen:
    """dc1's 0..39 are on dc2; its 40..46 never were, and dc2's 40..69 came back behind them."""
    came = OffsetMap.from_starts([(0, 0)], 40)
    came.seal(40, 40)
    came.advance(70)
    back = OffsetMap.from_starts([(40, 0)], 0)
    back.begin_run(Place(0), 47)
    back.advance(77)
    return GroupsSeen(
        maps={PLACE: back},
        backward={PLACE: came},
        source_ends={PLACE: 70},
        target_starts={PLACE: 0},
    )


def test_records_are_counted_and_holes_are_not() -> None:
    found = row(after_a_failover(), 17, target=0)
    assert (found.translated, found.exactness) == (21, Exactness.EXACT)
    assert (found.source_lag, found.reread, found.skipped) == (8, 17, 0)


def test_a_position_at_its_counterpart_costs_nothing() -> None:
    for source, target in ((0, 0), (2, 6), (10, 14), (25, 29)):
        found = row(after_a_failover(), source, target)
        assert (found.translated, found.reread, found.skipped) == (target, 0, 0)


def test_what_lies_behind_unread_records_is_told_as_read_again() -> None:
    found = row(with_a_tail_that_was_kept(), 70, target=40)
    assert (found.translated, found.exactness) == (40, Exactness.AMONG_READ)
    assert (found.reread, found.skipped) == (30, 0)


def test_records_that_only_the_target_has_are_told_as_passed_over() -> None:
    found = row(with_a_tail_that_was_kept(), 70, target=77)
    assert (found.reread, found.skipped) == (0, 7)


def test_with_the_source_lost_what_was_applied_last_counts() -> None:
    """Only the map that lies on the target is there; it knows nothing of what came back."""
    lost = after_a_failover()
    sight = GroupsSeen(maps=lost.maps, source_ends={}, target_starts={PLACE: 0})
    found = row(sight, None, target=24, applied=24)
    assert (found.source_offset, found.is_last_known) == (20, True)
    assert (found.translated, found.exactness, found.reread) == (24, Exactness.EXACT, 0)


def test_a_file_of_positions_goes_by_the_names_on_the_target() -> None:
    """In a flow with prefixes a topic of the source's name is the target's own."""
    offset_map = OffsetMap.from_starts([(0, 0)], 10)
    sight = GroupsSeen(
        maps={TopicPartition("orders", 0): offset_map},
        source_ends={},
        target_starts={TopicPartition("orders", 0): 0},
    )
    flow = replace(CONFIG, is_prefixed=True)
    check_within(flow, sight, "f", Line("g", "dc1.orders", 0, 5, 1))
    with pytest.raises(PositionsUnreadable, match="orders-0 is not mirrored by this flow"):
        check_within(flow, sight, "f", Line("g", "orders", 0, 5, 1))


def test_a_position_before_the_targets_log_start_is_shown_with_what_is_gone() -> None:
    sight = GroupsSeen(
        maps={PLACE: OffsetMap.from_starts([(0, 0)], 100)},
        source_ends={PLACE: 100},
        target_starts={PLACE: 50},
    )
    found = row(sight, 10, 10)
    assert (found.translated, found.gone, found.reread) == (50, 40, 0)
    assert found.exactness is Exactness.CUT
    table = page_text([rows_table([found], 0)])
    assert "before the target's log start: 40 offsets are gone there" in table
    assert "40 offsets before the target's log start are gone there" in summary([found])
    assert row(sight, 60, 60).exactness is Exactness.EXACT

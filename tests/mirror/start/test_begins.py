"""From where a partition is begun that was never mirrored: by the flow's `start`, and only once."""

import re
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror.clusters.log_ends import LogEnds
from mirror.start.begins import (
    NONE_SO_LATE,
    begin_at,
    due_begin,
    has_begun,
    is_due,
    known_begin,
    why_not_yet,
)
from mirror.start.start_position import Situation, Start, Stop, decide_start
from mirror.start.start_records import map_records_of
from mirror.state.partition import MirroredPartition
from mirror.state.partition_state import PartitionState
from offset_translation.map_records import flow_begun, piece_start, source_topic, start_due
from offset_translation.map_state import MapState
from offset_translation.offset_map import OffsetMap
from offset_translation.runs import Place
from offset_translation.translation import translate_clamped
from runtime.configuration.flow_section import PatternSet
from runtime.configuration.flow_start import EARLIEST, FlowStart, parse_start
from tests.mirror.building import CONFIG
from wire.errors import ErrorCode
from wire.topic_partition import TopicPartition

ID, OTHER = UUID(int=5), UUID(int=6)
WHERE = TopicPartition("t", 0)
EVERYTHING = PatternSet(include=(re.compile(".*"),), exclude=())
LATEST = replace(CONFIG, topics=EVERYTHING, start=parse_start("latest"))
OFFSETS = st.integers(0, 50)


def partition_of(state: MapState, topic_id: UUID = ID) -> MirroredPartition:
    """Return the partition as a worker that has just started discovers it."""
    return MirroredPartition(*WHERE, topic_id=topic_id, offset_map=state.map_of(WHERE), now_ms=0)


def due_state() -> MapState:
    """Return what the map says behind the first look of a flow that starts at the latest."""
    state = MapState()
    state.replay(*start_due(*WHERE, ID))
    state.replay(*flow_begun("ab", None, 5))
    return state


def begin(state: MapState, source: LogEnds, target: LogEnds, *, latest: int) -> Start | Stop:
    """Decide as a worker does that has just started, and keep in the map what it writes."""
    partition = partition_of(state)
    begins = {WHERE: latest} if is_due(state, partition) else {}
    seen = Situation(
        offset_map=partition.offset_map,
        source=source,
        target=target,
        begun=known_begin(state, partition),
        due=due_begin(state, LATEST, partition, begins, target),
    )
    decision = decide_start(*WHERE, seen)
    if isinstance(decision, Start):
        for record in map_records_of(partition, decision):
            state.replay(*record)
    return decision


@given(OFFSETS, OFFSETS, st.lists(st.tuples(OFFSETS, st.booleans()), max_size=6))
def test_whoever_is_killed_whenever_the_begin_stays_and_nothing_behind_it_is_skipped(
    log_start: int, kept: int, runs: list[tuple[int, bool]]
) -> None:
    state, end, mirrored = due_state(), log_start + kept, 0
    begun_at = end
    for arrive, forwards in [(0, False), *runs]:
        end += arrive
        source, target = LogEnds(start=log_start, end=end), LogEnds(start=0, end=mirrored)
        decision = begin(state, source, target, latest=end)
        assert isinstance(decision, Start)
        assert decision.source == begun_at + mirrored, "neither earlier, nor behind what came"
        assert decision.place == mirrored
        mirrored = end - begun_at if forwards else mirrored
    assert state.rejected == []


@given(OFFSETS, OFFSETS, OFFSETS, st.integers(0, 200))
def test_a_group_before_the_begin_goes_on_at_it_and_no_group_skips_what_the_target_has(
    log_start: int, kept: int, mirrored: int, position: int
) -> None:
    state, begun_at = due_state(), log_start + kept
    begin(
        state,
        LogEnds(start=log_start, end=begun_at),
        LogEnds(start=0, end=0),
        latest=begun_at,
    )
    offset_map = state.map_of(WHERE)
    offset_map.advance(mirrored)
    found = translate_clamped(offset_map, position)
    assert found is not None
    first_unread = max(position, begun_at) - begun_at
    assert found.target_offset == min(first_unread, mirrored)


def test_records_deleted_behind_the_begin_and_before_the_first_copy_stop_the_partition() -> None:
    state = due_state()
    begin(state, LogEnds(start=0, end=20), LogEnds(start=0, end=0), latest=20)
    found = begin(state, LogEnds(start=25, end=30), LogEnds(start=0, end=0), latest=30)
    assert isinstance(found, Stop)
    assert (found.state, found.lost_records) == (PartitionState.RETENTION_OVERRUN, 5)
    assert found.skip_to is not None
    assert (found.skip_to.source, found.skip_to.left_out) == (25, 5)


def test_a_source_that_ends_before_the_begin_has_gone_back() -> None:
    state = due_state()
    begin(state, LogEnds(start=0, end=20), LogEnds(start=0, end=0), latest=20)
    found = begin(state, LogEnds(start=0, end=7), LogEnds(start=0, end=0), latest=7)
    assert isinstance(found, Stop)
    assert found.state is PartitionState.SOURCE_WENT_BACK


def test_a_begin_lies_behind_what_the_other_direction_has_brought() -> None:
    state = due_state()
    partition = partition_of(state)
    arrived = OffsetMap.from_starts([(0, 0)], target_end=30)
    target = LogEnds(start=0, end=30)
    decision = decide_start(
        *WHERE,
        Situation(
            offset_map=partition.offset_map,
            source=LogEnds(start=0, end=40),
            target=target,
            arrived=arrived,
            due=due_begin(state, LATEST, partition, {WHERE: 20}, target),
        ),
    )
    assert isinstance(decision, Start)
    assert (decision.source, decision.run) == (30, 30)


def test_a_topic_that_was_made_again_begins_at_its_first_record() -> None:
    state = due_state()
    assert is_due(state, partition_of(state))
    assert not is_due(state, partition_of(state, OTHER))
    begin(state, LogEnds(start=0, end=20), LogEnds(start=0, end=0), latest=20)
    assert known_begin(state, partition_of(state)) is not None
    assert not is_due(state, partition_of(state))
    assert known_begin(state, partition_of(state, OTHER)) is None


def test_what_is_mirrored_anew_begins_at_the_first_record() -> None:
    state = due_state()
    begin(state, LogEnds(start=0, end=20), LogEnds(start=0, end=0), latest=20)
    for record in state.begins.withdrawals("t"):
        state.replay(*record)
    found = begin(state, LogEnds(start=0, end=30), LogEnds(start=0, end=0), latest=30)
    assert isinstance(found, Start)
    assert found.source == 0


def test_a_flow_has_begun_by_its_word_or_by_what_an_earlier_mirror_left() -> None:
    word, topics, pieces, of_others = (MapState() for _ in range(4))
    word.replay(*flow_begun("ab", None, 5))
    topics.replay(*source_topic("t", ID))
    pieces.replay(*piece_start("t", 0, source_start=0, place=Place(0)))
    of_others.replay(*source_topic("elsewhere", ID))
    of_others.replay(*flow_begun("ab", "payments", 5))
    config = replace(LATEST, topics=PatternSet(include=(re.compile("t"),), exclude=()))
    assert [has_begun(one, config) for one in (word, topics, pieces)] == [True] * 3
    assert not has_begun(of_others, config)
    assert has_begun(of_others, replace(config, topic_set="payments"))
    assert has_begun(word, replace(config, topic_set="payments")), "before there were sets"


def test_nothing_begins_before_it_is_told_where() -> None:
    state = MapState()
    partition = partition_of(state)
    assert "has not looked" in str(why_not_yet(state, LATEST, partition, {}))
    assert why_not_yet(state, replace(LATEST, start=EARLIEST), partition, {}) is None
    state = due_state()
    assert "not asked yet" in str(why_not_yet(state, LATEST, partition, {}))
    refused = {WHERE: ErrorCode.OFFSET_NOT_AVAILABLE}
    assert "OFFSET_NOT_AVAILABLE" in str(why_not_yet(state, LATEST, partition, refused))
    assert why_not_yet(state, LATEST, partition, {WHERE: 3}) is None


def test_the_end_that_counts_was_read_before_a_time_was_asked_for() -> None:
    ends = LogEnds(start=3, end=10)
    assert begin_at(NONE_SO_LATE, 12, ends) == 10, "11 and 12 came meanwhile, as late as it may be"
    assert begin_at(NONE_SO_LATE, 8, ends) == 8, "an open transaction is not cut"
    assert begin_at(5, 12, ends) == 5
    assert begin_at(0, 12, ends) == 3
    assert begin_at(5, ErrorCode.NOT_LEADER_OR_FOLLOWER, ends) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_start_is_a_word_or_a_time_with_its_zone() -> None:
    assert parse_start("latest") == FlowStart("latest", -1)
    assert parse_start("2026-01-31T08:00:00.25+02:00").at_ms == 1_769_839_200_250
    for wrong in (
        "2026-01-31T08:00:00",
        "yesterday",
        "2026-02-30T08:00:00Z",
        "1969-01-01T00:00:00Z",
    ):
        with pytest.raises(ValueError, match=re.escape(wrong)):
            parse_start(wrong)

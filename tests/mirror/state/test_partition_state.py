"""The table of states, and the run-time partition that walks it."""

from dataclasses import replace
from uuid import UUID

import pytest

from mirror.state.batches import Cursor, Forward
from mirror.state.partition import ANOTHER_LOG, MirroredPartition
from mirror.state.partition_state import (
    ADVICE,
    ALLOWED,
    STANDING,
    STOPPED,
    PartitionState,
    PartitionStatus,
    advice,
    advice_for,
    fill_anew,
    keep_copy,
    move,
    remedy,
)
from mirror.state.retries import MAX_BACKOFF_MS
from offset_translation.offset_map import OffsetMap
from offset_translation.runs import Place
from tests.mirror.building import CONFIG
from wire.topic_partition import TopicPartition

WHERE = TopicPartition("orders", 3)


def test_every_state_has_its_row_and_can_be_reached() -> None:
    assert set(ALLOWED) == set(PartitionState)
    reached = set().union(*ALLOWED.values())
    assert reached == set(PartitionState) - {PartitionState.DISCOVERING}


def test_every_stopped_state_says_what_to_do() -> None:
    assert set(ADVICE) == STOPPED


def test_every_stop_of_what_the_source_has_names_one_thing_to_do() -> None:
    assert STOPPED - {PartitionState.SOURCE_GONE} == STANDING
    told = {
        state: remedy(state, CONFIG, WHERE, is_savable=True, holds_own=False) for state in STANDING
    }
    diverged = PartitionState.TARGET_DIVERGED
    assert told[diverged].startswith("`mirror restart dc1-dc2 orders:3 --quarantine`")
    unclear = remedy(diverged, CONFIG, WHERE, is_savable=False, holds_own=False)
    assert unclear.startswith("`mirror restart dc1-dc2 orders --from-earliest`")
    assert unclear.endswith("where the map's topic was lost, `mirror rebuild-map` saves that")
    assert all(one.count("`") in {0, 2} for one in told.values())


REFUSED_FOR_OWN = (
    PartitionState.TOPIC_RECREATED,
    PartitionState.SOURCE_WENT_BACK,
    PartitionState.SOURCE_GONE,
)


@pytest.mark.parametrize("state", REFUSED_FOR_OWN)
def test_no_new_copy_is_advised_where_the_target_holds_records_of_its_own(
    state: PartitionState,
) -> None:
    """`mirror restart --from-earliest` is refused there."""
    kept = "`failover promote dc2 --source-lost --force --set payments` goes on with it"
    flow = replace(CONFIG, topic_set="payments")
    told = [advice_for(state, flow, is_savable=True, holds_own=True)]
    if state in STANDING:
        told.append(remedy(state, flow, WHERE, is_savable=True, holds_own=True))
    assert all(kept in one and "--from-earliest" not in one for one in told)
    assert "--from-earliest" in advice_for(state, flow, is_savable=True, holds_own=False)
    both_active = replace(CONFIG, is_active_active=True)
    told = [advice_for(state, both_active, is_savable=True, holds_own=True)]
    if state in STANDING:
        told.append(remedy(state, both_active, WHERE, is_savable=True, holds_own=False))
    assert not [one for one in told if "failover promote" in one]


def test_what_a_source_has_lost_is_not_deleted_on_the_target_before_anything_else() -> None:
    """The target's copy is the last that there is."""
    told = remedy(PartitionState.SOURCE_WENT_BACK, CONFIG, WHERE, is_savable=True, holds_own=False)
    advised = advice(PartitionState.SOURCE_WENT_BACK)
    assert told.startswith("`failover promote dc2 --source-lost --force` goes on with what dc1 has")
    assert advised.index("failover promote") < advised.index("only to give") < advised.index("mirr")


def test_an_idle_site_whose_log_is_another_than_both_maps_speak_of_is_filled_anew() -> None:
    """It was advised to promote that site, and to give up all that the active one has since."""
    diverged = PartitionState.TARGET_DIVERGED
    told = remedy(diverged, CONFIG, WHERE, is_savable=False, holds_own=True)
    assert told == advice_for(diverged, CONFIG, is_savable=False, holds_own=True)
    assert told == fill_anew(CONFIG)
    assert told.startswith("`mirror refill dc2 --write` has all brought from dc1 again")
    both_active = replace(CONFIG, is_active_active=True)
    assert fill_anew(both_active) == keep_copy(both_active)
    assert advice_for(diverged, CONFIG, is_savable=True, holds_own=True) == advice(diverged)


def test_what_is_known_to_be_the_targets_own_is_saved() -> None:
    diverged = PartitionState.TARGET_DIVERGED
    saved = remedy(diverged, CONFIG, WHERE, is_savable=True, holds_own=True)
    assert saved.startswith("`mirror restart dc1-dc2 orders:3 --quarantine`")


def test_what_to_do_about_a_flow_of_a_set_names_the_set() -> None:
    flow = replace(CONFIG, topic_set="payments")
    diverged = PartitionState.TARGET_DIVERGED
    told = remedy(diverged, flow, WHERE, is_savable=True, holds_own=False)
    assert told.startswith("`mirror restart dc1-dc2 orders:3 --quarantine --set payments`")
    for state in ADVICE:
        said = advice(state, "payments")
        commands = said.count("`mirror restart") + said.count("`failover ")
        assert commands == said.count(" --set payments`")
        assert "{" not in said + advice(state)


def test_the_table_is_kept() -> None:
    for state in PartitionState:
        status = PartitionStatus(state=state, since_ms=0)
        for other in PartitionState:
            if other is state:
                continue
            if other in ALLOWED[state]:
                assert move(status, other, 5).state is other
            else:
                with pytest.raises(AssertionError):
                    move(status, other, 5)


def test_a_state_keeps_its_age_when_only_the_reason_changes() -> None:
    status = move(
        PartitionStatus(state=PartitionState.WAITING, since_ms=3), PartitionState.WAITING, 9, "x"
    )
    assert (status.since_ms, status.reason) == (3, "x")


def forward(base: int, count: int = 1, size: int = 100) -> Forward:
    return Forward(Place(base), count, base + count, 0, size, (b"",))


def acknowledge(partition: MirroredPartition, sent: Forward, now_ms: int) -> None:
    """Send a batch to a target that takes it at this moment."""
    partition.in_flight.enqueue([sent])
    assert partition.in_flight.send_next(now_ms) is sent
    partition.acknowledge([sent], now_ms)


def flowing() -> MirroredPartition:
    offset_map = OffsetMap.from_starts([(0, 0)], 0)
    partition = MirroredPartition("t", 0, topic_id=UUID(int=1), offset_map=offset_map, now_ms=0)
    partition.target.find_position()
    partition.move(PartitionState.POSITIONING, 0)
    partition.go_on(Cursor(0, Place(0), 0), 0)
    partition.heard(source_end=10, readable_end=10, now_ms=0)
    return partition


def test_a_partition_streams_once_it_is_level_and_falls_back_when_it_stays_behind() -> None:
    partition = flowing()
    seen = [partition.state.value]
    acknowledge(partition, forward(0, 10), 50)
    seen.append(partition.state.value)
    partition.heard(source_end=20, readable_end=20, now_ms=100)
    seen.append(partition.state.value)
    partition.heard(source_end=30, readable_end=30, now_ms=10_000)
    seen.append(partition.state.value)
    assert seen == ["catching up", "streaming", "streaming", "catching up"]


def test_lag_is_the_time_since_it_was_level_and_unknown_before() -> None:
    partition = flowing()
    assert partition.lag_ms(1_000) is None
    acknowledge(partition, forward(0, 10), 1_000)
    partition.heard(source_end=10, readable_end=10, now_ms=1_500)
    assert partition.lag_ms(1_600) == 0
    partition.heard(source_end=12, readable_end=12, now_ms=2_000)
    assert partition.lag_ms(3_500) == 2_000


def test_lag_of_a_source_that_says_nothing_is_not_zero() -> None:
    partition = flowing()
    acknowledge(partition, forward(0, 10), 1_000)
    partition.heard(source_end=10, readable_end=10, now_ms=1_500)
    assert partition.lag_ms(60_000) == 58_500


def test_an_interruption_forgets_what_was_not_sent_and_waits_for_what_was() -> None:
    partition = flowing()
    partition.in_flight.enqueue([forward(0), forward(1)])
    partition.in_flight.send_next(0)
    partition.interrupt("broken", 100)
    assert partition.state is PartitionState.WAITING
    assert partition.in_flight.bytes == 100
    assert not partition.in_flight.queue
    assert not partition.in_flight.is_settled
    assert partition.cursor is None


def test_waiting_grows_with_failures_and_is_bounded() -> None:
    partition = flowing()
    waits = []
    for _ in range(10):
        partition.interrupt("broken", 0)
        waits.append(partition.retries.at_ms)
        partition.move(PartitionState.POSITIONING, 0)
        partition.go_on(Cursor(0, Place(0), 0), 0)
    assert waits == sorted(waits)
    assert waits[-1] == MAX_BACKOFF_MS


def test_a_stopped_partition_is_not_started_by_an_interruption_or_a_pause() -> None:
    partition = flowing()
    partition.stop(PartitionState.TARGET_DIVERGED, "somebody", 5)
    partition.interrupt("broken", 6)
    partition.pause("a command", 7)
    assert partition.status == PartitionStatus(
        state=PartitionState.TARGET_DIVERGED, since_ms=5, reason="somebody"
    )


def test_a_topic_that_is_back_goes_on_and_one_made_again_does_not() -> None:
    partition = flowing()
    partition.stop(PartitionState.SOURCE_GONE, "gone", 5)
    partition.come_back(6)
    states = [partition.state.value]
    partition.stop(PartitionState.SOURCE_GONE, "gone", 7)
    partition.stop(PartitionState.TOPIC_RECREATED, "another id", 8)
    states.append(partition.state.value)
    assert states == ["waiting", "topic recreated"]


def test_a_target_topic_of_another_id_is_new_until_the_partition_goes_on() -> None:
    partition = flowing()
    first, second, unknown = UUID(int=7), UUID(int=8), UUID(int=0)
    met = [partition.target.meet_topic(topic_id) for topic_id in (unknown, first, unknown, first)]
    assert (met, partition.target.is_new) == ([False] * 4, False)
    assert partition.target.meet_topic(second)
    assert not partition.target.meet_topic(second)
    assert partition.target.is_new
    partition.interrupt("made again", 5, at_once=True)
    partition.move(PartitionState.POSITIONING, 6)
    partition.go_on(Cursor(0, Place(0), 0), 7)
    assert not partition.target.is_new


def test_a_map_is_true_while_both_logs_are_those_that_it_speaks_of() -> None:
    partition = flowing()
    found = []
    for topic_id in (UUID(int=7), UUID(int=8)):
        partition.target.meet_topic(topic_id)
        found.append(partition.has_true_map)
    assert found == [True, False]


@pytest.mark.parametrize("state", [state for state in PartitionState if state in ANOTHER_LOG])
def test_a_map_in_doubt_is_true_again_only_once_the_partition_goes_on(
    state: PartitionState,
) -> None:
    partition = flowing()
    partition.stop(state, "another log", 5)
    found = [partition.has_true_map]
    partition.retry("somebody has decided", 6)
    found.append(partition.has_true_map)
    partition.move(PartitionState.POSITIONING, 7)
    found.append(partition.has_true_map)
    partition.go_on(Cursor(0, Place(0), 0), 8)
    assert [*found, partition.has_true_map] == [False, False, False, True]

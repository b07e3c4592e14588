"""The parts of a mirrored partition, each by itself."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from mirror.state.batches import Forward
from mirror.state.leadership import NO_LEADER, REPLICA_MS, PartitionLeaders
from mirror.state.partition_state import PartitionState
from mirror.state.retries import FIRST_BACKOFF_MS, MAX_BACKOFF_MS, Retries, backoff_ms
from mirror.state.skips import Skips
from mirror.state.source_log import FALLEN_BEHIND_MS, FRESH_MS, SourceLog
from mirror.state.target_log import TargetLog
from offset_translation.runs import Place
from runtime.configuration.flow_section import Policy


def heard(end: int, mirrored: int | None, now_ms: int) -> SourceLog:
    log = SourceLog(UUID(int=1))
    log.hear(end, end, mirrored, now_ms)
    return log


def test_a_mirror_is_level_as_of_when_the_end_it_has_reached_was_heard() -> None:
    log = heard(10, 4, 100)
    log.hear(20, 20, 6, 200)
    assert log.reach(9) is False
    assert (log.level_ms, log.next_look) == (None, 10), "until 10 nothing changes"
    assert log.reach(10) is False
    assert log.level_ms == 100, "then everything readable at 100 is mirrored"
    assert log.reach(20) is True
    assert log.since_level_ms(250) == 50
    assert not log.has_fallen_behind(100 + FALLEN_BEHIND_MS)
    assert log.has_fallen_behind(101 + FALLEN_BEHIND_MS)


def test_records_behind_an_open_transaction_grow_old() -> None:
    log = SourceLog(UUID(int=1))
    log.hear(10, 10, 10, 100)
    assert log.since_level_ms(100) == 0
    log.hear(12, 10, 10, 200)
    log.hear(50, 10, 10, 60_000)
    assert log.reach(10) is True, "all that may be read is mirrored"
    assert not log.has_fallen_behind(60_000)
    assert log.since_level_ms(60_000) == 59_900
    assert log.held_since_ms(10) == 200
    log.hear(50, 50, 10, 61_000)
    assert log.held_since_ms(10) is None, "it has ended: the mirror is at work"
    log.reach(50)
    assert log.since_level_ms(61_200) == 200
    log.hear(50, 50, 50, 61_500)
    assert (log.since_level_ms(61_500), log.held_since_ms(50)) == (0, None)


@given(end=st.integers(0, 100), mirrored=st.integers(0, 200), passed=st.integers(0, 2 * FRESH_MS))
def test_a_lag_is_never_negative_and_unknown_once_the_source_says_nothing(
    end: int, mirrored: int, passed: int
) -> None:
    lag = heard(end, mirrored, 5).lag_records(mirrored, 5 + passed)
    assert lag == (max(0, end - mirrored) if passed <= FRESH_MS else None)


def test_nothing_is_known_of_the_lag_before_the_source_or_the_map_says() -> None:
    assert SourceLog(UUID(int=1)).lag_records(3, 0) is None
    assert SourceLog(UUID(int=1)).reach(3) is None
    assert heard(10, None, 0).lag_records(None, 0) is None
    assert heard(10, None, 0).reach(None) is None


def test_a_replica_is_read_from_until_its_leader_is_to_be_asked_again() -> None:
    leaders = PartitionLeaders()
    assert leaders.fetched_from == NO_LEADER
    assert leaders.follow_source(1, 5)
    leaders.read_from(2, 100)
    assert leaders.fetched_from == 2
    assert not leaders.ask_leader_again(100 + REPLICA_MS)
    assert leaders.ask_leader_again(101 + REPLICA_MS)
    assert leaders.fetched_from == 1
    assert not leaders.ask_leader_again(101 + REPLICA_MS), "it is the leader already"


def test_a_leader_of_another_epoch_is_another() -> None:
    leaders = PartitionLeaders()
    assert leaders.follow_source(1, 5)
    assert not leaders.follow_source(1, 5)
    assert leaders.follow_source(1, 6)
    assert leaders.follow_target(3, 7)
    assert not leaders.follow_target(3, 7)
    assert leaders.follow_target(3, 8)


@given(st.integers(0, 10_000))
def test_waits_double_from_the_first_up_to_the_longest(failures: int) -> None:
    assert FIRST_BACKOFF_MS <= backoff_ms(failures) <= backoff_ms(failures + 1) <= MAX_BACKOFF_MS
    assert [backoff_ms(count) for count in range(7)] == [100, 200, 400, 800, 1_600, 3_200, 5_000]


def test_a_batch_that_the_target_takes_ends_the_trouble_of_before() -> None:
    retries = Retries()
    retries.fail()
    retries.put_off(1_000)
    assert retries.at_ms == 1_000 + backoff_ms(1)
    retries.wait_no_longer(1_050)
    assert retries.at_ms == 1_050
    assert retries.ask_again(PartitionState.NOT_AUTHORISED, 2_000) == 2_000
    assert retries.ask_again(PartitionState.NOT_AUTHORISED, 3_000) == 2_000, (
        "it is the same trouble"
    )
    assert retries.refuse_sequence(4_000) == 0
    assert retries.refuse_sequence(9_000) == 5_000
    retries.succeed()
    assert retries.ask_again(PartitionState.NOT_AUTHORISED, 10_000) == 10_000
    assert retries.refuse_sequence(10_000) == 0
    assert retries.failures == 0


def test_what_is_passed_over_is_counted_where_the_partition_goes_on() -> None:
    skips = Skips()
    skips.allow_once(Policy.SKIP)
    skips.refuse(40)
    skips.lose(7)
    skips.forget_stop()
    assert (skips.refused_through, skips.lost, skips.allowed_once) == (None, 0, Policy.SKIP)
    skips.pass_behind(40)
    assert (skips.pass_over, skips.allowed_once, skips.count) == (40, None, 0)
    skips.settle(3, 40)
    skips.settle(0, 41)
    assert (skips.pass_over, skips.count, skips.decided_end) == (None, 3, 40)


def test_runs_of_others_are_kept_until_the_map_topic_has_them() -> None:
    log = TargetLog()
    log.displace(Forward(Place(4), 1, 5, 0, 1, (b"",)), 6)
    log.displace(Forward(Place(8), 1, 9, 0, 1, (b"",)), 11)
    assert (log.shift, log.untold_runs) == (3, [(4, 6), (8, 11)])
    log.tell_runs(1)
    assert log.untold_runs == [(8, 11)]
    log.tell_runs()
    assert not log.untold_runs


def test_a_topic_that_the_target_lacks_is_new_once_something_was_mirrored_to_it() -> None:
    log = TargetLog()
    log.lack_topic()
    flags = [log.is_new]
    log.find_position()
    log.lack_topic()
    flags.append(log.is_new)
    log.go_on(0)
    assert [*flags, log.is_new] == [False, True, False]

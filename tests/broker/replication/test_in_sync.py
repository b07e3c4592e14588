"""Who is in sync, and what is committed because of it."""

from uuid import UUID

import pytest

from broker.replication.in_sync import UNKNOWN, InSync, IsrRules, PendingIsrChange
from broker.replication.leadership import Leadership

LAG_TIME_MAX_MS = 100


def leadership(
    *isr: int, epoch: int = 5, partition_epoch: int = 0, replicas: tuple[int, ...] = (0, 1, 2)
) -> Leadership:
    return Leadership(
        topic="t",
        index=0,
        topic_id=UUID(int=1),
        controller_epoch=1,
        leader=0,
        leader_epoch=epoch,
        isr=isr,
        replicas=replicas,
        partition_epoch=partition_epoch,
    )


@pytest.fixture
def alive() -> set[int]:
    return {0, 1, 2}


@pytest.fixture
def leader(alive: set[int]) -> InSync:
    """Broker 0 leads from offset 10 on, at time 1000, with all in sync."""
    made = InSync(0, IsrRules(lag_time_max_ms=LAG_TIME_MAX_MS, is_alive=alive.__contains__))
    made.take(leadership(0, 1, 2), leader_end=10, now_ms=1000)
    return made


def fetched(leader: InSync, broker: int, offset: int, *, leader_end: int, now_ms: int) -> None:
    leader.followers[broker].fetched(offset, 0, leader_end, now_ms)


def test_a_new_leader_commits_nothing_before_it_has_heard_of_all(leader: InSync) -> None:
    assert leader.high_watermark(12, 1000, 1) == UNKNOWN
    fetched(leader, 1, 12, leader_end=12, now_ms=1001)
    assert leader.high_watermark(12, 1001, 1) == UNKNOWN
    fetched(leader, 2, 11, leader_end=12, now_ms=1002)
    assert leader.high_watermark(12, 1002, 1) == 11


def test_nothing_is_committed_by_fewer_than_min_insync_replicas(leader: InSync) -> None:
    leader.take(leadership(0, partition_epoch=1), leader_end=12, now_ms=5000)
    assert leader.high_watermark(12, 5000, 2) == UNKNOWN
    assert leader.high_watermark(12, 5000, 1) == 12
    assert leader.effective_min(9) == 3


def test_who_keeps_up_with_a_busy_leader_is_caught_up(leader: InSync) -> None:
    follower = leader.followers[1]
    for step in range(5):
        fetched(leader, 1, 10 + 5 * step, leader_end=15 + 5 * step, now_ms=1000 + 60 * step)
    # It has never had all, but each time all that there was one fetch before.
    assert follower.last_caught_up_ms == 1180
    assert follower.is_caught_up(999, 1280, LAG_TIME_MAX_MS)
    assert not follower.is_caught_up(999, 1281, LAG_TIME_MAX_MS)


def test_who_has_everything_is_caught_up_however_long_it_is_silent(leader: InSync) -> None:
    fetched(leader, 1, 10, leader_end=10, now_ms=1000)
    assert leader.followers[1].is_caught_up(10, 99_000, LAG_TIME_MAX_MS)


def test_the_isr_shrinks_by_all_who_lag_and_once_at_a_time(leader: InSync) -> None:
    fetched(leader, 1, 10, leader_end=10, now_ms=1000)
    assert leader.shrink(11, 1100) is None
    change = leader.shrink(11, 1101)
    assert change is not None
    assert change.isr == (0,)
    assert leader.shrink(11, 9000) is None, "one is under way"
    assert leader.maximal == {0, 1, 2}, "they count until the controller has taken them out"
    assert leader.confirmed(leadership(0, partition_epoch=1))
    assert leader.high_watermark(11, 9000, 1) == 11


def test_who_joins_counts_before_the_controller_has_agreed(leader: InSync) -> None:
    leader.take(leadership(0, partition_epoch=1), leader_end=12, now_ms=2000)
    fetched(leader, 1, 12, leader_end=12, now_ms=2001)
    change = leader.expand(1, high_watermark=12)
    assert change is not None
    assert (change.isr, change.partition_epoch) == ((0, 1), 1)
    assert leader.high_watermark(20, 9000, 1) == 12, "the controller may have added it"
    assert leader.isr == {0}, "producers with min.insync.replicas=2 are refused until it has"
    leader.refused(change)
    assert leader.high_watermark(20, 9000, 1) == 20


def joining(leader: InSync) -> PendingIsrChange:
    """Let broker 1, which has all up to 12, be about to join broker 0 alone, at version 1."""
    leader.take(leadership(0, partition_epoch=1), leader_end=12, now_ms=2000)
    fetched(leader, 1, 12, leader_end=12, now_ms=2001)
    change = leader.expand(1, high_watermark=12)
    assert change is not None
    return change


def test_who_may_still_be_let_in_by_an_unanswered_request_counts_until_that_is_void(
    leader: InSync,
) -> None:
    """A copy of the request was refused; the one before it may arrive when its broker is back."""
    change = joining(leader)
    leader.unanswered(change)
    void = leader.refused(change)
    assert void is not None
    assert (void.isr, void.partition_epoch) == ((0,), 1), "the ISR as it is, in a newer version"
    assert leader.change is void
    assert leader.high_watermark(20, 9000, 1) == 12
    assert leader.shrink(20, 9000) is None
    assert leader.confirmed(leadership(0, partition_epoch=2))
    assert leader.high_watermark(20, 9000, 1) == 20


def test_an_unanswered_request_that_was_carried_out_after_all_is_asked_for_again(
    leader: InSync,
) -> None:
    change = joining(leader)
    leader.unanswered(change)
    void = leader.refused(change)
    assert void is not None
    assert leader.outdated(void) is change, "the controller answers it with the state it made"
    assert leader.high_watermark(20, 9000, 1) == 12
    assert leader.outdated(change) is None, "somebody else's change: the controller tells of it"
    assert leader.change is change
    assert leader.confirmed(leadership(0, 1, partition_epoch=2))
    assert leader.isr == {0, 1}


def test_a_doubt_ends_with_the_change_that_it_was_about(leader: InSync) -> None:
    leader.unanswered(joining(leader))
    assert leader.confirmed(leadership(0, partition_epoch=2))
    change = leader.expand(1, high_watermark=12)
    assert change is not None
    assert leader.refused(change) is None
    assert leader.maximal == {0}


def test_nobody_joins_without_all_that_is_committed(leader: InSync) -> None:
    leader.take(leadership(0, partition_epoch=1), leader_end=12, now_ms=2000)
    fetched(leader, 1, 11, leader_end=12, now_ms=2001)
    assert leader.expand(1, high_watermark=12) is None


def test_nobody_joins_before_it_has_reached_the_leaders_epoch(leader: InSync) -> None:
    """A new leader's high watermark may lie below what its predecessor had committed."""
    leader.take(leadership(0, epoch=6, partition_epoch=1), leader_end=30, now_ms=2000)
    fetched(leader, 1, 29, leader_end=30, now_ms=2001)
    assert leader.expand(1, high_watermark=12) is None
    fetched(leader, 1, 30, leader_end=30, now_ms=2002)
    assert leader.expand(1, high_watermark=12) is not None


def test_the_dead_do_not_join_and_are_not_waited_for(leader: InSync, alive: set[int]) -> None:
    leader.take(leadership(0, 2, partition_epoch=1), leader_end=12, now_ms=1000)
    fetched(leader, 2, 12, leader_end=12, now_ms=1001)
    fetched(leader, 1, 11, leader_end=12, now_ms=1001)
    assert leader.high_watermark(12, 1002, 1) == 11, "it may join any moment"
    alive.remove(1)
    assert leader.high_watermark(12, 1002, 1) == 12
    fetched(leader, 1, 12, leader_end=12, now_ms=1003)
    assert leader.expand(1, high_watermark=12) is None


def test_an_answer_of_another_epoch_or_an_older_one_settles_nothing(leader: InSync) -> None:
    leader.take(leadership(0, 1, partition_epoch=3), leader_end=12, now_ms=1000)
    assert not leader.confirmed(leadership(0, epoch=4, partition_epoch=9))
    assert not leader.confirmed(leadership(0, partition_epoch=2))
    assert leader.isr == {0, 1}


def test_an_answer_that_comes_twice_does_not_hide_the_change_asked_for_since(
    leader: InSync,
) -> None:
    leader.take(leadership(0, 1, partition_epoch=3), leader_end=12, now_ms=1000)
    fetched(leader, 2, 12, leader_end=12, now_ms=1001)
    assert leader.expand(2, high_watermark=12) is not None
    assert not leader.confirmed(leadership(0, 1, partition_epoch=3))
    assert leader.maximal == {0, 1, 2}


def test_what_followers_have_still_counts_in_the_next_epoch(leader: InSync) -> None:
    for broker in (1, 2):
        fetched(leader, broker, 12, leader_end=12, now_ms=1001)
    leader.take(leadership(0, 1, 2, epoch=6, partition_epoch=1), leader_end=12, now_ms=1002)
    assert leader.high_watermark(12, 1002, 1) == 12


def test_followers_are_unknown_behind_an_epoch_that_was_not_heard_of(leader: InSync) -> None:
    """Another may have led in it, and have cut them: here 1 has nothing above 11 any more."""
    for broker in (1, 2):
        fetched(leader, broker, 12, leader_end=12, now_ms=1001)
    leader.take(leadership(0, 1, epoch=7, partition_epoch=2), leader_end=12, now_ms=1002)
    assert leader.high_watermark(12, 1002, 1) == UNKNOWN
    assert leader.low_watermark(0) == UNKNOWN
    fetched(leader, 1, 11, leader_end=12, now_ms=1003)
    assert leader.high_watermark(12, 1003, 1) == 11


def test_replicas_come_and_go_with_a_reassignment(leader: InSync) -> None:
    fetched(leader, 1, 12, leader_end=12, now_ms=1001)
    moved = leadership(0, 1, epoch=6, partition_epoch=1, replicas=(0, 1, 7))
    leader.take(moved, leader_end=12, now_ms=1002)
    assert set(leader.followers) == {1, 7}
    assert leader.followers[1].log_end_offset == 12
    assert leader.high_watermark(12, 1002, 1) == 12, "7 is new and not in sync"


def test_who_is_in_sync_and_asks_for_what_is_committed_is_left_out_at_once(leader: InSync) -> None:
    fetched(leader, 1, 12, leader_end=12, now_ms=1001)
    fetched(leader, 2, 12, leader_end=12, now_ms=1001)
    assert leader.heard_of(1, 12) is None
    fetched(leader, 1, 0, leader_end=12, now_ms=1002)
    change = leader.heard_of(1, 12)
    assert change is not None
    assert change.isr == (0, 2)
    assert leader.heard_of(1, 12) is None, "one is under way"

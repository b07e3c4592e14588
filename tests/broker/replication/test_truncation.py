"""Where two logs part."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.log.config import LogConfig
from broker.replication.truncation import (
    Divergence,
    UnknownEpoch,
    find_divergence,
    truncation_offset,
)
from tests.broker.replication.list_log import Entry, ListLog


def log(*epochs: int) -> ListLog:
    """Return a log with one record of each epoch given, in that order."""
    made = ListLog(LogConfig())
    made.append_as_follower([Entry(epoch, b"%d" % at) for at, epoch in enumerate(epochs)], now_ms=0)
    return made


def test_who_has_the_same_history_goes_on() -> None:
    leader = log(0, 0, 2, 2)
    assert find_divergence(leader, 4, 2) is None
    assert find_divergence(leader, 2, 0) is None
    assert find_divergence(leader, 0, -1) is None, "an empty log has no epoch to name"


def test_who_went_on_in_an_older_epoch_is_sent_back_to_its_end() -> None:
    leader = log(0, 0, 2, 2)
    assert find_divergence(leader, 4, 0) == Divergence(epoch=0, end_offset=2)


def test_an_epoch_that_the_leader_never_saw_is_answered_with_the_one_before() -> None:
    leader = log(0, 0, 2, 2)
    assert find_divergence(leader, 3, 1) == Divergence(epoch=0, end_offset=2)


def test_a_later_epoch_than_the_leaders_cannot_be_placed() -> None:
    with pytest.raises(UnknownEpoch):
        find_divergence(log(0, 0), 2, 7)


def test_a_follower_cuts_to_where_both_ended_the_epoch() -> None:
    follower = log(0, 0, 0, 1)
    assert truncation_offset(follower, Divergence(epoch=0, end_offset=2)) == 2
    assert truncation_offset(follower, Divergence(epoch=0, end_offset=9)) == 3


def test_a_follower_without_the_leaders_epoch_cuts_to_the_epoch_below_and_asks_again() -> None:
    follower = log(0, 0, 3, 3)
    assert truncation_offset(follower, Divergence(epoch=2, end_offset=3)) == 2


def test_an_epoch_without_records_is_forgotten_by_cutting_nothing() -> None:
    former_leader = log(0, 0)
    former_leader.assign_leader_epoch(4)
    leader = log(0, 0, 5)
    divergence = find_divergence(leader, 2, former_leader.latest_leader_epoch)
    assert divergence == Divergence(epoch=0, end_offset=2)
    former_leader.truncate_to(truncation_offset(former_leader, divergence), now_ms=0)
    assert former_leader.latest_leader_epoch == 0
    assert find_divergence(leader, 2, 0) is None


@given(
    st.lists(st.integers(0, 2), max_size=5),
    st.lists(st.sampled_from([2, 3, 5]), max_size=5),
    st.lists(st.sampled_from([4, 6]), max_size=5),
)
def test_both_logs_agree_in_the_end_and_no_common_record_is_cut(
    shared: list[int], ours: list[int], theirs: list[int]
) -> None:
    """The follower led itself in epochs 2, 3 and 5, of which the leader has at most a beginning."""
    common = sorted(shared)
    follower, leader = log(*common, *sorted(ours)), log(*common, *sorted(theirs))
    leader.assign_leader_epoch(7)
    for _ in range(6):
        offset = follower.log_end_offset
        divergence = find_divergence(leader, offset, follower.latest_leader_epoch)
        if divergence is None:
            break
        follower.truncate_to(truncation_offset(follower, divergence), now_ms=0)
    assert follower.entries == leader.entries[: follower.log_end_offset]
    assert follower.log_end_offset == len(common)

"""SyncGroup, Heartbeat, LeaveGroup and sessions: the life of a generation."""

from dataclasses import replace

import pytest

from broker.groups.membership import Leaver
from broker.groups.states import GroupState
from tests.broker.groups.driver import GROUP, REBALANCE_MS, SESSION_MS, SETTINGS, Driver
from wire.errors import ErrorCode

DELAY_MS = SETTINGS.initial_rebalance_delay_ms


def _state(driver: Driver) -> GroupState:
    return driver.shard.groups[GROUP].state


def test_everybody_gets_their_part_when_the_leader_has_assigned() -> None:
    driver = Driver()
    tickets = [driver.join(), driver.join()]
    driver.advance(2 * DELAY_MS)
    leader, follower = (driver.joined(ticket) for ticket in tickets)
    waiting = driver.sync(follower)
    assert driver.waits(waiting)
    given = driver.sync(leader, {leader.member_id: b"one", follower.member_id: b"two"})
    assert driver.answers[given].assignment == b"one"
    assert driver.answers[waiting].assignment == b"two"
    assert driver.answers[waiting].protocol_name == "range"
    assert _state(driver) is GroupState.STABLE


def test_a_follower_that_syncs_late_gets_its_part_at_once() -> None:
    driver = Driver()
    leader, follower = driver.stable_group(2)
    assert driver.answers[driver.sync(follower)].assignment == follower.member_id.encode()
    assert driver.answers[driver.sync(leader)].assignment == leader.member_id.encode()


def test_whom_the_leader_forgets_gets_an_empty_assignment() -> None:
    driver = Driver()
    tickets = [driver.join(), driver.join()]
    driver.advance(2 * DELAY_MS)
    leader, follower = (driver.joined(ticket) for ticket in tickets)
    driver.sync(leader, {leader.member_id: b"all", "stranger": b"?"})
    assert driver.answers[driver.sync(follower)].assignment == b""


def test_sync_needs_the_running_generation_its_assignor_and_a_member() -> None:
    driver = Driver()
    (member,) = driver.stable_group()
    late = driver.sync(replace(member, generation_id=0))
    assert driver.error(late) is ErrorCode.ILLEGAL_GENERATION
    stranger = driver.sync(replace(member, member_id="stranger"))
    assert driver.error(stranger) is ErrorCode.UNKNOWN_MEMBER_ID
    other = driver.sync(member, protocol_name="sticky")
    assert driver.error(other) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    nowhere = driver.sync(member, group_id="elsewhere")
    assert driver.error(nowhere) is ErrorCode.UNKNOWN_MEMBER_ID


def test_sync_during_a_rebalance_sends_the_member_to_join() -> None:
    driver = Driver()
    (member,) = driver.stable_group()
    driver.join()
    assert driver.error(driver.sync(member)) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_second_sync_of_the_same_member_ends_the_first() -> None:
    driver = Driver()
    tickets = [driver.join(), driver.join()]
    driver.advance(2 * DELAY_MS)
    _, follower = (driver.joined(ticket) for ticket in tickets)
    first = driver.sync(follower)
    second = driver.sync(follower)
    assert driver.error(first) is ErrorCode.REBALANCE_IN_PROGRESS
    assert driver.waits(second)


def test_who_does_not_sync_in_time_is_out() -> None:
    driver = Driver()
    tickets = [driver.join(rebalance_timeout_ms=8_000) for _ in range(2)]
    driver.advance(2 * DELAY_MS)
    leader, follower = (driver.joined(ticket) for ticket in tickets)
    driver.sync(leader, {leader.member_id: b"one", follower.member_id: b"two"})
    driver.advance(7_999)
    driver.heartbeat(leader.member_id, 1)
    driver.heartbeat(follower.member_id, 1)
    driver.advance(1)
    assert driver.heartbeat(follower.member_id, 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert driver.heartbeat(leader.member_id, 1) is ErrorCode.REBALANCE_IN_PROGRESS


def test_heartbeats_keep_a_session_and_silence_ends_it() -> None:
    driver = Driver()
    (member,) = driver.stable_group()
    for _ in range(3):
        driver.advance(SESSION_MS - 1)
        assert driver.heartbeat(member.member_id, 1) is ErrorCode.NONE
    driver.advance(SESSION_MS)
    assert driver.heartbeat(member.member_id, 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert _state(driver) is GroupState.EMPTY


def test_a_heartbeat_of_another_generation_is_refused() -> None:
    driver = Driver()
    (member,) = driver.stable_group()
    assert driver.heartbeat(member.member_id, 2) is ErrorCode.ILLEGAL_GENERATION
    assert driver.heartbeat(member.member_id, 0) is ErrorCode.ILLEGAL_GENERATION


def test_a_heartbeat_before_the_assignment_counts() -> None:
    driver = Driver()
    ticket = driver.join()
    driver.advance(2 * DELAY_MS)
    assert driver.heartbeat(driver.joined(ticket).member_id, 1) is ErrorCode.NONE


def test_a_commit_keeps_a_session() -> None:
    driver = Driver()
    (member,) = driver.stable_group()
    driver.advance(SESSION_MS - 1)
    driver.commit({("orders", 0): 1}, member_id=member.member_id, generation=1)
    driver.advance(SESSION_MS - 1)
    assert driver.heartbeat(member.member_id, 1) is ErrorCode.NONE


def test_who_waits_for_the_others_is_not_taken_for_dead() -> None:
    driver = Driver()
    first, second = driver.stable_group(2, session_timeout_ms=6_000)
    back = driver.join(first.member_id)
    for _ in range(5):  # first waits much longer than its session
        driver.advance(5_000)
        driver.heartbeat(second.member_id, 1)
    assert driver.waits(back)
    driver.join(second.member_id)
    assert driver.joined(back).generation_id == 2


def test_who_waits_for_the_leader_is_not_taken_for_dead() -> None:
    driver = Driver()
    tickets = [driver.join(), driver.join()]
    driver.advance(2 * DELAY_MS)
    leader, follower = (driver.joined(ticket) for ticket in tickets)
    waiting = driver.sync(follower)
    for _ in range(5):
        driver.advance(SESSION_MS - 1)
        driver.heartbeat(leader.member_id, 1)
    driver.sync(leader, {follower.member_id: b"two"})
    assert driver.answers[waiting].assignment == b"two"


def test_a_heartbeat_restarts_a_session_that_had_been_excused() -> None:
    driver = Driver()
    first, second = driver.stable_group(2)
    driver.join(first.member_id)
    for _ in range(3):  # first's session would have ended, had it not been waiting
        driver.advance(SESSION_MS - 1)
        driver.heartbeat(second.member_id, 1)
    driver.heartbeat(first.member_id, 1)
    member = driver.shard.groups[GROUP].members[first.member_id]
    assert member.deadline_ms == driver.now_ms + SESSION_MS
    assert driver.shard.next_deadline_ms is not None
    assert driver.shard.next_deadline_ms <= member.deadline_ms


def test_an_id_that_was_only_given_out_does_not_keep_the_last_member_from_leaving() -> None:
    driver = Driver()
    (member,) = driver.stable_group()
    given = driver.answers[driver.join(must_return=True)].member_id
    driver.leave(member.member_id)
    assert _state(driver) is GroupState.EMPTY
    ticket = driver.join(given, must_return=True)
    driver.advance(2 * DELAY_MS)
    assert driver.joined(ticket).generation_id == 3


def test_a_session_that_ends_starts_a_rebalance_for_the_others() -> None:
    driver = Driver()
    leader, _ = driver.stable_group(2)
    driver.advance(SESSION_MS - 1)
    driver.heartbeat(leader.member_id, 1)
    driver.advance(1)
    assert driver.heartbeat(leader.member_id, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    assert driver.joined(driver.join(leader.member_id)).generation_id == 2


def test_leaving_starts_a_rebalance_for_the_others() -> None:
    driver = Driver()
    leader, follower = driver.stable_group(2)
    assert driver.leave(leader.member_id) == [ErrorCode.NONE]
    assert driver.heartbeat(follower.member_id, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    back = driver.joined(driver.join(follower.member_id))
    assert (back.leader, back.generation_id) == (follower.member_id, 2)


def test_the_last_one_to_leave_leaves_an_empty_group() -> None:
    driver = Driver()
    (member,) = driver.stable_group()
    driver.leave(member.member_id)
    group = driver.shard.groups[GROUP]
    assert (group.state, group.generation, group.leader_id) == (GroupState.EMPTY, 2, None)
    assert driver.restarted().shard.groups[GROUP].generation == 2


def test_several_members_leave_at_once_and_each_has_an_outcome() -> None:
    driver = Driver()
    first, second = driver.stable_group(2)
    pending = driver.answers[driver.join(must_return=True)].member_id
    outcomes = driver.leave("stranger", first.member_id, pending, second.member_id)
    assert outcomes == [ErrorCode.UNKNOWN_MEMBER_ID, *[ErrorCode.NONE] * 3]
    assert _state(driver) is GroupState.EMPTY


def test_leaving_a_group_that_does_not_exist_is_an_unknown_member() -> None:
    assert Driver().leave("stranger") == [ErrorCode.UNKNOWN_MEMBER_ID]


def test_whoever_is_removed_while_waiting_is_told() -> None:
    driver = Driver()
    first, _ = driver.stable_group(2)
    joining = driver.join(first.member_id)
    driver.leave(first.member_id)
    assert driver.error(joining) is ErrorCode.UNKNOWN_MEMBER_ID

    driver = Driver()
    tickets = [driver.join(), driver.join()]
    driver.advance(2 * DELAY_MS)
    _, follower = (driver.joined(ticket) for ticket in tickets)
    syncing = driver.sync(follower)
    driver.leave(follower.member_id)
    assert driver.error(syncing) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_comes_back_to_its_place_without_a_rebalance() -> None:
    driver = Driver()
    (leader,) = driver.stable_group(instance_id="a")
    back = driver.joined(driver.join(instance_id="a"))
    assert back.member_id != leader.member_id
    assert (back.generation_id, back.leader, back.skip_assignment) == (1, back.member_id, True)
    assert [member.member_id for member in back.members] == [back.member_id]
    assert driver.answers[driver.sync(back)].assignment == leader.member_id.encode()
    assert _state(driver) is GroupState.STABLE


def test_an_older_static_leader_is_told_that_another_leads() -> None:
    driver = Driver()
    (leader,) = driver.stable_group(instance_id="a")
    back = driver.joined(driver.join(instance_id="a", may_skip_assignment=False))
    assert (back.leader, back.members) == (leader.member_id, ())
    assert driver.shard.groups[GROUP].leader_id == back.member_id


def test_the_former_self_of_a_static_member_is_fenced() -> None:
    driver = Driver()
    (former,) = driver.stable_group(instance_id="a")
    back = driver.joined(driver.join(instance_id="a"))
    name = former.member_id
    assert driver.heartbeat(name, 1, instance_id="a") is ErrorCode.FENCED_INSTANCE_ID
    assert driver.error(driver.join(name, instance_id="a")) is ErrorCode.FENCED_INSTANCE_ID
    assert driver.error(driver.sync(former, instance_id="a")) is ErrorCode.FENCED_INSTANCE_ID
    leaver = Leaver(member_id=name, instance_id="a")
    assert driver.leave(leaver) == [ErrorCode.FENCED_INSTANCE_ID]
    outcome = driver.commit({("t", 0): 1}, member_id=name, generation=1, instance_id="a")
    assert outcome is ErrorCode.FENCED_INSTANCE_ID
    assert driver.heartbeat(back.member_id, 1, instance_id="a") is ErrorCode.NONE


def test_an_instance_id_that_no_member_has_is_unknown() -> None:
    driver = Driver()
    (member,) = driver.stable_group()
    error = driver.heartbeat(member.member_id, 1, instance_id="b")
    assert error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_that_returns_while_the_leader_assigns_starts_over() -> None:
    driver = Driver()
    leader_ticket, static_ticket = driver.join(), driver.join(instance_id="a")
    driver.advance(2 * DELAY_MS)
    leader = driver.joined(leader_ticket)
    waiting = driver.sync(driver.joined(static_ticket))
    back = driver.join(instance_id="a")
    assert driver.error(waiting) is ErrorCode.FENCED_INSTANCE_ID
    assert driver.heartbeat(leader.member_id, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    driver.join(leader.member_id)
    assert driver.joined(back).generation_id == 2


def test_a_static_member_that_returns_during_a_rebalance_takes_part_in_it() -> None:
    driver = Driver()
    (leader,) = driver.stable_group()
    static = driver.join(instance_id="a")
    again = driver.join(instance_id="a")
    assert driver.error(static) is ErrorCode.FENCED_INSTANCE_ID
    assert driver.waits(again)
    driver.join(leader.member_id)
    assert driver.joined(again).generation_id == 2


def test_a_static_member_keeps_its_place_when_it_misses_a_rebalance() -> None:
    driver = Driver()
    tickets = [
        driver.join(session_timeout_ms=1_000_000, rebalance_timeout_ms=30_000),
        driver.join(instance_id="a", session_timeout_ms=1_000_000, rebalance_timeout_ms=30_000),
    ]
    driver.advance(2 * DELAY_MS)
    leader, static = (driver.joined(ticket) for ticket in tickets)
    driver.assign([leader, static])
    back = driver.join(leader.member_id, rebalance_timeout_ms=30_000)
    driver.advance(30_000)
    names = [member.member_id for member in driver.joined(back).members]
    assert names == [leader.member_id, static.member_id]


def test_silent_static_members_alone_do_not_make_a_generation() -> None:
    driver = Driver()
    tickets = [driver.join(instance_id=name, session_timeout_ms=1_000_000) for name in "ab"]
    driver.advance(2 * DELAY_MS)
    members = [driver.joined(ticket) for ticket in tickets]
    driver.assign(members)
    newcomer = driver.join()
    driver.leave(driver.shard.groups[GROUP].leader_id or "")
    driver.leave(next(name for name in driver.shard.groups[GROUP].members if "client" in name))
    assert driver.error(newcomer) is ErrorCode.UNKNOWN_MEMBER_ID
    driver.advance(REBALANCE_MS)
    assert _state(driver) is GroupState.PREPARING_REBALANCE
    driver.advance(1_000_000)
    assert _state(driver) is GroupState.EMPTY


def test_an_administrator_removes_a_static_member_by_its_instance_id() -> None:
    driver = Driver()
    driver.stable_group(instance_id="a")
    unknown = Leaver(member_id="", instance_id="b")
    known = Leaver(member_id="", instance_id="a")
    assert driver.leave(unknown, known) == [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.NONE]
    assert _state(driver) is GroupState.EMPTY


@pytest.mark.parametrize("count", [1, 3])
def test_a_restarted_coordinator_keeps_the_group_stable(count: int) -> None:
    before = Driver()
    members = before.stable_group(count)
    driver = before.restarted()
    assert [driver.heartbeat(member.member_id, 1) for member in members] == [ErrorCode.NONE] * count
    assignments = [driver.answers[driver.sync(member)].assignment for member in members]
    assert assignments == [member.member_id.encode() for member in members]


def test_sessions_begin_anew_when_a_coordinator_has_loaded() -> None:
    before = Driver()
    (member,) = before.stable_group()
    before.advance(SESSION_MS - 1)
    driver = before.restarted()
    driver.advance(SESSION_MS - 1)
    assert driver.heartbeat(member.member_id, 1) is ErrorCode.NONE
    driver.advance(SESSION_MS)
    assert driver.heartbeat(member.member_id, 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_returns_to_a_restarted_coordinator() -> None:
    before = Driver()
    (member,) = before.stable_group(instance_id="a")
    driver = before.restarted()
    back = driver.joined(driver.join(instance_id="a"))
    assert driver.answers[driver.sync(back)].assignment == member.member_id.encode()
    assert driver.restarted().shard.groups[GROUP].static_members == {"a": back.member_id}


def test_an_empty_generation_that_could_not_be_written_is_tried_again() -> None:
    driver = Driver()
    (member,) = driver.stable_group()
    driver.is_broken = True
    driver.leave(member.member_id)
    assert _state(driver) is GroupState.PREPARING_REBALANCE
    driver.is_broken = False
    driver.advance(1_000)
    assert _state(driver) is GroupState.EMPTY


def test_an_assignment_that_could_not_be_written_can_be_sent_again() -> None:
    driver = Driver()
    ticket = driver.join()
    driver.advance(2 * DELAY_MS)
    member = driver.joined(ticket)
    driver.is_broken = True
    driver.sync(member, {member.member_id: b"lost"})
    driver.is_broken = False
    assert driver.joined(driver.join(member.member_id)) == member
    given = driver.sync(member, {member.member_id: b"kept"})
    assert driver.answers[given].assignment == b"kept"
    assert _state(driver) is GroupState.STABLE

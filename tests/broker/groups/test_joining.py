"""JoinGroup: ids, the delay of a first rebalance, protocols, limits and rejoining."""

from dataclasses import replace

from broker.groups.member import Protocols
from broker.groups.settings import NEW_MEMBER_JOIN_TIMEOUT_MS
from broker.groups.states import GroupState
from tests.broker.groups.driver import (
    GROUP,
    RANGE,
    REBALANCE_MS,
    SESSION_MS,
    SETTINGS,
    Driver,
    subscription,
)
from wire.errors import ErrorCode

DELAY_MS = SETTINGS.initial_rebalance_delay_ms


def test_a_newcomer_gets_its_id_first_and_joins_with_it() -> None:
    driver = Driver()
    asked = driver.join(must_return=True)
    assert driver.error(asked) is ErrorCode.MEMBER_ID_REQUIRED
    given = driver.answers[asked].member_id
    ticket = driver.join(given, must_return=True)
    assert driver.waits(ticket)
    driver.advance(DELAY_MS)
    assert driver.joined(ticket).member_id == given


def test_an_old_client_joins_without_the_round_trip() -> None:
    driver = Driver()
    ticket = driver.join()
    driver.advance(2 * DELAY_MS)
    answer = driver.joined(ticket)
    assert (answer.member_id, answer.leader, answer.generation_id) == ("client-1", "client-1", 1)


def test_an_id_that_nobody_uses_is_forgotten_after_the_session_timeout() -> None:
    driver = Driver()
    given = driver.answers[driver.join(must_return=True)].member_id
    driver.advance(SESSION_MS)
    assert driver.error(driver.join(given, must_return=True)) is ErrorCode.UNKNOWN_MEMBER_ID


def test_an_unknown_id_cannot_create_a_group() -> None:
    driver = Driver()
    assert driver.error(driver.join("stranger")) is ErrorCode.UNKNOWN_MEMBER_ID
    assert not driver.shard.groups


def test_the_first_rebalance_waits_longer_while_members_keep_coming() -> None:
    driver = Driver()
    first = driver.join()
    driver.advance(DELAY_MS - 1)
    second = driver.join()
    driver.advance(DELAY_MS)
    assert driver.waits(first, second)
    driver.advance(1)
    assert driver.joined(first).generation_id == driver.joined(second).generation_id == 1


def test_the_first_rebalance_never_waits_longer_than_the_rebalance_timeout() -> None:
    driver = Driver()
    tickets = [driver.join(rebalance_timeout_ms=7_000)]
    for _ in range(6):
        driver.advance(1_000)
        tickets.append(driver.join(rebalance_timeout_ms=7_000))
    driver.advance(1_000)
    assert all(driver.joined(ticket).generation_id == 1 for ticket in tickets)


def test_only_the_leader_learns_who_is_in_the_group() -> None:
    driver = Driver()
    leader, follower = driver.stable_group(2)
    assert [member.member_id for member in leader.members] == ["client-1", "client-2"]
    assert [member.metadata for member in leader.members] == [RANGE[0][1]] * 2
    assert follower.members == ()
    assert follower.leader == leader.member_id


def test_the_assignor_most_members_prefer_wins_among_those_that_all_support() -> None:
    driver = Driver()
    wishes = ["sticky range", "range sticky", "sticky range other"]
    tickets = [
        driver.join(protocols=tuple((name, b"") for name in wish.split())) for wish in wishes
    ]
    driver.advance(2 * DELAY_MS)
    assert {driver.joined(ticket).protocol_name for ticket in tickets} == {"sticky"}


def test_a_member_without_a_common_assignor_is_refused() -> None:
    driver = Driver()
    driver.stable_group()
    other: Protocols = (("sticky", b""),)
    assert driver.error(driver.join(protocols=other)) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    wrong_type = driver.join(protocol_type="connect")
    assert driver.error(wrong_type) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_member_without_any_assignor_cannot_begin_a_group() -> None:
    driver = Driver()
    assert driver.error(driver.join(protocols=())) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert driver.error(driver.join(protocol_type="")) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert not driver.shard.groups


def test_a_new_member_of_a_stable_group_starts_a_rebalance_that_waits_for_the_others() -> None:
    driver = Driver()
    (leader,) = driver.stable_group()
    newcomer = driver.join()
    assert driver.waits(newcomer)
    assert driver.heartbeat(leader.member_id, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    back = driver.join(leader.member_id)
    assert driver.joined(back).generation_id == driver.joined(newcomer).generation_id == 2
    assert driver.joined(back).leader == leader.member_id


def test_who_does_not_come_back_in_time_is_out() -> None:
    driver = Driver()
    first, second = driver.stable_group(2)
    back = driver.join(first.member_id)
    driver.advance(SESSION_MS - 1)  # the other one is still heard of, but does not join
    driver.heartbeat(second.member_id, 1)
    for _ in range(REBALANCE_MS // SESSION_MS):
        driver.advance(SESSION_MS - 1)
        driver.heartbeat(second.member_id, 1)
    driver.advance(SESSION_MS)
    assert [member.member_id for member in driver.joined(back).members] == [first.member_id]
    assert driver.heartbeat(second.member_id, 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_another_leads_when_the_leader_does_not_come_back() -> None:
    driver = Driver()
    leader, follower = driver.stable_group(2)
    back = driver.join(follower.member_id, protocols=(*RANGE, ("sticky", b"")))
    driver.advance(SESSION_MS)
    assert driver.joined(back).leader == follower.member_id != leader.member_id


def test_a_follower_that_missed_the_answer_gets_it_again() -> None:
    driver = Driver()
    _, follower = driver.stable_group(2)
    again = driver.joined(driver.join(follower.member_id))
    assert (again.generation_id, again.members) == (1, ())
    assert driver.shard.groups[GROUP].state is GroupState.STABLE


def test_a_member_that_missed_the_answer_before_the_assignment_gets_it_again() -> None:
    driver = Driver()
    ticket = driver.join()
    driver.advance(2 * DELAY_MS)
    again = driver.joined(driver.join(driver.joined(ticket).member_id))
    assert again == driver.joined(ticket)


def test_a_leader_that_joins_again_starts_a_rebalance() -> None:
    driver = Driver()
    (leader,) = driver.stable_group()
    assert driver.joined(driver.join(leader.member_id)).generation_id == 2


def test_a_changed_subscription_starts_a_rebalance() -> None:
    driver = Driver()
    leader, follower = driver.stable_group(2)
    changed = driver.join(follower.member_id, protocols=(("range", subscription("payments")),))
    assert driver.waits(changed)
    back = driver.joined(driver.join(leader.member_id))
    assert driver.joined(changed).generation_id == back.generation_id == 2
    assert driver.shard.groups[GROUP].topics == frozenset({"orders", "payments"})


def test_a_change_before_the_assignment_sends_those_who_sync_back_to_join() -> None:
    driver = Driver()
    tickets = [driver.join(), driver.join()]
    driver.advance(2 * DELAY_MS)
    leader, follower = (driver.joined(ticket) for ticket in tickets)
    waiting = driver.sync(follower)
    driver.join(leader.member_id, protocols=(("range", subscription("payments")),))
    assert driver.error(waiting) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_full_group_takes_nobody_else() -> None:
    driver = Driver(replace(SETTINGS, max_size=2))
    members = driver.stable_group(2)
    assert driver.error(driver.join()) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert driver.error(driver.join(must_return=True)) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert driver.heartbeat(members[0].member_id, 1) is ErrorCode.NONE


def test_a_group_that_has_become_too_large_loses_who_comes_last() -> None:
    before = Driver()
    before.stable_group(3)
    before.settings = replace(SETTINGS, max_size=2)
    driver = before.restarted()
    tickets = [driver.join(f"client-{number}") for number in (1, 2, 3)]
    assert driver.error(tickets[2]) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert [driver.joined(ticket).generation_id for ticket in tickets[:2]] == [2, 2]


def test_a_new_member_that_gives_up_during_a_long_rebalance_is_not_waited_for() -> None:
    driver = Driver()
    (leader,) = driver.stable_group(rebalance_timeout_ms=3_600_000, session_timeout_ms=1_000_000)
    newcomer = driver.join(rebalance_timeout_ms=3_600_000)
    driver.advance(NEW_MEMBER_JOIN_TIMEOUT_MS)
    assert driver.error(newcomer) is ErrorCode.UNKNOWN_MEMBER_ID
    assert driver.joined(driver.join(leader.member_id)).generation_id == 2


def test_a_second_join_of_the_same_member_ends_the_first() -> None:
    driver = Driver()
    leader, _ = driver.stable_group(2)
    first = driver.join(leader.member_id)
    second = driver.join(leader.member_id)
    assert driver.error(first) is ErrorCode.REBALANCE_IN_PROGRESS
    assert driver.waits(second)


def test_resigning_sends_everybody_who_waits_to_the_next_coordinator() -> None:
    driver = Driver()
    (leader,) = driver.stable_group()
    joining = driver.join()
    driver.resign()
    assert driver.error(joining) is ErrorCode.NOT_COORDINATOR
    assert leader.member_id not in driver.shard.groups


def test_silent_static_members_without_patience_do_not_keep_the_clock_busy() -> None:
    driver = Driver()
    tickets = driver.join(), driver.join(instance_id="a", rebalance_timeout_ms=0)
    driver.advance(2 * DELAY_MS)
    leader, static = map(driver.joined, tickets)
    driver.assign([leader, static])
    driver.leave(leader.member_id)
    for _ in range(3):
        driver.shard.on_time(driver.shard.begin(driver.now_ms, driver.now_ms))
    assert driver.shard.groups[GROUP].state is GroupState.PREPARING_REBALANCE
    assert (driver.shard.next_deadline_ms or 0) > driver.now_ms


def test_generations_begin_anew_where_their_number_ends() -> None:
    driver = Driver()
    (member,) = driver.stable_group()
    driver.shard.groups[GROUP].generation = 2**31 - 1
    driver.leave(member.member_id)
    assert driver.restarted().shard.groups[GROUP].generation == 0

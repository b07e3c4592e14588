"""Committed offsets: who may write them, what is stored, when they go."""

from dataclasses import replace

from broker.groups.states import GroupState
from tests.broker.groups.driver import (
    GROUP,
    SESSION_MS,
    SETTINGS,
    WALL_MS,
    Driver,
)
from wire.errors import ErrorCode

RETENTION_MS = SETTINGS.offsets_retention_ms
PARTITION = ("orders", 0)


def test_a_member_commits_in_its_generation() -> None:
    driver = Driver()
    (member,) = driver.stable_group()
    outcome = driver.commit({PARTITION: 5}, member_id=member.member_id, generation=1)
    assert outcome == {PARTITION: ErrorCode.NONE}
    assert driver.committed() == {PARTITION: 5}


def test_a_commit_of_another_generation_or_a_stranger_is_refused() -> None:
    driver = Driver()
    (member,) = driver.stable_group()
    old = driver.commit({PARTITION: 5}, member_id=member.member_id, generation=0)
    assert old is ErrorCode.ILLEGAL_GENERATION
    stranger = driver.commit({PARTITION: 5}, member_id="stranger", generation=1)
    assert stranger is ErrorCode.UNKNOWN_MEMBER_ID
    assert driver.committed() == {}


def test_a_commit_between_join_and_assignment_is_put_off() -> None:
    driver = Driver()
    ticket = driver.join()
    driver.advance(6_000)
    member = driver.joined(ticket)
    outcome = driver.commit({PARTITION: 5}, member_id=member.member_id, generation=1)
    assert outcome is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_member_may_still_commit_while_the_others_are_waited_for() -> None:
    driver = Driver()
    (member,) = driver.stable_group()
    driver.join()
    outcome = driver.commit({PARTITION: 5}, member_id=member.member_id, generation=1)
    assert outcome == {PARTITION: ErrorCode.NONE}


def test_a_commit_from_outside_is_taken_only_while_nobody_is_in_the_group() -> None:
    driver = Driver()
    assert driver.commit({PARTITION: 1}) == {PARTITION: ErrorCode.NONE}
    (member,) = driver.stable_group()
    assert driver.commit({PARTITION: 2}) is ErrorCode.UNKNOWN_MEMBER_ID
    driver.leave(member.member_id)
    assert driver.commit({PARTITION: 3}) == {PARTITION: ErrorCode.NONE}
    assert driver.committed() == {PARTITION: 3}


def test_a_commit_of_a_generation_to_a_group_that_does_not_exist_is_refused() -> None:
    driver = Driver()
    refused = driver.commit({PARTITION: 1}, member_id="m", generation=3)
    assert refused is ErrorCode.ILLEGAL_GENERATION
    assert not driver.shard.groups


def test_a_group_that_only_commits_is_empty_and_survives_a_restart() -> None:
    before = Driver()
    before.commit({PARTITION: 1, ("orders", 1): 2})
    driver = before.restarted()
    assert driver.shard.groups[GROUP].state is GroupState.EMPTY
    assert driver.committed_values() == before.committed_values()


def test_metadata_that_is_too_large_is_refused_alone() -> None:
    driver = Driver()
    longest = "x" * SETTINGS.offset_metadata_max_bytes
    outcome = driver.commit({PARTITION: 1}, metadata=longest + "x")
    assert outcome == {PARTITION: ErrorCode.OFFSET_METADATA_TOO_LARGE}
    assert driver.commit({PARTITION: 1}, metadata=longest) == {PARTITION: ErrorCode.NONE}
    assert driver.committed_values()[PARTITION].metadata == longest


def test_metadata_that_no_record_can_hold_is_refused_whatever_the_settings_say() -> None:
    driver = Driver(replace(SETTINGS, offset_metadata_max_bytes=100_000))
    assert driver.commit({PARTITION: 1}, metadata="x" * 32_767) == {PARTITION: ErrorCode.NONE}
    refused = driver.commit({PARTITION: 1}, metadata="é" * 16_384)
    assert refused == {PARTITION: ErrorCode.OFFSET_METADATA_TOO_LARGE}


def test_a_commit_carries_the_time_of_day() -> None:
    driver = Driver(now_ms=77)
    driver.commit({PARTITION: 1}, metadata=None)
    value = driver.committed_values()[PARTITION]
    assert (value.commit_timestamp_ms, value.metadata) == (WALL_MS + 77, "")


def test_the_last_commit_wins_over_a_restart() -> None:
    before = Driver()
    for offset in (1, 9, 4):
        before.commit({PARTITION: offset})
    assert before.restarted().committed() == {PARTITION: 4}


def test_a_large_commit_is_written_in_several_batches() -> None:
    before = Driver()
    offsets = {("orders", index): index for index in range(200)}
    before.commit(offsets, metadata="m" * 4_000)
    assert len(before.log) == 2
    assert before.restarted().committed() == offsets


def test_offsets_of_an_empty_group_go_when_their_retention_is_over_and_the_group_with_them() -> (
    None
):
    driver = Driver()
    (member,) = driver.stable_group()
    driver.commit({PARTITION: 5}, member_id=member.member_id, generation=1)
    driver.leave(member.member_id)
    driver.advance(RETENTION_MS - 1)
    driver.expire_offsets()
    assert driver.committed() == {PARTITION: 5}
    driver.advance(1)
    driver.expire_offsets()
    assert driver.committed() == {}
    assert GROUP not in driver.shard.groups
    assert not driver.restarted().shard.groups


def test_a_commit_to_a_group_that_was_left_long_ago_begins_a_new_retention() -> None:
    driver = Driver()
    (member,) = driver.stable_group()
    driver.leave(member.member_id)
    driver.advance(RETENTION_MS)
    driver.commit({PARTITION: 5})
    driver.expire_offsets()
    assert driver.committed() == {PARTITION: 5}


def test_offsets_of_partitions_that_are_read_do_not_go() -> None:
    driver = Driver()
    (member,) = driver.stable_group(session_timeout_ms=2 * RETENTION_MS)
    driver.commit({PARTITION: 5, ("old", 0): 6}, member_id=member.member_id, generation=1)
    driver.advance(RETENTION_MS)
    driver.expire_offsets()
    assert driver.committed() == {PARTITION: 5}


def test_nothing_goes_while_a_group_rebalances() -> None:
    driver = Driver()
    (member,) = driver.stable_group(session_timeout_ms=2 * RETENTION_MS)
    driver.commit({("old", 0): 6}, member_id=member.member_id, generation=1)
    driver.advance(RETENTION_MS)
    driver.join()
    driver.expire_offsets()
    assert driver.committed() == {("old", 0): 6}


def test_unreadable_subscriptions_keep_everything() -> None:
    driver = Driver()
    protocols = (("range", b"not a subscription"),)
    (member,) = driver.stable_group(session_timeout_ms=2 * RETENTION_MS, protocols=protocols)
    driver.commit({PARTITION: 5}, member_id=member.member_id, generation=1)
    driver.advance(RETENTION_MS)
    driver.expire_offsets()
    assert driver.committed() == {PARTITION: 5}
    assert driver.delete_offsets(PARTITION) == {PARTITION: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC}


def test_an_old_clients_own_retention_is_kept() -> None:
    driver = Driver()
    driver.commit({PARTITION: 5}, retention_ms=1_000)
    driver.advance(999)
    driver.expire_offsets()
    assert driver.committed() == {PARTITION: 5}
    driver = driver.restarted()
    driver.advance(1)
    driver.expire_offsets()
    assert driver.committed() == {}


def test_offsets_of_topics_that_are_not_read_can_be_deleted() -> None:
    driver = Driver()
    (member,) = driver.stable_group()
    driver.commit({PARTITION: 5, ("old", 0): 6}, member_id=member.member_id, generation=1)
    outcome = driver.delete_offsets(PARTITION, ("old", 0), ("never", 3))
    assert outcome == {
        PARTITION: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
        ("old", 0): ErrorCode.NONE,
        ("never", 3): ErrorCode.NONE,
    }
    assert driver.committed() == driver.restarted().committed() == {PARTITION: 5}


def test_offsets_of_other_kinds_of_members_are_deleted_only_without_them() -> None:
    driver = Driver()
    (worker,) = driver.stable_group(protocol_type="connect")
    assert driver.delete_offsets(PARTITION) is ErrorCode.NON_EMPTY_GROUP
    driver.leave(worker.member_id)
    assert driver.delete_offsets(PARTITION) == {PARTITION: ErrorCode.NONE}


def test_offsets_of_a_group_that_does_not_exist_cannot_be_deleted() -> None:
    assert Driver().delete_offsets(PARTITION) is ErrorCode.GROUP_ID_NOT_FOUND


def test_only_a_group_without_members_can_be_deleted_and_then_nothing_is_left() -> None:
    driver = Driver()
    assert driver.delete_group() is ErrorCode.GROUP_ID_NOT_FOUND
    (member,) = driver.stable_group()
    driver.commit({PARTITION: 5}, member_id=member.member_id, generation=1)
    assert driver.delete_group() is ErrorCode.NON_EMPTY_GROUP
    driver.leave(member.member_id)
    assert driver.delete_group() is ErrorCode.NONE
    for after in (driver, driver.restarted()):
        assert after.committed() == {}
        assert not after.shard.groups


def test_a_deleted_group_begins_anew() -> None:
    driver = Driver()
    (member,) = driver.stable_group()
    driver.leave(member.member_id)
    driver.delete_group()
    (member,) = driver.stable_group()
    assert member.generation_id == 1


def test_an_id_that_was_given_out_keeps_an_empty_group() -> None:
    driver = Driver()
    given = driver.answers[driver.join(must_return=True)].member_id
    driver.expire_offsets()
    ticket = driver.join(given, must_return=True)
    driver.advance(SETTINGS.initial_rebalance_delay_ms)
    assert driver.joined(ticket).generation_id == 1


def test_an_empty_group_without_offsets_goes_at_the_next_look() -> None:
    driver = Driver(replace(SETTINGS, initial_rebalance_delay_ms=0))
    driver.stable_group()
    driver.advance(SESSION_MS)
    driver.expire_offsets()
    assert not driver.shard.groups


def test_a_retention_beyond_the_end_of_time_lasts_until_then() -> None:
    driver = Driver()
    assert driver.commit({PARTITION: 5}, retention_ms=2**63 - 1) == {PARTITION: ErrorCode.NONE}
    driver.advance(2 * RETENTION_MS)
    driver.expire_offsets()
    assert driver.committed() == {PARTITION: 5}

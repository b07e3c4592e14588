"""What a group of the new protocol tells its members, one rule of KIP-848 after the other."""

from uuid import UUID

import pytest

from broker.groups.consumer.group import ConsumerGroupState
from broker.groups.consumer.member import Member, MemberState
from broker.groups.consumer.partitions import Partitions, TopicIdPartition, gathered
from broker.groups.settings import ConsumerGroupSettings, GroupSettings
from tests.broker.groups.driver import GROUP, REBALANCE_MS, Driver
from wire.consumer_group_records import CurrentValue
from wire.errors import ErrorCode
from wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from wire.topic_partition import TopicPartition

SESSION_MS = 45_000
ORDERS = UUID(int=1)


@pytest.fixture
def driver() -> Driver:
    made = Driver()
    made.put_topic("orders", 4)
    return made


def orders(*indexes: int) -> Partitions:
    return frozenset(TopicIdPartition(ORDERS, index) for index in indexes)


def one_of(topic_id: int) -> Partitions:
    """Return the first partition of a topic."""
    return frozenset({TopicIdPartition(UUID(int=topic_id), 0)})


def assigned(answer: ConsumerGroupHeartbeatResponse) -> Partitions | None:
    assert answer.error_code == ErrorCode.NONE
    return None if answer.assignment is None else gathered(answer.assignment.topic_partitions)


def test_the_only_member_gets_everything_at_once(driver: Driver) -> None:
    answer = driver.beat("a")
    assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == ("a", 1, 5_000)
    assert assigned(answer) == orders(0, 1, 2, 3)
    assert driver.consumer_group.state is ConsumerGroupState.STABLE


def test_a_heartbeat_that_changes_nothing_is_told_nothing_and_writes_nothing(
    driver: Driver,
) -> None:
    driver.beat("a")
    written = len(driver.log)
    answer = driver.beat("a", 1)
    assert assigned(answer) is None
    assert answer.member_epoch == 1
    assert len(driver.log) == written


def test_a_newcomer_gets_what_the_others_have_given_up(driver: Driver) -> None:
    driver.beat("a")
    joined = driver.beat("b")
    assert joined.member_epoch == 2
    assert assigned(joined) == orders()

    told = driver.beat("a", 1)
    kept = assigned(told)
    assert kept is not None
    assert len(kept) == 2
    assert told.member_epoch == 1, "it stays in its epoch until it has given up"
    assert assigned(driver.beat("b", 2)) is None
    assert driver.consumer_group.members["a"].state is MemberState.UNREVOKED_PARTITIONS

    assert driver.beat("a", 1, owned=kept).member_epoch == 2
    assert assigned(driver.beat("b", 2)) == orders(0, 1, 2, 3) - kept
    assert driver.consumer_group.state is ConsumerGroupState.STABLE


def test_a_member_that_leaves_frees_its_partitions_for_the_next_heartbeat(driver: Driver) -> None:
    driver.beat("a")
    driver.beat("b")
    left = driver.beat("a", -1)
    assert (left.error_code, left.member_epoch) == (ErrorCode.NONE, -1)
    assert driver.consumer_group.state is ConsumerGroupState.ASSIGNING
    assert assigned(driver.beat("b", 2)) == orders(0, 1, 2, 3)


def test_a_silent_member_is_fenced_when_its_session_is_over(driver: Driver) -> None:
    driver.beat("a")
    driver.advance(SESSION_MS - 1)
    assert driver.beat("a", 1).error_code == ErrorCode.NONE
    driver.advance(SESSION_MS - 1)
    assert "a" in driver.consumer_group.members
    driver.advance(1)
    assert driver.consumer_group.state is ConsumerGroupState.EMPTY
    assert driver.beat("a", 1).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_does_not_give_up_is_fenced_at_its_rebalance_timeout(driver: Driver) -> None:
    driver.beat("a", rebalance_timeout_ms=20_000)
    driver.beat("b", rebalance_timeout_ms=REBALANCE_MS)
    everything = orders(0, 1, 2, 3)
    driver.beat("a", 1, owned=everything)
    driver.advance(19_999)
    assert driver.beat("a", 1, owned=everything).error_code == ErrorCode.NONE
    driver.beat("b", 2)
    driver.advance(1)
    assert driver.beat("a", 1, owned=everything).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert assigned(driver.beat("b", 2)) == everything


def test_a_lost_answer_is_told_again(driver: Driver) -> None:
    driver.beat("a")
    again = driver.beat("a")
    assert (again.member_epoch, assigned(again)) == (1, orders(0, 1, 2, 3))
    assert driver.consumer_group.epoch == 1


@pytest.mark.parametrize(
    ("epoch", "owned"),
    [(3, frozenset()), (1, None), (1, orders(0, 1, 2, 3)), (0, frozenset())],
    ids=["an epoch to come", "owns unknown", "owns too much", "joins again"],
)
def test_a_member_with_another_epoch_is_fenced(
    driver: Driver, epoch: int, owned: Partitions | None
) -> None:
    driver.beat("a")
    driver.beat("b")
    kept = assigned(driver.beat("a", 1))
    assert driver.beat("a", 1, owned=kept).member_epoch == 2
    answer = driver.beat("a", epoch, owned=owned)
    assert answer.error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert answer.error_message
    assert driver.beat("a", 2).error_code == ErrorCode.NONE, "it is still a member"


def test_the_former_epoch_counts_for_who_owns_no_more_than_its_assignment(driver: Driver) -> None:
    driver.beat("a")
    driver.beat("b")
    kept = assigned(driver.beat("a", 1))
    driver.beat("a", 1, owned=kept)
    assert driver.beat("a", 1, owned=kept).member_epoch == 2


def test_who_is_no_member_is_told(driver: Driver) -> None:
    assert driver.beat("a", 1).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    driver.beat("a")
    assert driver.beat("b", 1).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert driver.beat("b", -1).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert driver.beat("a", 1, instance_id="x").error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_full_group_takes_nobody_but_a_static_member_that_comes_back() -> None:
    driver = Driver(GroupSettings(consumer=ConsumerGroupSettings(max_size=1)))
    driver.put_topic("orders", 1)
    driver.beat("a", instance_id="i")
    assert driver.beat("b").error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    driver.beat("a", -2, instance_id="i")
    assert driver.beat("b", instance_id="i").error_code == ErrorCode.NONE


# Static members


def test_a_static_member_comes_back_to_its_partitions_and_nobody_notices(driver: Driver) -> None:
    had = assigned(driver.beat("a", instance_id="i"))
    assert had is not None
    driver.beat("b")
    driver.beat("a", -2, instance_id="i")
    epoch = driver.consumer_group.epoch
    back = driver.beat("a2", instance_id="i")
    assert driver.consumer_group.epoch == epoch
    kept = assigned(back)
    assert kept is not None
    assert kept < had
    assert len(kept) == 2
    assert driver.beat("a", 2, instance_id="i").error_code == ErrorCode.FENCED_INSTANCE_ID


def test_a_static_member_comes_back_under_the_same_id(driver: Driver) -> None:
    """It has unsubscribed, and subscribes again."""
    had = assigned(driver.beat("a", instance_id="i"))
    driver.beat("a", -2, instance_id="i")
    back = driver.beat("a", instance_id="i")
    assert (back.member_epoch, assigned(back)) == (1, had)


def test_an_instance_id_is_its_members_until_that_leaves_or_its_session_ends(
    driver: Driver,
) -> None:
    driver.beat("a", instance_id="i")
    assert driver.beat("b", instance_id="i").error_code == ErrorCode.UNRELEASED_INSTANCE_ID
    driver.advance(SESSION_MS)
    assert driver.beat("b", instance_id="i").error_code == ErrorCode.NONE


def test_a_static_member_that_does_not_come_back_is_fenced_with_its_session(
    driver: Driver,
) -> None:
    driver.beat("a", instance_id="i")
    driver.beat("a", -2, instance_id="i")
    assert "a" in driver.consumer_group.members
    driver.advance(SESSION_MS)
    assert driver.consumer_group.members == {}


# Topics and patterns


def test_a_topic_that_grows_is_assigned_anew(driver: Driver) -> None:
    driver.beat("a")
    driver.put_topic("orders", 6)
    answer = driver.beat("a", 1)
    assert (answer.member_epoch, assigned(answer)) == (2, orders(0, 1, 2, 3, 4, 5))


def test_a_topic_made_again_is_another_one(driver: Driver) -> None:
    driver.beat("a")
    driver.topics.remove_topic("orders")
    driver.put_topic("orders", 1, topic_id=2)
    assert assigned(driver.beat("a", 1)) == frozenset()
    after = driver.beat("a", 1, owned=frozenset())
    assert assigned(after) == one_of(2)


def test_a_topic_that_does_not_exist_yet_is_assigned_when_it_does(driver: Driver) -> None:
    assert assigned(driver.beat("a", topics=("later",))) == frozenset()
    driver.put_topic("later", 1, topic_id=9)
    assert assigned(driver.beat("a", 1)) == one_of(9)


def test_a_pattern_takes_in_topics_that_come_later(driver: Driver) -> None:
    driver.put_topic("payments", 1, topic_id=2)
    answer = driver.beat("a", pattern="or.*")
    assert assigned(answer) == orders(0, 1, 2, 3)
    driver.put_topic("originals", 1, topic_id=3)
    known = orders(0, 1, 2, 3) | one_of(3)
    assert assigned(driver.beat("a", 1)) == known
    assert driver.restarted().consumer_group.patterns == {"or.*": ("orders", "originals")}


def test_a_pattern_that_nobody_subscribes_with_any_more_is_forgotten(driver: Driver) -> None:
    driver.beat("a", pattern="or.*")
    answer = driver.beat("a", 1, pattern="", topics=())
    assert assigned(answer) == frozenset()
    assert driver.consumer_group.patterns == {}


def test_the_assignor_that_most_members_ask_for_is_used(driver: Driver) -> None:
    driver.put_topic("payments", 4, topic_id=2)
    both = ("orders", "payments")
    driver.beat("a", topics=both, assignor="range")
    driver.beat("b", topics=both, assignor="range")
    ranges = {
        name: {index for _, index in driver.consumer_group.target_of(name)} for name in ("a", "b")
    }
    assert ranges == {"a": {0, 1}, "b": {2, 3}}


# Coordinators and records


def test_a_member_of_an_unknown_state_has_to_join_anew_and_changes_nothing(
    driver: Driver,
) -> None:
    driver.beat("a")
    driver.beat("b")
    driver.consumer_group.members["a"] = _unknown(driver)
    written = len(driver.log)
    assert driver.beat("a", 1).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert len(driver.log) == written
    assert driver.beat("a", 1, owned=frozenset()).error_code == ErrorCode.NONE


def _unknown(driver: Driver) -> Member:
    return driver.consumer_group.members["a"].with_current(
        CurrentValue(
            member_epoch=1,
            previous_member_epoch=1,
            state=99,
            assigned_partitions=(),
            partitions_pending_revocation=(),
        )
    )


def test_the_next_coordinator_goes_on_with_sessions_and_revocations(driver: Driver) -> None:
    driver.beat("a", rebalance_timeout_ms=20_000)
    driver.beat("b")
    driver.beat("a", 1)
    successor = driver.restarted()
    assert successor.consumer_group.members["a"].state is MemberState.UNREVOKED_PARTITIONS
    successor.advance(20_000)
    assert successor.consumer_group.members.keys() == {"b"}
    successor.advance(SESSION_MS - 20_000)
    assert successor.consumer_group.members == {}


def test_nothing_changes_while_nothing_can_be_written(driver: Driver) -> None:
    driver.beat("a")
    driver.is_broken = True
    driver.beat("b")
    driver.advance(SESSION_MS)
    assert driver.consumer_group.members.keys() == {"a"}
    driver.is_broken = False
    driver.advance(1_000)
    assert driver.consumer_group.members == {}


# Offsets, and what tools do


def test_commits_need_the_epoch_of_the_member(driver: Driver) -> None:
    driver.beat("a")
    place = TopicPartition("orders", 0)
    assert driver.commit({place: 5}, member_id="a", generation=1) == {place: ErrorCode.NONE}
    assert driver.commit({place: 6}, member_id="a", generation=0) is ErrorCode.STALE_MEMBER_EPOCH
    assert driver.commit({place: 6}, member_id="b", generation=1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert driver.commit({place: 6}) is ErrorCode.UNKNOWN_MEMBER_ID
    assert driver.committed() == {("orders", 0): 5}
    driver.beat("a", -1)
    assert driver.commit({place: 7}) == {place: ErrorCode.NONE}


def test_offsets_of_what_members_read_stay(driver: Driver) -> None:
    driver.beat("a", pattern="or.*")
    for topic in ("orders", "payments"):
        driver.commit({(topic, 0): 5}, member_id="a", generation=1)
    outcome = driver.delete_offsets(("orders", 0), ("payments", 0))
    assert outcome == {
        TopicPartition("orders", 0): ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
        TopicPartition("payments", 0): ErrorCode.NONE,
    }
    driver.now_ms += 10 * driver.settings.offsets_retention_ms
    driver.expire_offsets()
    assert driver.committed() == {("orders", 0): 5}


def test_a_group_is_deleted_only_without_members_and_leaves_nothing(driver: Driver) -> None:
    driver.beat("a", pattern="or.*")
    driver.commit({("orders", 0): 5}, member_id="a", generation=1)
    assert driver.delete_group() is ErrorCode.NON_EMPTY_GROUP
    driver.beat("a", -1)
    assert driver.delete_group() is ErrorCode.NONE
    successor = driver.restarted()
    assert GROUP not in successor.shard.consumer.groups
    assert GROUP not in successor.shard.groups
    assert successor.committed() == {}


def test_an_empty_group_without_offsets_is_forgotten(driver: Driver) -> None:
    driver.beat("a")
    driver.expire_offsets()
    assert driver.consumer_group.members
    driver.beat("a", -1)
    driver.expire_offsets()
    assert driver.restarted().shard.consumer.groups == {}

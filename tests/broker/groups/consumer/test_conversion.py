"""Groups that change their protocol, empty or in use, and classic members in the meantime."""

import pytest

from broker.groups.consumer.group import ConsumerGroupState
from broker.groups.settings import ConsumerGroupSettings, GroupSettings, MigrationPolicy
from broker.groups.states import GroupState
from broker.groups.subscription import decode_assignment, encode_assignment
from tests.broker.groups.driver import GROUP, SESSION_MS, Driver, subscription
from wire.errors import ErrorCode
from wire.messages.join_group import JoinGroupResponse
from wire.topic_partition import TopicPartition

EVERYTHING = {"orders": [0, 1, 2, 3]}


@pytest.fixture
def driver() -> Driver:
    return made()


def made(policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL) -> Driver:
    driver = Driver(GroupSettings(consumer=ConsumerGroupSettings(migration_policy=policy)))
    driver.put_topic("orders", 4)
    return driver


def classic_member(driver: Driver) -> JoinGroupResponse:
    """Bring one classic member into a new group, and assign everything to it."""
    ticket = driver.join()
    driver.advance(6_000)
    joined = driver.joined(ticket)
    given = encode_assignment(0, EVERYTHING)
    driver.sync(joined, {joined.member_id: given})
    return joined


def synced(driver: Driver, joined: JoinGroupResponse) -> set[TopicPartition]:
    answer = driver.answers[driver.sync(joined)]
    assert answer.error_code == ErrorCode.NONE
    return set(decode_assignment(answer.assignment))


def rejoin(driver: Driver, member_id: str) -> JoinGroupResponse:
    return driver.joined(driver.join(member_id))


def test_an_empty_classic_group_becomes_one_of_the_new_protocol_with_its_offsets(
    driver: Driver,
) -> None:
    driver.commit({("orders", 0): 7})
    assert driver.beat("a").error_code == ErrorCode.NONE
    for one in (driver, driver.restarted()):
        assert one.consumer_group.members.keys() == {"a"}
        assert GROUP not in one.shard.groups
        assert one.committed() == {("orders", 0): 7}


def test_an_empty_group_of_the_new_protocol_becomes_a_classic_one(driver: Driver) -> None:
    driver.beat("a", pattern="or.*")
    driver.commit({("orders", 0): 7}, member_id="a", generation=1)
    driver.beat("a", -1)
    classic_member(driver)
    for one in (driver, driver.restarted()):
        assert one.shard.groups[GROUP].state is GroupState.STABLE
        assert GROUP not in one.shard.consumer.groups
        assert one.committed() == {("orders", 0): 7}


def test_a_group_in_use_is_upgraded_member_by_member(driver: Driver) -> None:
    old = classic_member(driver)
    assert driver.beat("new").member_epoch == 2
    group = driver.consumer_group
    assert group.state is ConsumerGroupState.RECONCILING
    assert driver.restarted().consumer_group.members == group.members
    assert len(group.members[old.member_id].owned) == 4, "nobody has given anything up"

    assert driver.heartbeat(old.member_id, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    again = rejoin(driver, old.member_id)
    kept = synced(driver, again)
    assert len(kept) == 2
    driver.beat("new", 2)
    assert driver.heartbeat(old.member_id, again.generation_id) in {
        ErrorCode.NONE,
        ErrorCode.REBALANCE_IN_PROGRESS,
    }
    place = TopicPartition("orders", 0)
    committed = driver.commit({place: 3}, member_id=old.member_id, generation=again.generation_id)
    assert committed == {place: ErrorCode.NONE}
    stale = driver.commit({place: 3}, member_id=old.member_id, generation=0)
    assert stale is ErrorCode.ILLEGAL_GENERATION

    driver.leave(old.member_id)
    driver.beat("new", driver.consumer_group.members["new"].epoch)
    assert len(driver.consumer_group.members["new"].owned) == 4
    assert driver.consumer_group.state is ConsumerGroupState.STABLE


def test_members_that_wait_for_a_rebalance_join_anew_after_an_upgrade(driver: Driver) -> None:
    old = classic_member(driver)
    waiting = driver.join()
    driver.beat("new")
    assert driver.error(waiting) is ErrorCode.REBALANCE_IN_PROGRESS
    assert old.member_id in driver.consumer_group.members
    assert not driver.unanswered


@pytest.mark.parametrize("policy", [MigrationPolicy.DISABLED, MigrationPolicy.DOWNGRADE])
def test_a_group_in_use_is_not_upgraded_where_that_is_not_allowed(policy: MigrationPolicy) -> None:
    driver = made(policy)
    old = classic_member(driver)
    refused = driver.beat("new")
    assert refused.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert "migration.policy" in (refused.error_message or "")
    assert driver.heartbeat(old.member_id, 1) is ErrorCode.NONE


@pytest.mark.parametrize(
    ("protocol_type", "metadata"), [("connect", subscription("orders")), ("consumer", b"\x00")]
)
def test_a_group_that_holds_no_consumers_is_not_upgraded(
    driver: Driver, protocol_type: str, metadata: bytes
) -> None:
    driver.stable_group(protocol_type=protocol_type, protocols=(("range", metadata),))
    assert driver.beat("new").error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert driver.shard.groups[GROUP].state is GroupState.STABLE


def test_a_group_is_classic_again_when_its_last_member_of_the_new_protocol_leaves(
    driver: Driver,
) -> None:
    old = classic_member(driver)
    driver.beat("new")
    again = rejoin(driver, old.member_id)
    synced(driver, again)
    driver.beat("new", -1)
    group = driver.shard.groups[GROUP]
    assert GROUP not in driver.shard.consumer.groups
    assert group.members.keys() == {old.member_id}
    assert driver.restarted().shard.groups[GROUP].members.keys() == {old.member_id}
    driver.advance(1)
    assert group.state is GroupState.PREPARING_REBALANCE
    joined = rejoin(driver, old.member_id)
    assert joined.leader == old.member_id


def test_a_group_stays_of_the_new_protocol_where_a_downgrade_is_not_allowed() -> None:
    driver = made(MigrationPolicy.UPGRADE)
    old = classic_member(driver)
    driver.beat("new")
    generation = rejoin(driver, old.member_id).generation_id
    driver.beat("new", -1)
    assert driver.heartbeat(old.member_id, generation) is ErrorCode.REBALANCE_IN_PROGRESS
    assert len(synced(driver, rejoin(driver, old.member_id))) == 4
    assert driver.consumer_group.state is ConsumerGroupState.STABLE


def test_a_classic_member_joins_a_group_of_the_new_protocol(driver: Driver) -> None:
    driver.beat("new")
    first = driver.join(must_return=True)
    assert driver.error(first) is ErrorCode.MEMBER_ID_REQUIRED
    joined = rejoin(driver, driver.answers[first].member_id)
    assert (joined.leader, joined.members) == ("", ())
    assert synced(driver, joined) == set()
    kept = frozenset(driver.consumer_group.target_of("new"))
    driver.beat("new", 1)
    driver.beat("new", 1, owned=kept)
    generation = joined.generation_id
    assert driver.heartbeat(joined.member_id, generation) is ErrorCode.REBALANCE_IN_PROGRESS
    again = rejoin(driver, joined.member_id)
    assert len(synced(driver, again)) == 2
    assert driver.consumer_group.state is ConsumerGroupState.STABLE


def test_a_classic_member_that_falls_silent_is_fenced(driver: Driver) -> None:
    driver.beat("new")
    joined = driver.joined(driver.join())
    driver.advance(SESSION_MS)
    assert joined.member_id not in driver.consumer_group.members


def test_a_classic_member_is_refused_as_members_of_classic_groups_are(driver: Driver) -> None:
    driver.beat("new", instance_id="i")
    joined = driver.joined(driver.join())
    ticket = driver.sync(joined, protocol_name="sticky")
    assert driver.error(ticket) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    other = (("sticky", subscription("orders")),)
    for refused in (driver.join(protocols=other), driver.join(protocol_type="connect")):
        assert driver.error(refused) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    unreadable = driver.join(protocols=(("range", b"\x00"),))
    assert driver.error(unreadable) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert driver.heartbeat("stranger", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert driver.heartbeat("new", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert driver.heartbeat(joined.member_id, 9) is ErrorCode.ILLEGAL_GENERATION
    assert driver.leave("new", "stranger") == [ErrorCode.UNKNOWN_MEMBER_ID] * 2
    assert driver.leave(joined.member_id) == [ErrorCode.NONE]


def test_a_static_member_changes_its_protocol_in_its_place(driver: Driver) -> None:
    driver.beat("new", instance_id="i")
    owned = driver.consumer_group.members["new"].owned
    joined = driver.joined(driver.join(instance_id="i"))
    [member] = driver.consumer_group.members.values()
    assert (member.member_id, member.owned) == (joined.member_id, owned)
    assert driver.beat("newer", instance_id="i").error_code == ErrorCode.NONE
    assert driver.consumer_group.members.keys() == {"newer"}


def test_a_refused_newcomer_leaves_those_who_wait_in_a_classic_group_alone(driver: Driver) -> None:
    old = classic_member(driver)
    waiting = driver.join()
    refused = driver.beat(old.member_id)
    assert refused.error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert driver.waits(waiting)
    rejoin(driver, old.member_id)
    driver.joined(waiting)
    assert len(driver.shard.groups[GROUP].members) == 2


def test_a_group_is_upgraded_while_a_newcomer_knows_another_assignor_alone(driver: Driver) -> None:
    both = (("range", subscription("orders")), ("roundrobin", subscription("orders")))
    ticket = driver.join(protocols=both)
    driver.advance(6_000)
    old = driver.joined(ticket)
    assert old.protocol_name == "range"
    driver.sync(old, {old.member_id: encode_assignment(0, EVERYTHING)})
    waiting = driver.join(protocols=both[1:])
    assert driver.beat("new").error_code == ErrorCode.NONE
    assert driver.error(waiting) is ErrorCode.REBALANCE_IN_PROGRESS
    assert len(driver.consumer_group.members) == 3

"""Whatever records somebody has written to `__consumer_offsets`, the coordinator goes on.

Whoever may write to the topic would otherwise end its coordinators, one after another.
"""

from typing import Any
from uuid import UUID

import hypothesis.strategies as st
import pytest
from hypothesis import given

from broker.groups.consumer.member import contradiction
from broker.groups.consumer.partitions import Partitions, TopicIdPartition
from tests.broker.groups.driver import GROUP, REBALANCE_MS, Driver, subscription
from wire.consumer_group_records import (
    ClassicMember,
    ClassicProtocol,
    CurrentKey,
    CurrentValue,
    GroupKey,
    GroupValue,
    Key,
    MemberKey,
    MemberValue,
    PatternKey,
    PatternValue,
    TargetEpochKey,
    TargetEpochValue,
    TargetKey,
    TargetValue,
    TopicPartitions,
    TopicShape,
    TopicsKey,
    TopicsValue,
    Value,
)
from wire.consumer_offsets import GroupMetadataKey

Records = list[tuple[Key, Value | None]]

members = st.sampled_from(["a", "b", "c"])
epochs = st.sampled_from([-(2**31), -2, -1, 0, 1, 2, 2**31 - 1])
topic_ids = st.sampled_from([UUID(int=1), UUID(int=2)])
lists = st.lists(
    st.builds(
        TopicPartitions,
        topic_id=topic_ids,
        partitions=st.lists(st.integers(-1, 4), max_size=4).map(tuple),
    ),
    max_size=2,
).map(tuple)
protocols = st.builds(
    ClassicProtocol,
    name=st.sampled_from(["range", "sticky"]),
    metadata=st.sampled_from([subscription("orders"), b"\x00\x00", b""]),
)
classic = st.none() | st.builds(
    ClassicMember,
    session_timeout_ms=epochs,
    supported_protocols=st.lists(protocols, max_size=2).map(tuple),
)
told = st.builds(
    MemberValue,
    instance_id=st.none() | st.sampled_from(["i", ""]),
    rack_id=st.none(),
    client_id=st.just("c"),
    client_host=st.just("/h"),
    subscribed_topic_names=st.lists(st.sampled_from(["orders", "gone"]), max_size=3).map(tuple),
    subscribed_topic_regex=st.none() | st.sampled_from(["", "or.*", "or.{2}"]),
    rebalance_timeout_ms=epochs,
    server_assignor=st.none() | st.sampled_from(["range", "nobody's"]),
    classic=classic,
).filter(lambda value: contradiction(value) is None)
current = st.builds(
    CurrentValue,
    member_epoch=epochs,
    previous_member_epoch=epochs,
    state=st.sampled_from([-1, 0, 1, 2, 3, 127]),
    assigned_partitions=lists,
    partitions_pending_revocation=lists,
)
shapes = st.builds(
    TopicShape,
    topic_id=topic_ids,
    topic_name=st.sampled_from(["orders", "gone"]),
    num_partitions=st.sampled_from([-1, 0, 3]),
)
records: st.SearchStrategy[Records] = st.lists(
    st.one_of(
        st.tuples(st.just(GroupKey(GROUP)), st.none() | st.builds(GroupValue, epoch=epochs)),
        st.tuples(
            st.just(TopicsKey(GROUP)),
            st.none() | st.builds(TopicsValue, topics=st.lists(shapes, max_size=2).map(tuple)),
        ),
        st.tuples(st.builds(MemberKey, st.just(GROUP), members), st.none() | told),
        st.tuples(
            st.just(TargetEpochKey(GROUP)), st.none() | st.builds(TargetEpochValue, epoch=epochs)
        ),
        st.tuples(
            st.builds(TargetKey, st.just(GROUP), members),
            st.none() | st.builds(TargetValue, topic_partitions=lists),
        ),
        st.tuples(st.builds(CurrentKey, st.just(GROUP), members), st.none() | current),
        st.tuples(
            st.builds(PatternKey, st.just(GROUP), st.just("or.*")),
            st.none()
            | st.builds(
                PatternValue,
                topics=st.just(("orders",)),
                version=st.just(1),
                timestamp_ms=st.just(1),
            ),
        ),
    ),
    max_size=12,
)


def owned() -> Partitions:
    return frozenset({TopicIdPartition(UUID(int=1), 0)})


@given(written=records, epoch=epochs, name=members)
def test_the_coordinator_goes_on_with_any_records(written: Records, epoch: int, name: str) -> None:
    driver = Driver()
    driver.put_topic("orders", 3)
    for key, value in written:
        driver.shard.replay((key, value))
    operation = driver.shard.begin(driver.now_ms, driver.now_ms)
    driver.shard.start_sessions(operation)
    driver.beat(name, epoch, owned=owned())
    driver.beat(name, epoch, instance_id="i")
    driver.heartbeat(name, epoch)
    joined = driver.join(name)
    driver.beat("new")
    driver.commit({("orders", 0): 1}, member_id=name, generation=epoch)
    driver.advance(1)
    driver.leave(name)
    if joined in driver.answers:
        driver.sync(driver.answers[joined])
    for _ in range(5):
        for member in ("a", "b", "c", "new"):
            driver.beat(member)
            group = driver.shard.consumer.groups.get(GROUP)
            known = None if group is None else group.members.get(member)
            if known is not None:
                driver.beat(member, known.epoch, owned=known.assigned)
    driver.advance(200_000)
    driver.restarted()
    driver.expire_offsets()
    driver.delete_group()
    driver.shard.replay((GroupMetadataKey(group=GROUP), None))
    assert GROUP not in driver.shard.groups


def static_member(**other: Any) -> MemberValue:
    """Return a static member that speaks the classic protocol and lasts."""
    told: dict[str, Any] = {
        "instance_id": "i",
        "rack_id": None,
        "client_id": "c",
        "client_host": "/h",
        "subscribed_topic_names": ("orders",),
        "subscribed_topic_regex": None,
        "rebalance_timeout_ms": REBALANCE_MS,
        "server_assignor": None,
        "classic": speaking("range"),
    }
    return MemberValue(**(told | other))


def speaking(assignor: str) -> ClassicMember:
    return ClassicMember(
        session_timeout_ms=10 * REBALANCE_MS,
        supported_protocols=(ClassicProtocol(name=assignor, metadata=subscription("orders")),),
    )


def test_static_members_of_one_instance_id_do_not_end_a_coordinator() -> None:
    driver = Driver()
    driver.put_topic("orders", 3)
    for key in (MemberKey(GROUP, "a"), MemberKey(GROUP, "b")):
        driver.shard.replay((key, static_member()))
    driver.beat("new")
    driver.advance(2 * REBALANCE_MS)
    assert driver.consumer_group.members.keys() == {"a", "b"}


@pytest.mark.parametrize(
    "other",
    [
        {"instance_id": "i" * 32_768},
        {"client_id": "c" * 32_768},
        {"client_host": "é" * 16_384},
        {"classic": speaking("r" * 32_768)},
    ],
    ids=["instance", "client", "host", "assignor"],
)
def test_a_name_that_no_classic_group_could_write_is_left_out(other: dict[str, Any]) -> None:
    assert contradiction(static_member()) is None
    assert "a name is longer" in (contradiction(static_member(**other)) or "")

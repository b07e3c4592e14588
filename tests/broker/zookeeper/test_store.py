"""The tree in a real ZooKeeper: who may write what, when two want to."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from uuid import UUID

import pytest
import trio
from kazoo.client import KazooClient

from broker.listeners import Listener
from broker.zookeeper import tree
from broker.zookeeper.controller_store import (
    ControllerEpoch,
    ControllerStore,
    try_become_controller,
)
from broker.zookeeper.store import KEPT_CHANGES, BrokerIdTaken, ClusterStore, change_number
from broker.zookeeper.tree import LeaderAndIsr, TopicAssignment
from runtime.coordination.zookeeper import BadVersion, ZooKeeper, open_zookeeper
from wire.topic_partition import TopicPartition

pytestmark = pytest.mark.integration

HERE = Listener(name="PLAINTEXT", host="here", port=1)
ELSEWHERE = Listener(name="PLAINTEXT", host="elsewhere", port=1)
T0, T1, T2 = (TopicPartition("t", index) for index in range(3))
TOPIC = TopicAssignment(topic_id=UUID(int=9), replicas={0: (0,), 1: (0,)})


@asynccontextmanager
async def two_sessions(address: str) -> AsyncIterator[tuple[ZooKeeper, ZooKeeper]]:
    async with (
        open_zookeeper(address, session_timeout_ms=10_000) as one,
        open_zookeeper(address, session_timeout_ms=10_000) as other,
    ):
        await ClusterStore(one).prepare()
        yield one, other


async def become_controller(zookeeper: ZooKeeper, broker_id: int) -> ControllerEpoch:
    epoch = await try_become_controller(zookeeper, broker_id, 1)
    assert epoch is not None
    return epoch


async def test_the_cluster_id_is_made_once(empty_zookeeper: str) -> None:
    async with two_sessions(empty_zookeeper) as (one, other):
        assert await ClusterStore(one).prepare() == await ClusterStore(other).prepare()


async def test_what_brokers_know_each_other_by_is_made_once(empty_zookeeper: str) -> None:
    async with two_sessions(empty_zookeeper) as (one, other):
        assert await ClusterStore(one).broker_secret("first") == "first"
        assert await ClusterStore(other).broker_secret("second") == "first"
        await one.set(tree.BROKERS_PROOF, b'{"secret": ""}')
        with pytest.raises(tree.MalformedNode, match="/cluster/secret: is empty"):
            await ClusterStore(other).broker_secret("third")


async def test_the_epoch_of_the_newest_controller_is_read(empty_zookeeper: str) -> None:
    async with two_sessions(empty_zookeeper) as (one, other):
        assert await ClusterStore(other).controller_epoch() == 0
        await become_controller(one, 0)
        await become_controller(one, 0)
        assert await ClusterStore(other).controller_epoch() == 2


async def test_there_is_one_controller_at_a_time(empty_zookeeper: str) -> None:
    async with two_sessions(empty_zookeeper) as (one, other):
        first = await become_controller(one, 0)
        assert first.number == 1
        assert await try_become_controller(other, 1, 1) is None
        assert await ClusterStore(other).controller() == 0
        again = await become_controller(one, 0)
        assert again.number == 2


async def test_a_deposed_controller_changes_nothing(empty_zookeeper: str) -> None:
    """It looked away while another took over: each of its writes is refused as a whole."""
    async with two_sessions(empty_zookeeper) as (one, other):
        deposed = ControllerStore(one, await become_controller(one, 0))
        await deposed.create_topic("t", TOPIC, {})
        await one.delete(tree.CONTROLLER)
        new = ControllerStore(other, await become_controller(other, 1))
        state = LeaderAndIsr(leader=0, leader_epoch=0, isr=(0,), controller_epoch=1, version=0)
        writes: tuple[Callable[[], Awaitable[None]], ...] = (
            lambda: deposed.create_topic("u", TOPIC, {}),
            lambda: deposed.grow_topic("t", TOPIC),
            lambda: deposed.write({}, [(T0, state)], {}),
            lambda: deposed.request_deletion("t"),
            lambda: deposed.remove_topic("t"),
        )
        for write in writes:
            with pytest.raises(BadVersion, match=tree.CONTROLLER_EPOCH):
                await write()
        assert (await new.read_states([T0]))[0] == {}
        assert await new.read_topics(["t", "u"]) == {"t": TOPIC}
        assert await new.read_deletions() == []


async def test_a_state_is_written_over_the_one_that_was_known(empty_zookeeper: str) -> None:
    async with two_sessions(empty_zookeeper) as (one, _):
        store = ControllerStore(one, await become_controller(one, 0))
        await store.create_topic("t", TOPIC, {})
        states = [
            LeaderAndIsr(
                leader=0, leader_epoch=epoch, isr=(0,), controller_epoch=1, version=version
            )
            for epoch, version in ((0, 0), (1, 1), (5, 5))
        ]
        await store.write({}, [(T0, states[0]), (T1, states[0])], {})
        await store.write({}, [(T0, states[1])], {})
        assert (await store.read_states([T0, T1, T2]))[0] == {
            T0: states[1],
            T1: states[0],
        }
        with pytest.raises(BadVersion):
            await store.write({}, [(T0, states[2])], {})


async def test_a_state_tells_whether_it_is_older_than_a_registration(empty_zookeeper: str) -> None:
    async with two_sessions(empty_zookeeper) as (one, _):
        store = ControllerStore(one, await become_controller(one, 0))
        await store.create_topic("t", TOPIC, {})
        state = LeaderAndIsr(leader=0, leader_epoch=0, isr=(0,), controller_epoch=1, version=0)
        await store.write({}, [(T0, state)], {})
        before = (await store.read_states([T0]))[0][T0].written_zxid
        registered = await ClusterStore(one).register(0, [HERE], None, now_ms=1)
        await store.write({}, [(T0, replace(state, version=1))], {})
        after = (await store.read_states([T0]))[0][T0].written_zxid
        assert 0 < before < registered.epoch < after


async def test_many_states_are_written_at_once(empty_zookeeper: str) -> None:
    async with two_sessions(empty_zookeeper) as (one, _):
        store = ControllerStore(one, await become_controller(one, 0))
        big = TopicAssignment(topic_id=UUID(int=9), replicas=dict.fromkeys(range(250), (0,)))
        await store.create_topic("t", big, {})
        state = LeaderAndIsr(leader=0, leader_epoch=0, isr=(0,), controller_epoch=1, version=0)
        partitions = [TopicPartition("t", index) for index in big.replicas]
        await store.write({}, [(partition, state) for partition in partitions], {})
        assert list((await store.read_states(partitions))[0]) == partitions


async def test_a_removed_topic_leaves_no_node(empty_zookeeper: str) -> None:
    async with two_sessions(empty_zookeeper) as (one, _):
        store = ControllerStore(one, await become_controller(one, 0))
        await store.create_topic("t", TOPIC, {"retention.ms": "5"})
        await store.request_deletion("t")
        await store.request_deletion("t")
        assert await store.read_deletions() == ["t"]
        await store.remove_topic("t")
        await store.remove_topic("t")
        for path in (
            tree.topic_path("t"),
            tree.topic_config_path("t"),
            tree.delete_topic_path("t"),
        ):
            assert not await one.exists(path)


async def test_producer_ids_are_never_given_twice(empty_zookeeper: str) -> None:
    async with two_sessions(empty_zookeeper) as sessions:
        first_ids: list[int] = []

        async def take(zookeeper: ZooKeeper, broker_id: int) -> None:
            for _ in range(10):
                block = await ClusterStore(zookeeper).allocate_producer_ids(broker_id)
                assert block.last == block.first + 999
                first_ids.append(block.first)

        async with trio.open_nursery() as nursery:
            for broker_id, session in enumerate(sessions):
                nursery.start_soon(take, session, broker_id)
        assert sorted(first_ids) == list(range(0, 20_000, 1_000))
        store = ClusterStore(sessions[0])
        assert await store.last_producer_id() == 19_999
        assert (await store.allocate_producer_ids(1, above=42_123)).first == 42_124
        assert (await store.allocate_producer_ids(1, above=5)).first == 43_124


async def test_the_node_that_apache_kafka_has_made_and_not_filled_says_of_no_producer_id(
    empty_zookeeper: str,
) -> None:
    """It makes its nodes without data; kazoo has None for these."""
    client = KazooClient(hosts=empty_zookeeper)
    client.start()
    client.create(tree.PRODUCER_IDS, None, makepath=True)
    client.stop()
    client.close()
    async with two_sessions(empty_zookeeper) as sessions:
        store = ClusterStore(sessions[0])
        assert await store.last_producer_id() == -1
        assert (await store.allocate_producer_ids(1)).first == 0


async def test_changes_by_two_at_once_both_hold(empty_zookeeper: str) -> None:
    async with two_sessions(empty_zookeeper) as sessions:

        async def change(zookeeper: ZooKeeper, name: str) -> None:
            store = ClusterStore(zookeeper)
            for number in range(10):
                await store.change_default_broker_config(
                    lambda present, number=number: {**present, f"{name}.{number}": "1"}  # type: ignore[misc]
                )

        async with trio.open_nursery() as nursery:
            for name, session in zip("ab", sessions, strict=True):
                nursery.start_soon(change, session, name)
        held = await ClusterStore(sessions[0]).default_broker_config()
        assert set(held) == {f"{name}.{number}" for name in "ab" for number in range(10)}


async def test_old_notifications_are_tidied_away(empty_zookeeper: str) -> None:
    async with two_sessions(empty_zookeeper) as (one, _):
        store = ClusterStore(one)
        for _ in range(KEPT_CHANGES + 5):
            await store.change_topic_config("t", lambda _: {"retention.ms": "5"})
        names = await one.children(tree.CONFIG_CHANGES) or []
        numbers = sorted(map(change_number, names))
        assert numbers == list(range(5, KEPT_CHANGES + 5))
        assert await store.changed_entity(numbers[-1]) == "topics/t"
        assert await store.changed_entity(0) is None


async def test_a_broker_replaces_its_dead_self_but_nobody_else(empty_zookeeper: str) -> None:
    """The first session is still open in ZooKeeper's eyes, as after a SIGKILL."""
    async with two_sessions(empty_zookeeper) as (dead, alive):
        before = await ClusterStore(dead).register(0, [HERE], None, now_ms=1)
        await become_controller(dead, 0)
        with pytest.raises(BrokerIdTaken, match=r"broker\.id 0 is in use by a broker at here:1"):
            await ClusterStore(alive).register(0, [ELSEWHERE], None, now_ms=1)
        after = await ClusterStore(alive).register(0, [HERE], "rack", now_ms=1)
        assert after.epoch > before.epoch
        assert after.rack == "rack"
        assert await ClusterStore(alive).controller() is None
        assert await ClusterStore(alive).register(0, [HERE], "rack", now_ms=2) == after
        await ClusterStore(dead).unregister(0)
        assert await ClusterStore(alive).brokers(["0", "1"]) == {0: after}
        await ClusterStore(alive).unregister(0)
        assert await ClusterStore(alive).brokers(["0"]) == {}


async def test_a_failed_folder_is_announced_until_the_controller_takes_note(
    empty_zookeeper: str,
) -> None:
    async with two_sessions(empty_zookeeper) as (one, other):
        controller = ControllerStore(one, await become_controller(one, 0))
        broker = ClusterStore(other)
        async with broker.watch_log_dir_events() as listings:
            assert await listings.receive() == []
            await broker.announce_log_dir_failure(2)
            await broker.announce_log_dir_failure(1)
            names = await one.children(tree.LOG_DIR_EVENTS)
            assert names is not None
            assert await controller.take_log_dir_events(names) == {1, 2}
            assert await one.children(tree.LOG_DIR_EVENTS) == []


async def test_a_creation_that_was_cut_short_is_completed(empty_zookeeper: str) -> None:
    async with two_sessions(empty_zookeeper) as (one, _):
        store = ControllerStore(one, await become_controller(one, 0))
        await store.create_topic("t", TOPIC, {})
        await one.create(tree.partition_path("t", 0))
        state = LeaderAndIsr(leader=0, leader_epoch=0, isr=(0,), controller_epoch=1, version=0)
        await store.write({}, [(T0, state), (T1, state)], {})
        assert set((await store.read_states([T0, T1]))[0]) == {T0, T1}


async def test_a_move_is_written_around_the_states_it_comes_with(empty_zookeeper: str) -> None:
    async with two_sessions(empty_zookeeper) as (one, _):
        store = ControllerStore(one, await become_controller(one, 0))
        await store.create_topic("t", TOPIC, {})
        moving = replace(TOPIC, adding={0: (3,)}, replicas={0: (3, 0), 1: (0,)})
        done = replace(TOPIC, replicas={0: (3,), 1: (0,)})
        state = LeaderAndIsr(leader=0, leader_epoch=0, isr=(0,), controller_epoch=1, version=0)
        await store.write({"t": moving}, [(T0, state)], {})
        assert await store.read_topics(["t"]) == {"t": moving}
        later = replace(state, version=1, leader=3)
        await store.write({"t": moving}, [(T0, later)], {"t": done})
        assert await store.read_topics(["t"]) == {"t": done}
        assert (await store.read_states([T0]))[0] == {T0: later}


async def test_garbage_in_a_node_stops_what_it_is_about_and_nothing_else(
    empty_zookeeper: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with two_sessions(empty_zookeeper) as (one, _):
        store = ControllerStore(one, await become_controller(one, 0))
        state = LeaderAndIsr(leader=0, leader_epoch=0, isr=(0,), controller_epoch=1, version=0)
        for name in ("t", "garbled"):
            await store.create_topic(name, TOPIC, {})
            await store.write({}, [(TopicPartition(name, 0), state)], {})
        await store.create_topic("nothing", TOPIC, {})
        await one.set(tree.topic_path("nothing"), b"[" * 100_000)
        await one.set(tree.state_path("garbled", 0), b'{"leader":1e999}')
        await one.create(f"{tree.BROKERS}/x", b"{}")
        await one.create(f"{tree.BROKERS}/7", b"\xff")
        cluster = ClusterStore(one)
        await cluster.register(0, [HERE], None, now_ms=1)
        assert await store.read_topics(["t", "nothing"]) == {"t": TOPIC}
        states, malformed = await store.read_states([T0, TopicPartition("garbled", 0)])
        assert (list(states), malformed) == ([T0], frozenset({"garbled"}))
        assert list(await cluster.brokers(await cluster.broker_ids())) == [0]
        await one.create(f"{tree.LOG_DIR_EVENTS}/log_dir_event_0", b"garbage")
        assert await store.take_log_dir_events(["log_dir_event_0"]) == frozenset()
        for path in ("/brokers/topics/nothing", "/partitions/0/state", "/ids/x", "/ids/7", "dir_"):
            assert path in caplog.text


async def test_a_registration_that_somebody_has_written_over_is_restored(
    empty_zookeeper: str,
) -> None:
    async with two_sessions(empty_zookeeper) as (one, other):
        first = await ClusterStore(one).register(0, [HERE], None, now_ms=1)
        await other.set(tree.broker_path(0), b"garbage")
        with pytest.raises(BrokerIdTaken, match="/brokers/ids/0"):
            await ClusterStore(other).register(0, [HERE], None, now_ms=1)
        assert await ClusterStore(one).register(0, [HERE], None, now_ms=1) == first


async def test_a_garbled_controller_epoch_is_named(empty_zookeeper: str) -> None:
    async with two_sessions(empty_zookeeper) as (one, _):
        await one.create(tree.CONTROLLER_EPOCH, b"many")
        with pytest.raises(tree.MalformedNode, match=tree.CONTROLLER_EPOCH):
            await try_become_controller(one, 0, 1)
        assert change_number("config_change_x") == -1

"""A topic whose node was broken is served again once the node is mended."""

from collections.abc import Callable
from uuid import UUID

import pytest
import trio

from broker.controller import active_controller
from broker.controller.controller import Controller
from broker.controller.settings import ControllerSettings
from broker.controller.topics import TopicSpec
from broker.listeners import Listener
from broker.zookeeper import tree
from broker.zookeeper.controller_store import ControllerStore, try_become_controller
from broker.zookeeper.store import ClusterStore
from broker.zookeeper.tree import LeaderAndIsr, TopicAssignment
from runtime.coordination.zookeeper import ZooKeeper, open_zookeeper
from runtime.process.ports import free_port
from tests.broker.rig import FixedClock
from wire.topic_partition import TopicPartition

pytestmark = pytest.mark.integration

STATE = LeaderAndIsr(leader=0, leader_epoch=4, isr=(0,), controller_epoch=1, version=0)
TOPIC = TopicAssignment(topic_id=UUID(int=9), replicas={0: (0,)})
WHOLE, BROKEN = TopicPartition("whole", 0), TopicPartition("broken", 0)


async def make_topics(zookeeper: ZooKeeper) -> None:
    """Two topics that an earlier controller has had led."""
    epoch = await try_become_controller(zookeeper, 0, 1)
    assert epoch is not None
    store = ControllerStore(zookeeper, epoch)
    for place in (WHOLE, BROKEN):
        await store.create_topic(place.topic, TOPIC, {})
        await store.write({}, [(place, STATE)], {})


async def until(is_so: Callable[[], bool]) -> None:
    with trio.fail_after(30):
        while not is_so():  # noqa: ASYNC110 - nobody tells of it
            await trio.sleep(0.02)


@pytest.mark.parametrize("path", [tree.topic_path("broken"), tree.state_path("broken", 0)])
async def test_a_topic_whose_node_was_mended_is_led_again_although_no_topic_was_made_since(
    empty_zookeeper: str,
    path: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(active_controller, "LOOK_AGAIN_S", 0.05)
    settings = ControllerSettings(
        defaults=TopicSpec(name=""), is_unclean_election_allowed=lambda _: False
    )
    async with open_zookeeper(empty_zookeeper, session_timeout_ms=10_000) as zookeeper:
        store = ClusterStore(zookeeper)
        await store.prepare()
        here = Listener(name="PLAINTEXT", host="127.0.0.1", port=free_port())
        await store.register(0, [here], None, now_ms=1)
        await make_topics(zookeeper)
        before = await zookeeper.get(path)
        assert before is not None
        await zookeeper.set(path, b"[" * 50)
        read: list[str] = []
        decode = tree.decode_topic

        def decode_noting(name: str, data: bytes) -> TopicAssignment:
            read.append(name)
            return decode(name, data)

        monkeypatch.setattr(tree, "decode_topic", decode_noting)
        controller = Controller(0, store, FixedClock(), settings)

        def led() -> set[TopicPartition]:
            return set() if controller.cluster is None else set(controller.cluster.states)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(controller.run)
            await until(lambda: led() == {WHOLE})
            looks = len(read)
            await until(lambda: len(read) > looks + 3)
            assert led() == {WHOLE}
            assert caplog.text.count("topic broken is left as it is") == 1
            await zookeeper.set(path, before.data)
            await until(lambda: led() == {WHOLE, BROKEN})
            nursery.cancel_scope.cancel()
    assert "topics were left as they are and can be read now" in caplog.text

"""Requests of a controller that were meant for an earlier life of this broker (KIP-380)."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trio

from broker.replication.fetcher import FetcherSettings, ReplicaFetcher
from broker.replication.leadership import Leadership
from tests.broker.replication.orders import DEPOSES, FORGETS, ORDERS
from tests.broker.rig import serving
from wire.errors import ErrorCode
from wire.messages.fetch import FetchRequest, ReplicaState

EARLIER, PRESENT, NEWER = 9, 10, 11
NOT_TOLD = -1


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: type(order).__name__)
async def test_what_was_meant_for_an_earlier_life_is_refused_and_changes_nothing(
    tmp_path: Path, order: Any
) -> None:
    async with serving(tmp_path) as rig, rig.connect_broker() as controller:
        rig.node.registered_epoch = PRESENT
        before = dict(rig.node.metadata.brokers)
        answer = await controller.ask(replace(order, broker_epoch=EARLIER))
        assert answer.error_code == ErrorCode.STALE_BROKER_EPOCH
        assert rig.node.partitions.led("t", 0) is not None
        assert dict(rig.node.metadata.brokers) == before


@pytest.mark.parametrize("epoch", [PRESENT, NEWER, NOT_TOLD])
@pytest.mark.parametrize("order", ORDERS, ids=lambda order: type(order).__name__)
async def test_what_is_meant_for_this_life_or_names_none_is_obeyed(
    tmp_path: Path, order: Any, epoch: int
) -> None:
    """A controller sees a new registration before the broker knows its own epoch."""
    async with serving(tmp_path) as rig, rig.connect_broker() as controller:
        rig.node.registered_epoch = PRESENT
        answer = await controller.ask(replace(order, broker_epoch=epoch))
        assert answer.error_code == ErrorCode.NONE
        assert (rig.node.partitions.led("t", 0) is None) == (order is not FORGETS)
        assert (not rig.node.metadata.brokers) == (order is FORGETS)


async def test_an_order_for_an_earlier_life_does_not_raise_the_controllers_epoch(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path) as rig, rig.connect_broker() as controller:
        rig.node.registered_epoch = PRESENT
        for order in ORDERS:
            await controller.ask(replace(order, broker_epoch=EARLIER, controller_epoch=100))
        answer = await controller.ask(replace(DEPOSES, broker_epoch=PRESENT))
        assert answer.error_code == ErrorCode.NONE


class OneRequest:
    """A leader to which a fetcher speaks once: stands in for the pool and its connection."""

    def __init__(self) -> None:
        self.came = trio.Event()
        self.request_: FetchRequest | None = None

    async def connection(self, _: object) -> "OneRequest":
        return self

    def version_of(self, _: object) -> int:
        return 17

    async def request(self, request: FetchRequest, **_: object) -> object:
        self.request_ = request
        self.came.set()
        await trio.sleep_forever()


async def test_a_follower_tells_its_leader_in_which_life_it_fetches(tmp_path: Path) -> None:
    leader: Any = OneRequest()
    async with serving(tmp_path) as rig, rig.connect_broker() as controller:
        await controller.ask(replace(DEPOSES, broker_epoch=PRESENT))
        followed = rig.node.partitions.get("t", 0)
        assert followed is not None
        settings = FetcherSettings(broker_epoch=lambda: rig.node.partitions.broker_epoch)
        fetcher = ReplicaFetcher(0, 1, leader, rig.node.clock, settings)
        fetcher.address = ("leader", 1)
        fetcher.follow(followed)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fetcher.run)
            await leader.came.wait()
            nursery.cancel_scope.cancel()
    assert leader.request_.replica_state == ReplicaState(replica_id=0, replica_epoch=PRESENT)


async def test_what_is_known_is_not_replaced_by_a_controller_deposed_while_it_was_awaited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path) as rig, rig.connect_broker() as controller:

        async def meanwhile(_: object) -> None:
            assert rig.node.partitions.obeys(2)

        monkeypatch.setattr(rig.node, "know_topics", meanwhile)
        before = dict(rig.node.metadata.brokers)
        answer = await controller.ask(FORGETS)
        assert answer.error_code == ErrorCode.STALE_CONTROLLER_EPOCH
        assert dict(rig.node.metadata.brokers) == before


async def test_what_a_newer_controller_deletes_meanwhile_does_not_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other requests are served between two partitions of a LeaderAndIsr."""
    (topic,) = DEPOSES.topic_states
    (state,) = topic.partition_states
    states = (replace(state, partition_index=1), state)
    both = replace(DEPOSES, topic_states=(replace(topic, partition_states=states),))
    async with serving(tmp_path) as rig, rig.connect_broker() as older:
        partitions = rig.node.partitions
        take = partitions.take

        def take_and_delete(told: Leadership, *, is_new: bool = False) -> ErrorCode:
            taken = take(told, is_new=is_new)
            assert partitions.obeys(2)
            assert partitions.stop("t", 0, leader_epoch=-2, delete=True) is ErrorCode.NONE
            return taken

        monkeypatch.setattr(partitions, "take", take_and_delete)
        (answer,) = (await older.ask(both)).topics
        codes = [error.error_code for error in answer.partition_errors]
        assert codes == [ErrorCode.NONE, ErrorCode.STALE_CONTROLLER_EPOCH]
        assert partitions.get("t", 0) is None

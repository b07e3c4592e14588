"""Requests of a controller that were meant for an earlier life of this broker (KIP-380)."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.broker.rig import TOPIC_ID, serving
from wire.errors import ErrorCode
from wire.messages.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from wire.messages.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
)
from wire.messages.update_metadata import UpdateMetadataRequest

EARLIER, PRESENT, NEWER = 9, 10, 11
NOT_TOLD = -1

STOPS = StopReplicaRequest(
    controller_id=0,
    controller_epoch=1,
    topic_states=(
        StopReplicaTopicState(
            topic_name="t",
            partition_states=(
                StopReplicaPartitionState(partition_index=0, leader_epoch=5, delete_partition=True),
            ),
        ),
    ),
)
DEPOSES = LeaderAndIsrRequest(
    controller_id=0,
    controller_epoch=1,
    topic_states=(
        LeaderAndIsrTopicState(
            topic_name="t",
            topic_id=TOPIC_ID,
            partition_states=(
                LeaderAndIsrPartitionState(
                    partition_index=0,
                    controller_epoch=1,
                    leader=1,
                    leader_epoch=6,
                    isr=(0, 1),
                    partition_epoch=1,
                    replicas=(0, 1),
                ),
            ),
        ),
    ),
    live_leaders=(),
)
FORGETS = UpdateMetadataRequest(
    controller_id=7, controller_epoch=1, topic_states=(), live_brokers=()
)
ORDERS: list[Any] = [STOPS, DEPOSES, FORGETS]


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: type(order).__name__)
async def test_what_was_meant_for_an_earlier_life_is_refused_and_changes_nothing(
    tmp_path: Path, order: Any
) -> None:
    async with serving(tmp_path) as rig, rig.connect() as controller:
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
    async with serving(tmp_path) as rig, rig.connect() as controller:
        rig.node.registered_epoch = PRESENT
        answer = await controller.ask(replace(order, broker_epoch=epoch))
        assert answer.error_code == ErrorCode.NONE
        assert (rig.node.partitions.led("t", 0) is None) == (order is not FORGETS)
        assert (not rig.node.metadata.brokers) == (order is FORGETS)


async def test_an_order_for_an_earlier_life_does_not_raise_the_controllers_epoch(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path) as rig, rig.connect() as controller:
        rig.node.registered_epoch = PRESENT
        for order in ORDERS:
            await controller.ask(replace(order, broker_epoch=EARLIER, controller_epoch=100))
        answer = await controller.ask(replace(DEPOSES, broker_epoch=PRESENT))
        assert answer.error_code == ErrorCode.NONE

"""Reading the groups of a partition back."""

from pathlib import Path

import trio

from broker.fairness import AT_ONCE
from broker.groups.loading import load
from broker.groups.records import batches
from broker.groups.settings import GroupSettings
from tests.broker.groups.rig import TOPIC, WALL_MS, open_rig
from wire.consumer_offsets import OffsetKey, OffsetValue

COUNT = 10 * AT_ONCE


async def test_loading_many_positions_leaves_the_others_their_turn(tmp_path: Path) -> None:
    value = OffsetValue(offset=1, commit_timestamp_ms=WALL_MS)
    turns = 0

    async def take_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await trio.lowlevel.checkpoint()

    async with open_rig(tmp_path) as rig:
        keys = [OffsetKey(group=f"g-{number}", topic=TOPIC, partition=0) for number in range(COUNT)]
        for batch, _ in batches([(key, value) for key in keys], WALL_MS):
            rig.partition.append_own(batch)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(take_turns)
            shard = await load(rig.partition, GroupSettings())
            nursery.cancel_scope.cancel()
    assert [*shard.groups] == [key.group for key in keys]
    assert turns >= COUNT // AT_ONCE

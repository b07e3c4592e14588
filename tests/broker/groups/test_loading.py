"""Reading the groups of a partition back."""

from dataclasses import replace
from pathlib import Path

import pytest
import trio

from broker.fairness import AT_ONCE
from broker.groups.loading import load
from broker.groups.records import batches
from broker.groups.settings import GroupSettings
from tests.broker.groups.rig import TOPIC, WALL_MS, open_rig
from wire.consumer_offsets import (
    GroupMember,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetKey,
    OffsetValue,
)

COUNT = 10 * AT_ONCE
MEMBER = GroupMember(
    member_id="m-1",
    group_instance_id="i-1",
    client_id="",
    client_host="",
    session_timeout_ms=10_000,
    subscription=b"",
    assignment=b"",
)
SOUND = GroupMetadataValue(
    protocol_type="consumer", generation=1, protocol="range", leader="m-1", members=(MEMBER,)
)


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


@pytest.mark.parametrize(
    ("forged", "reason"),
    [
        (replace(SOUND, members=(MEMBER, replace(MEMBER, member_id="m-2"))), "group.instance.id"),
        (replace(SOUND, members=(MEMBER, replace(MEMBER, group_instance_id="i-2"))), "member id"),
        (replace(SOUND, protocol=None), "without a protocol"),
    ],
)
async def test_a_group_record_that_contradicts_itself_is_named_and_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, forged: GroupMetadataValue, reason: str
) -> None:
    """Whoever may write to the topic would otherwise end its coordinators, one after another."""
    async with open_rig(tmp_path) as rig:
        start = rig.partition.log_end_offset
        records = [(GroupMetadataKey(group="sound"), SOUND), (GroupMetadataKey(group="g"), forged)]
        for batch, _ in batches([*records], WALL_MS):
            rig.partition.append_own(batch)
        shard = await load(rig.partition, GroupSettings())
    assert "sound" in shard.groups
    assert "g" not in shard.groups
    assert f"offset {start + 1} cannot be read and is left out" in caplog.text
    assert reason in caplog.text

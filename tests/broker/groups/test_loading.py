"""Reading the groups of a partition back."""

from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
import trio

from broker.fairness import AT_ONCE
from broker.groups.loading import READ_BYTES, load
from broker.groups.records import batches
from broker.groups.settings import GroupSettings
from broker.led_partition import LedPartition
from broker.replication.partition import Partition
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
            shard = await load(rig.partition, GroupSettings(), rig.node.metadata)
            nursery.cancel_scope.cancel()
    assert [*shard.groups] == [key.group for key in keys]
    assert turns >= COUNT // AT_ONCE


class Watched:
    """One of several led partitions with the same log, which notes when it is read."""

    def __init__(self, partition: Partition, index: int, reads: list[int]) -> None:
        self._partition = partition
        self.index = index
        self._reads = reads

    def __getattr__(self, name: str) -> object:
        return getattr(self._partition, name)

    def read(self, offset: int, max_bytes: int) -> bytes:
        self._reads.append(self.index)
        return self._partition.read(offset, max_bytes)


async def test_loading_many_partitions_takes_the_loop_no_more_often_than_one(
    tmp_path: Path,
) -> None:
    """A dead coordinator leaves a dozen of them to each of the others, all at once."""
    value = OffsetValue(offset=1, commit_timestamp_ms=WALL_MS, metadata="m" * 1000)
    key = OffsetKey(group="g", topic=TOPIC, partition=0)
    reads: list[int] = []
    most = 0

    async def take_turns() -> None:
        nonlocal most
        while True:
            before = len(reads)
            await trio.lowlevel.checkpoint()
            most = max(most, len(reads) - before)

    async with open_rig(tmp_path, is_led=False) as rig:
        while rig.partition.log.size_bytes < 4 * READ_BYTES:
            for batch, _ in batches([(key, value)], WALL_MS):
                rig.partition.append_own(batch)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(take_turns)
            for index in range(10):
                rig.groups.on_leader(cast("LedPartition", Watched(rig.partition, index, reads)))
            await rig.wait_loaded()
            nursery.cancel_scope.cancel()
    assert {*reads} == {*range(10)}
    assert most <= 2


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
        shard = await load(rig.partition, GroupSettings(), rig.node.metadata)
    assert "sound" in shard.groups
    assert "g" not in shard.groups
    assert f"offset {start + 1} cannot be read and is left out" in caplog.text
    assert reason in caplog.text

"""Positions that a producer commits in its transaction: they count with its marker, or never."""

from pathlib import Path
from typing import Any

import pytest

from broker.apis import offset_fetch
from broker.groups.offsets import CommittingInTransaction, OffsetToCommit
from broker.log.markers import Marker, build_marker
from tests.broker.groups.rig import WALL_MS, Rig, open_rig
from wire.errors import ErrorCode
from wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from wire.topic_partition import TopicPartition

GROUP, PRODUCER = "g", 7
NAME = TopicPartition("orders", 0)


async def commit(rig: Rig, offset: int, **changes: Any) -> Any:
    """Commit as librdkafka does for a consumer of its own group."""
    given: dict[str, Any] = {"member_id": "", "instance_id": None, "generation": -1}
    committing = CommittingInTransaction(
        group_id=GROUP,
        positions=(
            OffsetToCommit(
                topic=NAME.topic, partition=0, offset=offset, leader_epoch=-1, metadata=None
            ),
        ),
        producer_id=PRODUCER,
        producer_epoch=0,
        **{**given, **changes},
    )
    return await rig.groups.ask(
        GROUP, lambda shard, operation: shard.commit_in_transaction(committing, operation)
    )


def mark(rig: Rig, *, is_commit: bool) -> None:
    """Let the transaction end, as `broker.transactions.marking` does."""
    marker = Marker(is_abort=not is_commit, coordinator_epoch=0)
    batch = build_marker(marker, producer_id=PRODUCER, producer_epoch=0, wall_ms=WALL_MS)
    offset = rig.partition.append_own(batch)
    rig.groups.transaction_ended(0, offset, PRODUCER, is_commit=is_commit)


async def position(rig: Rig, *, require_stable: bool) -> tuple[int, int]:
    """Return (error, offset)."""
    request = OffsetFetchRequest(
        group_id=GROUP,
        topics=(OffsetFetchRequestTopic(name=NAME.topic, partition_indexes=(0,)),),
        require_stable=require_stable,
    )
    answer = await offset_fetch.handle(request, rig.call(7))
    [partition] = answer.topics[0].partitions
    return partition.error_code, partition.committed_offset


@pytest.mark.parametrize(("is_commit", "then"), [(True, 9), (False, -1)])
@pytest.mark.parametrize("reads_anew", [False, True])
async def test_they_wait_for_the_end_of_the_transaction(
    tmp_path: Path, is_commit: bool, then: int, reads_anew: bool
) -> None:
    async with open_rig(tmp_path) as rig:
        assert await commit(rig, 9) == {NAME: ErrorCode.NONE}
        if reads_anew:  # another broker coordinates, which knows what the log says
            rig.groups.on_resigned(rig.partition.topic, 0)
            rig.groups.on_leader(rig.partition)
            await rig.wait_loaded()
        assert await position(rig, require_stable=False) == (ErrorCode.NONE, -1)
        assert await position(rig, require_stable=True) == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
        mark(rig, is_commit=is_commit)
        assert await position(rig, require_stable=True) == (ErrorCode.NONE, then)
        rig.groups.on_resigned(rig.partition.topic, 0)
        rig.groups.on_leader(rig.partition)
        await rig.wait_loaded()
        assert await position(rig, require_stable=True) == (ErrorCode.NONE, then)


async def test_a_group_with_such_positions_does_not_expire(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        await commit(rig, 9)
        far = WALL_MS + 10**12
        await rig.groups.ask(GROUP, lambda shard, operation: shard.expire_offsets(operation, far))
        mark(rig, is_commit=True)
        assert await position(rig, require_stable=True) == (ErrorCode.NONE, 9)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"generation": 3}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation": 3, "member_id": "stranger"}, ErrorCode.ILLEGAL_GENERATION),
    ],
)
async def test_a_generation_of_a_group_that_is_not_there_is_refused(
    tmp_path: Path, changes: dict[str, Any], error: ErrorCode
) -> None:
    async with open_rig(tmp_path) as rig:
        assert await commit(rig, 9, **changes) == error
        assert await position(rig, require_stable=True) == (ErrorCode.NONE, -1)


async def test_a_stranger_to_an_existing_group_is_refused(tmp_path: Path) -> None:
    """KIP-447: the consumer's generation fences it, not the producer's id."""
    async with open_rig(tmp_path) as rig:
        await commit(rig, 5)
        mark(rig, is_commit=True)
        told = await commit(rig, 9, generation=0, member_id="stranger")
        assert told == ErrorCode.UNKNOWN_MEMBER_ID

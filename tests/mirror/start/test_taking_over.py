"""A mirror that starts where somebody else has written to the target, or made it again."""

from collections.abc import Awaitable, Callable
from uuid import UUID

import pytest

from mirror.map.map_log import MapLog
from mirror.state.partition_state import PartitionState
from offset_translation.map_records import piece_start, target_topic
from offset_translation.offset_map import Piece
from offset_translation.runs import Place
from tests.doubles.fake_cluster import FakeCluster
from tests.mirror.whole_flow import batch_at, until, values, whole_flow
from wire.record_batch import Record, assign_offsets, build_batch

SOURCE = [b"s0", b"s1", b"s2", b"s3", b"s4"]
OURS = 7
"""The producer of `whole_flow`."""


def log() -> list[bytes]:
    return [batch_at(offset, value) for offset, value in enumerate(SOURCE)]


def ours(offset: int, value: bytes) -> bytes:
    """Return a batch that the mirror has written."""
    records = [Record(0, 0, b"k", value)]
    batch = bytearray(
        build_batch(records, producer_id=OURS, producer_epoch=0, base_sequence=offset)
    )
    assign_offsets(batch, offset, 0)
    return bytes(batch)


def left(
    *batches: bytes, topic_id: UUID | None = None
) -> Callable[[FakeCluster, MapLog], Awaitable[None]]:
    """Leave these on the target, and a map of a flow that began at the first record."""

    async def prepare(dc2: FakeCluster, map_log: MapLog) -> None:
        target = dc2.topics["t"].partitions[0]
        target.batches, target.end = list(batches), len(batches)
        records = [piece_start("t", 0, source_start=0, place=Place(0))]
        if topic_id is not None:
            records.append(target_topic("t", 0, topic_id))
        await map_log.write(lambda: records)

    return prepare


FOREIGN = [batch_at(offset, b"foreign%d" % offset) for offset in range(3)]


@pytest.mark.parametrize(
    "batches",
    [FOREIGN, [ours(0, b"s0"), ours(1, b"s1"), FOREIGN[2]]],
    ids=["a topic made again", "a producer id forgotten"],
)
async def test_foreign_records_at_the_targets_end_do_not_count_as_mirrored(
    batches: list[bytes],
) -> None:
    for _ in range(2):  # a restart changes nothing
        async with whole_flow(log(), 5, 100_000, prepare=left(*batches)) as whole:
            await until(lambda: whole.partition.state not in IN_DOUBT)
            assert whole.partition.state is PartitionState.TARGET_DIVERGED
            first = 0 if batches is FOREIGN else 2
            told = f"the target holds offsets {first} to 2 that no mirror has written"
            assert whole.partition.status.reason == told
            assert whole.target.batches == batches
            assert not whole.partition.has_true_map


IN_DOUBT = {PartitionState.DISCOVERING, PartitionState.POSITIONING}


async def test_records_that_somebody_else_has_copied_faithfully_are_mirrored() -> None:
    copied = [batch_at(0, b"s0"), batch_at(1, b"s1")]
    async with whole_flow(log(), 5, 100_000, prepare=left(*copied)) as whole:
        await until(lambda: values(whole.target) == SOURCE)


async def test_another_topic_than_the_map_names_is_not_believed_by_its_end() -> None:
    copied = [batch_at(0, b"s0"), batch_at(1, b"s1")]
    earlier = left(*copied, topic_id=UUID(int=99))
    async with whole_flow(log(), 5, 100_000, prepare=earlier) as whole:
        await until(lambda: whole.partition.state not in IN_DOUBT)
        assert whole.partition.state is PartitionState.TARGET_DIVERGED
        assert "is no mirror's" in whole.partition.status.reason


@pytest.mark.parametrize("claimed", [4, 5, 60])
async def test_a_hole_that_somebody_else_has_announced_skips_nothing(claimed: int) -> None:
    mirrored = [ours(0, b"s0"), ours(1, b"s1")]
    forge = piece_start("t", 0, source_start=claimed, place=Place(2))

    async def prepare(dc2: FakeCluster, map_log: MapLog) -> None:
        await left(*mirrored)(dc2, map_log)
        await map_log.write(lambda: [forge])

    async with whole_flow(log(), 5, 100_000, prepare=prepare) as whole:
        await until(lambda: values(whole.target) == SOURCE)
        await until(lambda: whole.partition.state is PartitionState.STREAMING)
        pieces = list(whole.partition.offset_map.pieces())
        assert pieces == [Piece(source_start=0, target_start=0, count=5)]


async def test_a_hole_that_is_one_is_announced_again() -> None:
    batches = [batch_at(0, b"s0"), batch_at(1, b"s1"), batch_at(4, b"s4")]

    async def prepare(dc2: FakeCluster, map_log: MapLog) -> None:
        await left(ours(0, b"s0"), ours(1, b"s1"))(dc2, map_log)
        await map_log.write(lambda: [piece_start("t", 0, source_start=4, place=Place(2))])

    async with whole_flow(batches, 5, 100_000, prepare=prepare) as whole:
        await until(lambda: values(whole.target) == [b"s0", b"s1", b"s4"])
        await until(lambda: whole.partition.state is PartitionState.STREAMING)
        pieces = list(whole.partition.offset_map.pieces())
        assert [(one.source_start, one.target_start, one.count) for one in pieces] == [
            (0, 0, 2),
            (4, 2, 1),
        ]


async def test_the_map_keeps_which_topic_holds_the_copy() -> None:
    kept: list[MapLog] = []

    async def prepare(_: FakeCluster, map_log: MapLog) -> None:
        kept.append(map_log)

    async with whole_flow(log(), 5, 100_000, prepare=prepare) as whole:
        await until(lambda: values(whole.target) == SOURCE)
        assert kept[0].state.target_ids == {
            whole.partition.topic_partition: whole.dc2.topics["t"].topic_id
        }

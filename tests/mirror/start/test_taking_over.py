"""A mirror that starts where somebody else has written to the target, or made it again."""

from collections.abc import Awaitable, Callable
from uuid import UUID

import pytest

from mirror.map.map_log import MapLog
from mirror.state.partition_state import PartitionState
from offset_translation.map_records import piece_start, target_topic
from offset_translation.offset_map import Piece
from offset_translation.runs import Place
from runtime.configuration.flow_section import Policy
from tests.doubles.fake_cluster import FakeCluster
from tests.mirror.whole_flow import batch_at, until, values, whole_flow
from wire.record_batch import Record, assign_offsets, build_batch
from wire.topic_partition import TopicPartition

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


@pytest.mark.parametrize("others", [2, 3, 4])
async def test_a_batch_behind_others_in_a_topic_made_again_does_not_vouch_for_what_was_before(
    others: int,
) -> None:
    """The mirror wrote its fourth record before it heard that there is another topic."""
    batches = [batch_at(offset, b"foreign") for offset in range(others)]
    written = bytearray(ours(3, b"s3"))
    assign_offsets(written, others, 0)
    prepare = left(*batches, bytes(written), topic_id=UUID(int=99))
    for _ in range(2):  # a restart changes nothing
        async with whole_flow(log(), 5, 100_000, prepare=prepare) as whole:
            await until(lambda: whole.partition.state not in IN_DOUBT)
            assert whole.partition.state is PartitionState.TARGET_DIVERGED
            assert (
                f"it has what was mirrored from target offset {others} on, and nothing of what was"
                " mirrored before"
            ) in whole.partition.status.reason
            assert len(whole.target.batches) == others + 1


async def test_a_topic_made_again_that_a_mirror_has_filled_from_the_first_record_is_its_copy() -> (
    None
):
    earlier = left(ours(0, b"s0"), ours(1, b"s1"), topic_id=UUID(int=99))
    async with whole_flow(log(), 5, 100_000, prepare=earlier) as whole:
        await until(lambda: values(whole.target) == SOURCE)


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


@pytest.mark.parametrize("foreign", [0, 2])
async def test_a_record_that_contradicts_the_map_may_contradict_what_of_it_is_not_believed(
    foreign: int,
) -> None:
    """An old copy of the witness knows only some of the map's writers."""

    async def prepare(dc2: FakeCluster, map_log: MapLog) -> None:
        await left(ours(0, b"s0"), ours(1, b"another"))(dc2, map_log)
        for offset in range(foreign):
            map_log.unbelieved_records.note(99, offset)

    async with whole_flow(log(), 5, 100_000, prepare=prepare) as whole:
        await until(lambda: whole.partition.state not in IN_DOUBT)
        assert whole.partition.state is PartitionState.SOURCE_WENT_BACK
        told = "or the map lacks 2 of its records, whose producers are not registered"
        assert (told in whole.partition.status.reason) == bool(foreign)


@pytest.mark.parametrize("topic", ["t", "of-another-partition"])
async def test_no_policy_decides_about_records_that_an_old_witness_may_take_for_foreign(
    topic: str,
) -> None:
    """They may be the mirror's, and would be there twice."""
    where = TopicPartition(topic, 0)

    async def prepare(dc2: FakeCluster, map_log: MapLog) -> None:
        await left(ours(0, b"s0"), ours(1, b"s1"), batch_at(2, b"s2"))(dc2, map_log)
        map_log.unbelieved_records.note(99, 0, {where})

    settings = {"policies": {"target_diverged": Policy.MERGE}, "has_way_back": False}
    async with whole_flow(log(), 5, 100_000, prepare=prepare, **settings) as whole:
        if topic == "t":
            await until(lambda: whole.partition.state is PartitionState.TARGET_DIVERGED)
            assert "or the map lacks 1 of its records" in whole.partition.status.reason
            assert values(whole.target) == [b"s0", b"s1", b"s2"]
        else:
            await until(lambda: values(whole.target)[3:] == [b"s2", b"s3", b"s4"])


async def test_the_map_keeps_which_topic_holds_the_copy() -> None:
    kept: list[MapLog] = []

    async def prepare(_: FakeCluster, map_log: MapLog) -> None:
        kept.append(map_log)

    async with whole_flow(log(), 5, 100_000, prepare=prepare) as whole:
        await until(lambda: values(whole.target) == SOURCE)
        assert kept[0].state.target_ids == {
            whole.partition.topic_partition: whole.dc2.topics["t"].topic_id
        }

"""Batches that may have come from the target are not sent back, though nobody who is believed says
whose they are."""

from mirror.state.partition_state import PartitionState
from mirror.state.reverse_flow import UnbelievedArrivals
from offset_translation.map_records import MirrorProducer, mirror_producer
from tests.mirror.whole_flow import batch_at, until, values, whole_flow
from wire.record_batch import Record, assign_offsets, build_batch

BROUGHT_BY = 77


def brought_at(offset: int, value: bytes) -> bytes:
    """Return a batch of one record by the mirror of the other direction."""
    batch = bytearray(
        build_batch(
            [Record(0, 0, b"k", value)], producer_id=BROUGHT_BY, producer_epoch=0, base_sequence=0
        )
    )
    assign_offsets(batch, offset, 0)
    return bytes(batch)


async def test_a_partition_waits_before_a_batch_that_may_be_the_other_mirrors() -> None:
    async with whole_flow([], 0, chunk_bytes=100_000) as whole:
        key, _ = mirror_producer(MirrorProducer(producer_id=BROUGHT_BY, producer_epoch=0))
        whole.flow.reverse.unbelieved.note(key)
        whole.source.batches += [batch_at(0, b"a"), brought_at(1, b"b"), batch_at(2, b"c")]
        whole.source.end = 3
        partition = whole.partition
        await until(lambda: "producer id 77" in partition.status.reason)
        assert partition.state is PartitionState.WAITING
        told = partition.status.reason
        assert "which records of dc2.offset-map.internal call a mirror's" in told
        assert "`failover recover --believe-maps` shows whose" in told
        assert values(whole.target) == [b"a"]
        assert partition.lag_records(0) == 2
        whole.flow.reverse.unbelieved = UnbelievedArrivals()  # the records were deleted
        await until(lambda: values(whole.target) == [b"a", b"b", b"c"])

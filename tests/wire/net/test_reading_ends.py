"""Reading ends, whatever comes: of a log that was cut, and of batches that are not asked for."""

import pytest
import trio

from tests.doubles.fake_cluster import run_fake_cluster
from wire.headers import RequestHeader
from wire.messages.fetch import (
    FetchableTopicResponse,
    FetchPartitionData,
    FetchRequest,
    FetchResponse,
)
from wire.net import RequestRefused, open_cluster, partition_operations
from wire.net.operations import append, read_partition
from wire.record_batch import CorruptBatch, Record, assign_offsets, build_batch


@pytest.mark.parametrize("isolation_level", [0, 1])
async def test_reading_a_log_that_was_cut_before_its_stop_is_refused_after_a_while(
    monkeypatch: pytest.MonkeyPatch, isolation_level: int
) -> None:
    monkeypatch.setattr(partition_operations, "SHORT_S", 0.3)
    monkeypatch.setattr(partition_operations, "FETCH_WAIT_MS", 100)
    async with run_fake_cluster() as fake, open_cluster(fake.bootstrap, client_id="t") as cluster:
        fake.create_topic("orders", 0)
        await append(cluster, "orders", 0, build_batch([Record(0, 1_000, None, b"v")]))
        reader = read_partition(cluster, "orders", 0, 0, 2, isolation_level=isolation_level)
        assert (await anext(reader))[0].next_offset == 1
        with pytest.raises(RequestRefused, match=r"ends at 1 and not at 2.*OFFSET_NOT_AVAILABLE"):
            await anext(reader)


async def test_batches_that_never_reach_the_offset_asked_for_are_damaged() -> None:
    """As of one whose count is wrong: it would be asked for again and again, without a pause."""
    async with run_fake_cluster() as fake, open_cluster(fake.bootstrap, client_id="t") as cluster:
        topic = fake.create_topic("orders", 0)
        first, second = (bytearray(build_batch([Record(0, 1_000, None, b"v")])) for _ in "ab")
        assign_offsets(second, 1, 0)

        async def answer(_: RequestHeader, __: FetchRequest) -> FetchResponse:
            data = FetchPartitionData(
                partition_index=0,
                error_code=0,
                high_watermark=9,
                records=bytes(first + second),
            )
            named = FetchableTopicResponse(topic_id=topic.topic_id, partitions=(data,))
            return FetchResponse(responses=(named,))

        fake.brokers[0].scripts[FetchRequest.API_KEY] = answer
        reader = read_partition(cluster, "orders", 0, 1, 9)
        with trio.fail_after(5):
            assert (await anext(reader))[0].base_offset == 1
            with pytest.raises(CorruptBatch):
                await anext(reader)

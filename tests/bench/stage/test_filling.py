"""The workload as it is written: its batches and requests; and the stream of numbered records."""

import pytest

from tests.bench.measure.workloads import KIB, MIB, Workload
from tests.bench.stage.filling import batch_of, requests_of
from tests.bench.stage.relay import chunk_of
from tests.bench.stage.steady import Stream
from wire.compression import Compression
from wire.record_batch import iterate_batches, iterate_records

SMALL = Workload(batch_bytes=16 * KIB, partitions=3, data_bytes=MIB)


@pytest.mark.parametrize("record_bytes", [100, KIB, 10 * KIB])
def test_a_batch_holds_the_records_of_the_workload(record_bytes: int) -> None:
    workload = Workload(record_bytes=record_bytes, batch_bytes=100 * KIB)
    records = list(iterate_records(memoryview(batch_of(workload))))
    assert len(records) == workload.records_per_batch
    assert {len(record.value or b"") for record in records} == {record_bytes}


@pytest.mark.parametrize("codec", [Compression.LZ4, Compression.ZSTD])
def test_values_compress_about_as_well_as_text_does(codec: Compression) -> None:
    plain = len(batch_of(Workload(batch_bytes=100 * KIB)))
    packed = len(batch_of(Workload(batch_bytes=100 * KIB, codec=codec)))
    assert 1.5 < plain / packed < 6


def test_requests_write_every_batch_of_every_partition_once() -> None:
    batch = batch_of(SMALL)
    written: dict[int, int] = {}
    for request in requests_of(SMALL, "t", batch):
        for data in request.topic_data[0].partition_data:
            written[data.index] = written.get(data.index, 0) + 1
    assert written == dict.fromkeys(range(3), SMALL.batches_per_partition)


def test_a_request_holds_no_more_partitions_than_fit() -> None:
    workload = Workload(batch_bytes=100 * KIB, partitions=120, data_bytes=120 * 400 * KIB)
    sizes = [
        len(request.topic_data[0].partition_data)
        for request in requests_of(workload, "t", batch_of(workload))
    ]
    assert sum(sizes) == 120 * workload.batches_per_partition
    assert max(sizes) * 100 * KIB <= 2 * MIB


def test_the_relay_gets_whole_batches() -> None:
    chunk, records = chunk_of(SMALL)
    assert sum(header.record_count for header, _ in iterate_batches(chunk)) == records
    assert len(chunk) <= MIB


def test_a_stream_knows_its_records_again_and_how_long_each_took() -> None:
    stream = Stream(record_bytes=100, per_batch=2)
    batches = [stream.next_batch(now) for now in (1.0, 2.0)]
    values = [
        record.value or b"" for batch in batches for record in iterate_records(memoryview(batch))
    ]
    assert {len(value) for value in values} == {100}
    for value, now in zip([*values, values[3]], (1.5, 1.5, 2.0, 3.0, 4.0), strict=True):
        stream.see(value, now)
    assert [number for number, _ in stream.seen] == [0, 1, 2, 3, 3]
    assert len(stream.arrived) == 4
    assert stream.latencies_ms(range(1, 3)) == [500.0, 0.0]


def test_a_stream_passes_over_what_an_earlier_one_left_in_the_topic() -> None:
    earlier, stream = (Stream(record_bytes=100) for _ in range(2))
    for each in (earlier, stream):
        for record in iterate_records(memoryview(each.next_batch(1.0))):
            stream.see(record.value or b"", 2.0)
    assert stream.latencies_ms([0]) == [1000.0]
